package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"

	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/metric"
	"github.com/gangline/gangline/train/judge"
)

// newJudge makes what judges the tests of this run. Before the first of them, a best one
// is that of the run which this one goes on from: its checkpoint is there already.
func (w *worker) newJudge() (err error) {
	c := &w.setup.Job.Checkpoint
	w.patient, err = judge.New(&w.setup.Job, w.setup.Step.Model.Task, w.from)
	if err != nil || w.patient == nil || w.patient.Best == nil || !c.Best || w.cfg.Rank != 0 {
		return err
	}
	w.bestDir, err = judge.FindBest(c.Dir, w.patient.Step, w.from)
	return err
}

// judge lets all workers see the value that rank 0 found in a test, so that all
// stop alike. It reports whether this is the best so far; whether it is the last is
// what Done says.
func (w *worker) judge(ctx context.Context, step int64, m *metric.Result) (best bool, err error) {
	if w.patient == nil {
		return false, nil
	}
	value, _ := m.Value(w.patient.Metric)         // NaN on other ranks
	if w.patient.Limit > 0 || w.holder.spread() { // all stop alike, and write alike
		if value, err = w.share(ctx, value); err != nil {
			return false, fmt.Errorf("rank %d: after the test of step %d: %w", w.cfg.Rank, step, err)
		}
	}
	return w.patient.See(step, value), nil
}

// lastTest tests the final parameters, unless the last boundary did. A test that
// comes only because the run is over does not try anybody's patience.
func (w *worker) lastTest(ctx context.Context, version int64) (best bool, err error) {
	if w.rows.Eval == nil {
		return false, nil
	}
	if w.testedAt != version {
		if w.tested, err = w.evaluate(ctx, version, w.rows.Eval, true); err != nil {
			return false, err
		}
		w.curves.Test(version, &w.tested)
		var was metric.Patience
		if w.patient != nil {
			was = *w.patient
		}
		if best, err = w.judge(ctx, version, &w.tested); err != nil {
			return false, err
		}
		if w.patient != nil && !best && !due(version, w.setup.Job.Eval.Every) {
			*w.patient = was
		}
	}
	w.main.Eval = &w.tested
	return best, nil
}

// keep writes a checkpoint, and keeps it apart if it is the best.
func (w *worker) keep(ctx context.Context, at int64, best bool) error {
	if err := w.save(ctx, at); err != nil {
		return fmt.Errorf("rank %d: step %d: %w", w.cfg.Rank, at, err)
	}
	if !best || !w.setup.Job.Checkpoint.Best || w.cfg.Rank != 0 {
		return nil
	}
	var err error
	if w.bestDir, err = checkpoint.KeepBest(filepath.Dir(w.saved), w.saved); err != nil {
		return fmt.Errorf("rank %d: step %d: %w", w.cfg.Rank, at, err)
	}
	return nil
}

// share returns, on all workers, a number that rank 0 has.
func (w *worker) share(ctx context.Context, v float64) (float64, error) {
	others := w.workers()
	text, err := others.Share(ctx, shareTag, "value of the test", binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
	if err != nil || len(text) != 8 {
		return v, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(text)), nil
}

// best is what the report says of the best test; nil if nobody judged.
func (w *worker) best() *report.Best {
	if w.patient == nil || w.patient.Best == nil {
		return nil
	}
	return &report.Best{Metric: w.patient.Metric, Value: *w.patient.Best, Step: w.patient.Step, Checkpoint: w.bestDir}
}
