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
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/metric"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/train/input"
)

// Scored is what a model says of some consecutive rows. Its memory is used again.
type Scored struct {
	First int // number of the first row, from 0
	Task  graph.Task
	// Value has one number a row: the probability of label 1 (Binary), the value
	// (Regression), the probability of Class (Multiclass), or the logarithm of the
	// likelihood of the row's tokens (Tokens).
	Value []float64
	Class []int // Multiclass
	// Tokens are how many tokens a row has (Tokens).
	Tokens int
	// Names are what the input calls the classes; nil: by their numbers.
	Names []string
	// Label is that of every row, NaN where the file has none; of Tokens, that of every
	// token: the one after it.
	Label []float64

	rows int       // how many there are
	room []float64 // probabilities of a row's classes
}

// Perplexity is that of a row (Tokens): e^-(log likelihood / tokens).
func (s *Scored) Perplexity(row int) float64 { return math.Exp(-s.Value[row] / float64(s.Tokens)) }

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
	scored := &Scored{Task: m.Task}
	if f := w.rows.Features; f != nil {
		scored.Names = f.ClassNames()
	}
	var buf []float64
	ex, err := w.executor(strategy.EvalPlan, src, o, w.holder.evalStores(version), exec.Config{
		OnOutput: func(step int64, get func(name string) *tensor.Tensor) error {
			_, first, end := o.At(step)
			scored.First, scored.rows = first, end-first
			scored.Label = floats(get(m.Label.Name), &scored.Label)
			for i := range scored.Label {
				if !labelled {
					scored.Label[i] = math.NaN()
				}
			}
			scored.fill(floats(get(m.Predict.Name), &buf))
			return take(scored)
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

// fill turns logits and values into what is said of rows.
func (s *Scored) fill(predict []float64) {
	s.Value, s.Class = s.Value[:0], s.Class[:0]
	switch s.Task {
	case graph.Binary:
		for _, z := range predict {
			s.Value = append(s.Value, metric.Sigmoid(z))
		}
	case graph.Tokens:
		if s.rows > 0 {
			s.fillTokens(predict)
		}
	case graph.Multiclass:
		if len(s.Label) == 0 {
			return
		}
		classes := s.classes(predict)
		for ; len(predict) > 0; predict = predict[classes:] {
			metric.Softmax(s.room, predict[:classes])
			best := metric.ArgMax(predict[:classes])
			s.Class = append(s.Class, best)
			s.Value = append(s.Value, s.room[best])
		}
	case graph.Regression:
		s.Value = append(s.Value, predict...)
	}
}

// classes is how many there are, for which room is made.
func (s *Scored) classes(predict []float64) int {
	classes := len(predict) / len(s.Label)
	if len(s.room) != classes {
		s.room = make([]float64, classes)
	}
	return classes
}

// fillTokens adds up the logarithms of the probabilities that the tokens of each row
// have, given those before them.
func (s *Scored) fillTokens(predict []float64) {
	s.Tokens = len(s.Label) / s.rows
	classes, sum := s.classes(predict), 0.0
	for i, y := range s.Label {
		logits := predict[i*classes : (i+1)*classes]
		sum += logits[int(y)] - metric.Softmax(s.room, logits)
		if (i+1)%s.Tokens == 0 {
			s.Value, sum = append(s.Value, sum), 0
		}
	}
}
