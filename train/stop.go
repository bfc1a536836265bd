package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/metric"
)

// defined lists the metrics that a job's tests have; the first is what progress
// lines show.
func defined(task graph.Task, e job.Eval) []string {
	switch task {
	case graph.Binary:
		names := []string{"auc", "loss", "logloss", "accuracy", "precision", "recall", "f1"}
		if e.Group != "" {
			names = append(names, "gauc")
		}
		return names
	case graph.Regression:
		return []string{"rmse", "loss"}
	case graph.Tokens:
		return []string{"loss", "logloss", "perplexity", "accuracy"}
	case graph.Multiclass:
	}
	return []string{"accuracy", "loss", "logloss"}
}

// newJudge makes what judges the tests of a run, which goes on from what the
// checkpoint has of them; none if the job asks for no judgement. All workers have
// the same.
func (w *worker) newJudge() error {
	e, c := w.setup.Job.Eval, w.setup.Job.Checkpoint
	names := defined(w.setup.Step.Model.Task, e)
	switch {
	case e.Metric == "":
		e.Metric = names[0]
	case !slices.Contains(names, e.Metric):
		return &job.FieldError{Field: "eval.metric", Fix: fmt.Sprintf("tests of model %s have no %s; they have %s", w.setup.Job.Model.Kind, e.Metric, strings.Join(names, ", "))}
	}
	if e.Patience == 0 && !c.Best {
		return nil
	}
	w.patient = &metric.Patience{Metric: e.Metric, MinDelta: e.MinDelta, Limit: e.Patience}
	if w.from == nil || !w.patient.Goes(w.from.Manifest.Tests) {
		return nil
	}
	saved := *w.from.Manifest.Tests
	saved.Limit, w.patient = e.Patience, &saved
	if !c.Best || w.cfg.Rank != 0 || saved.Best == nil {
		return nil
	}
	return w.findBest(c.Dir)
}

// findBest finds the best checkpoint of the run that this one goes on from. One
// that died between writing it and keeping it apart left it as its newest.
func (w *worker) findBest(root string) (err error) {
	dirs, err := checkpoint.List(checkpoint.BestDir(root))
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if c, err := checkpoint.Open(d); err == nil && c.Manifest.Step == w.patient.Step {
			w.bestDir = d
			return nil
		}
	}
	if w.patient.Step == w.from.Manifest.Step {
		w.bestDir, err = checkpoint.KeepBest(root, w.from.Dir)
	}
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
