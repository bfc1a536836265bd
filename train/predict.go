package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/train/scored"
)

// Scored is what a model says of some consecutive rows. Its memory is used again.
type Scored = scored.Rows

// Predict gives take what the parameters of a checkpoint, or imported ones, say of
// the job's eval rows, in the order of the file, some rows at a time; see Evaluate.
// path, unless empty, is read instead of data.eval.path: a file of the same form,
// or of that of the training rows if the job has none to test on. It returns how
// many malformed rows were skipped: numbers of rows do not count them.
func Predict(ctx context.Context, j job.Job, dataDir, from, path string, take func(*Scored) error) (skipped int, err error) {
	if err := withPath(&j, path); err != nil {
		return 0, err
	}
	j.Reproducible = false // of a row there is nothing to sum
	w, _, version, err := alone(ctx, j, dataDir, from)
	if err != nil {
		return 0, err
	}
	defer func() {
		w.member.close()
		err = errors.Join(err, w.close())
	}()
	src, m := w.rows.Eval, w.setup.Step.Model
	labelled, err := data.Labelled(ctx, input.Spec(j, j.Data.Eval, dataDir, w.rows.Features))
	if err != nil {
		return 0, fmt.Errorf("prediction: %w", err)
	}
	o := data.Order{Rows: src.Rows(), Batch: j.Eval.Batch}
	says := &Scored{Task: m.Task}
	if f := w.rows.Features; f != nil {
		says.Names = f.ClassNames()
	}
	var buf []float64
	ex, err := w.executor(strategy.EvalPlan, src, o, w.holder.evalStores(version), exec.Config{
		OnOutput: func(step int64, get func(name string) *tensor.Tensor) error {
			_, first, end := o.At(step)
			says.First, says.Label = first, floats(get(m.Label.Name), &says.Label)
			for i := range says.Label {
				if !labelled {
					says.Label[i] = math.NaN()
				}
			}
			says.Fill(end-first, floats(get(m.Predict.Name), &buf))
			return take(says)
		},
	})
	if err != nil {
		return 0, fmt.Errorf("prediction: %w", err)
	}
	if err := errors.Join(ex.Run(ctx, 0, int64(o.StepsPerEpoch())), ex.Close()); err != nil {
		return 0, fmt.Errorf("prediction: %w", err)
	}
	return w.rows.Bad(), nil
}

// withPath makes a file the eval rows of a job.
func withPath(j *job.Job, path string) error {
	defer func() { j.Data.Eval.Unlabelled = true }()
	if path == "" {
		if j.Data.Eval.Format == "" {
			return &job.FieldError{Field: "data.eval.format", Fix: "is missing: say which rows to predict, or name a file with --path"}
		}
		return nil
	}
	e := &j.Data.Eval
	if e.Format == "" {
		*e = j.Data.Train
	}
	if e.Format == "generated" {
		return &job.FieldError{Field: "data.eval.format", Fix: "is generated, which reads no file: say what form the file of --path has, data.eval.format=criteo for example"}
	}
	at, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("--path %s: %w", path, err)
	}
	if err := isCache(e, at); err != nil {
		return err
	}
	e.From, e.To = 0, 0 // shares of the other file
	e.Path, e.Rows, e.Split, e.Negatives = job.Files{at}, 0, job.Split{}, job.Negatives{}
	return nil
}

// isCache refuses a file of another form where a cache file is meant.
func isCache(e *job.Source, path string) error {
	if e.Format != "cache" {
		return nil
	}
	f, err := cache.Open(path)
	if errors.Is(err, cache.ErrFile) {
		return &job.FieldError{Field: "data.eval.format", Fix: fmt.Sprintf(
			"is cache, which %s is not: say what form it has, data.eval.format=csv for example, or name the job that the training rows were converted with", path)}
	}
	if err != nil {
		return fmt.Errorf("--path: %w", err)
	}
	return f.Close()
}
