package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gangline/gangline/params"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/metric"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/train/tally"
)

// testTagBits is for the tags of a plan; above them stands which source it tests.
const testTagBits = 20

// tester runs the eval plan over a source.
type tester struct {
	exec  *exec.Exec
	steps int64
	parts []testPart
	buf   [2][]float64
	// scored keeps predictions for metrics; otherwise only the loss counts.
	scored bool
}

// testPart is what is measured by itself: this worker's part of all batches, or each of its
// slices of them. Slices are merged in their order, whoever has them.
type testPart struct {
	tally tally.Tally
	names [4]string    // of loss, weight, predictions, labels
	sides *tally.Sides // weights and groups of the rows; nil: none
}

// testParts makes the parts of this worker.
func (w *worker) testParts(src data.Source, o data.Order) ([]testPart, error) {
	mine, n, step := plan.Branch{Lo: w.cfg.Rank, Hi: w.cfg.Rank + 1}, w.setup.Cluster.Workers, w.setup.Step
	sliced := w.setup.Cluster.Slices > 0
	if sliced {
		n = w.setup.Cluster.Slices
		mine = plan.Part(n, w.setup.Cluster.Workers, w.cfg.Rank)
	}
	var parts []testPart
	for i := mine.Lo; i < mine.Hi; i++ {
		s, err := w.newSides(src, o, i, n)
		if err != nil {
			return nil, err
		}
		p := testPart{sides: s}
		for k, node := range []*graph.Node{step.Model.Loss, step.Model.Weight, step.Model.Predict, step.Model.Label} {
			if p.names[k] = node.Name; sliced {
				p.names[k] = strategy.Sliced(step.Graph, node, i)
			}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// tester returns the executor for a source, made when first needed. version is
// that of the parameters; with servers an executor lives for one version.
func (w *worker) tester(src data.Source, version int64) (*tester, error) {
	stores := w.holder.evalStores(version)
	if t := w.tests[src]; t != nil && stores == nil {
		return t, nil
	} else if t != nil {
		if err := t.exec.Close(); err != nil {
			return nil, err
		}
	}
	o := data.Order{Rows: src.Rows(), Batch: w.setup.Job.Eval.Batch}
	t := &tester{steps: int64(o.StepsPerEpoch())}
	var err error
	if t.parts, err = w.testParts(src, o); err != nil {
		return nil, err
	}
	p := w.setup.Program.Plans[strategy.EvalPlan]
	if stores == nil { // the executors of other sources live on
		p = p.Retagged(uint32(len(w.tests)) << testTagBits)
	}
	t.exec, err = w.executor(strategy.EvalPlan, src, o, stores, exec.Config{Plan: p, OnOutput: t.take})
	if err != nil {
		return nil, err
	}
	w.tests[src] = t
	return t, nil
}

// newSides finds the columns of weights and groups, for part i of n of each batch; nil if there is nothing to read.
func (w *worker) newSides(src data.Source, o data.Order, i, n int) (*tally.Sides, error) {
	group := w.setup.Job.Eval.Group
	if group != "" && w.setup.Step.Model.Task != graph.Binary {
		return nil, &job.FieldError{Field: "eval.group", Fix: fmt.Sprintf("AUC within groups is of models that predict yes or no, not of %s", w.setup.Job.Model.Kind)}
	}
	s, err := tally.NewSides(src, o, i, n, group)
	if err != nil {
		return nil, &job.FieldError{Field: "eval.group", Fix: err.Error()}
	}
	return s, nil
}

// evaluate tests one version of the parameters on all rows of a source, every
// worker on its part, and gives rank 0 the metrics; others get zeros.
func (w *worker) evaluate(ctx context.Context, version int64, src data.Source, scored bool) (metric.Result, error) {
	t, err := w.tester(src, version)
	if err != nil {
		return metric.Result{}, fmt.Errorf("rank %d: evaluation: %w", w.cfg.Rank, err)
	}
	task, threshold := w.setup.Step.Model.Task, w.setup.Job.Eval.Threshold
	t.scored = scored
	for i := range t.parts {
		t.parts[i].tally = tally.New(task, threshold)
	}
	if err := t.exec.Run(ctx, 0, t.steps); err != nil {
		return metric.Result{}, fmt.Errorf("evaluation: %w", err)
	}
	if err := w.gather(ctx, t.parts); err != nil || w.cfg.Rank != 0 {
		return metric.Result{}, err
	}
	m := t.parts[0].tally.Result(scored)
	if oracle, ok := src.(data.Oracle); ok && m.AUC != nil {
		if err := tally.Compare(&m, src, oracle, input.LabelColumn); err != nil {
			return m, err
		}
	}
	return m, nil
}

// take adds a step's outputs to the tallies.
func (t *tester) take(step int64, get func(name string) *tensor.Tensor) error {
	for i := range t.parts {
		p := &t.parts[i]
		p.tally.Loss += get(p.names[0]).Scalar()
		p.tally.Weight += get(p.names[1]).Scalar()
		label := floats(get(p.names[3]), &t.buf[1])
		p.tally.Rows += len(label)
		if !t.scored {
			continue
		}
		rows := metric.Rows{Predict: floats(get(p.names[2]), &t.buf[0]), Label: label}
		if p.sides != nil {
			if err := p.sides.Read(step, &rows); err != nil {
				return err
			}
		}
		p.tally.Add(rows)
	}
	return nil
}

// floats returns the elements as float64, in memory that is used again.
func floats(t *tensor.Tensor, buf *[]float64) []float64 {
	b := (*buf)[:0]
	if t.DType() == tensor.F32 {
		for _, v := range t.F32() {
			b = append(b, float64(v))
		}
	} else {
		b = append(b, t.F64()...)
	}
	*buf = b
	return b
}

// gather merges the tallies of all workers, in their order, into rank 0's first. How long
// others take for their parts has no bound of its own: nothing ties them to rank 0 during
// a test.
func (w *worker) gather(ctx context.Context, parts []testPart) error {
	var b bytes.Buffer
	if w.cfg.Rank != 0 {
		for i := range parts {
			if err := parts[i].tally.Encode(&b); err != nil {
				return fmt.Errorf("rank %d: evaluation: %w", w.cfg.Rank, err)
			}
		}
	}
	own := &parts[0].tally
	if w.cfg.Rank == 0 {
		for i := range parts[1:] {
			own.Merge(&parts[1+i].tally)
		}
	}
	others := w.workers()
	others.Patience = 0
	return others.Gather(ctx, tallyTag, "evaluation", b.Bytes(), func(rank int, text []byte) error {
		for in := bytes.NewReader(text); in.Len() > 0; {
			part := tally.New(w.setup.Step.Model.Task, w.setup.Job.Eval.Threshold)
			if err := part.Decode(in); err != nil {
				return fmt.Errorf("rank 0: evaluation: the part of rank %d: %w", rank, err)
			}
			own.Merge(&part)
		}
		return nil
	})
}

// Evaluation is what Evaluate found.
type Evaluation struct {
	Checkpoint string        `json:"checkpoint"`
	Step       int64         `json:"step"`
	Eval       metric.Result `json:"eval"`
}

// Evaluate tests the parameters of a checkpoint (or of the newest whole one in a
// directory) on the job's eval rows, in this process, whatever strategy
// trained them. With from empty it tests those that the job imports.
func Evaluate(ctx context.Context, j job.Job, dataDir, from string) (*Evaluation, error) {
	if j.Data.Eval.Format == "" {
		return nil, &job.FieldError{Field: "data.eval.format", Fix: "is missing: say which rows to test on"}
	}
	w, name, step, err := alone(ctx, j, dataDir, from)
	if err != nil {
		return nil, err
	}
	metrics, err := w.evaluate(ctx, step, w.rows.Eval, true)
	w.member.close()
	return &Evaluation{Checkpoint: name, Step: step, Eval: metrics}, errors.Join(err, w.close())
}

// alone makes a worker without others that holds the parameters of a checkpoint,
// or imported ones, and reads the eval rows. name is where the parameters came
// from and step their number of steps.
func alone(ctx context.Context, j job.Job, dataDir, from string) (w *worker, name string, step int64, err error) {
	j.Strategy = job.Strategy{Kind: "serial", Workers: 1, Consistency: j.Strategy.Consistency}
	var c *checkpoint.Checkpoint
	switch {
	case from != "":
		if c, _, err = checkpoint.Resolve(from); err != nil {
			return nil, "", 0, err
		}
		name, step = c.Dir, c.Manifest.Step
	case j.Import.Path == "":
		return nil, "", 0, &job.FieldError{Field: "checkpoint.dir", Fix: "is missing: say which checkpoint, or name a file of parameters (import.path)"}
	default:
		name = input.Path(dataDir, j.Import.Path)
	}
	features, err := input.Fit(ctx, j, dataDir, c)
	if err != nil {
		return nil, "", 0, err
	}
	columns, err := input.ColumnsWith(ctx, j, dataDir, features)
	if err != nil {
		return nil, "", 0, err
	}
	m := &member{cfg: Config{Job: j, DataDir: dataDir, Logger: slog.New(slog.DiscardHandler)}, from: c, rows: &input.Rows{Features: features}}
	if m.setup, err = NewSetup(j, columns); err != nil {
		return nil, "", 0, err
	}
	w = &worker{member: m, tests: map[data.Source]*tester{}}
	if w.backend, err = backend(j, 1); err != nil {
		return nil, "", 0, err
	}
	state := params.New(m.setup.Step).Only(m.setup.Step)
	if c != nil {
		err = state.Restore(c)
	} else if err = m.takeImport(); err == nil {
		state = m.imported
	}
	if err != nil {
		return nil, "", 0, err
	}
	w.holder = &local{setup: m.setup, state: state}
	m.rows.Eval, err = input.OpenEval(ctx, j, dataDir, columns, features)
	return w, name, step, err
}
