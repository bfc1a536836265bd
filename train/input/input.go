// Package input opens the rows that a job names, with the features that are made of
// them, for training, tests and predictions alike.
//
// Reading order: spec.go (a job's source in the words of package data), features.go
// (where fitted features come from), open.go, input.go.
package input

import (
	"context"
	"errors"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/job"
)

// LabelColumn is the column every model predicts.
const LabelColumn = "label"

// Rows are a worker's sources.
type Rows struct {
	Train data.Source // nil: only tests are made
	Eval  data.Source // nil: nothing to test on
	// Features make both of the columns of a table; nil: there is none.
	Features *feature.Fitted
}

// Open opens what the job names, with the features of a checkpoint if there is
// one. The caller closes the Rows. Cost: a pass over the files, and another one where
// features learn from them.
func Open(ctx context.Context, j job.Job, dataDir string, from *checkpoint.Checkpoint) (*Rows, error) {
	features, err := Fit(ctx, j, dataDir, from)
	if err != nil {
		return nil, err
	}
	train, err := openTrain(ctx, j, dataDir, features)
	if err != nil {
		return nil, err
	}
	eval, err := OpenEval(ctx, j, dataDir, train.Columns(), features)
	if err != nil {
		return nil, errors.Join(err, train.Close())
	}
	return &Rows{Train: train, Eval: eval, Features: features}, nil
}

// Bad counts the malformed rows that were skipped.
func (r *Rows) Bad() int {
	n := 0
	for _, src := range []data.Source{r.Train, r.Eval} {
		if b, ok := src.(data.Reporter); ok {
			n += b.BadRows()
		}
	}
	return n
}

// Close closes the sources.
func (r *Rows) Close() error {
	var errs []error
	for _, src := range []data.Source{r.Train, r.Eval} {
		if src != nil {
			errs = append(errs, src.Close())
		}
	}
	return errors.Join(errs...)
}
