package input

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/job"
)

// Columns returns what the job's training data has, reading as little as it can:
// of a table that features learn from, all of it.
func Columns(ctx context.Context, j job.Job, dataDir string) ([]data.ColumnSpec, error) {
	features, err := Fit(ctx, j, dataDir, nil)
	if err != nil {
		return nil, err
	}
	return ColumnsWith(ctx, j, dataDir, features)
}

// ColumnsWith is Columns with the features that a table needs.
func ColumnsWith(ctx context.Context, j job.Job, dataDir string, features *feature.Fitted) ([]data.ColumnSpec, error) {
	columns, err := data.Columns(ctx, Spec(j, j.Data.Train, dataDir, features))
	if err != nil {
		return nil, fmt.Errorf("data.train: %w", err)
	}
	return columns, nil
}

// openTrain opens the training rows.
func openTrain(ctx context.Context, j job.Job, dataDir string, features *feature.Fitted) (data.Source, error) {
	src, err := data.Open(ctx, Spec(j, j.Data.Train, dataDir, features))
	if err != nil {
		return nil, fmt.Errorf("data.train: %w", job.FeatureError(err))
	}
	return src, nil
}

// OpenEval opens the rows to test on, which have the training rows' columns;
// nil without any.
func OpenEval(ctx context.Context, j job.Job, dataDir string, columns []data.ColumnSpec, features *feature.Fitted) (data.Source, error) {
	if j.Data.Eval.Format == "" {
		return nil, nil
	}
	spec := evalSpec(j, dataDir, columns, features)
	if err := suitFeatures(j, spec, features); err != nil {
		return nil, err
	}
	src, err := data.Open(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("data.eval: %w", job.FeatureError(err))
	}
	if has, want := withoutGroup(src.Columns()), withoutGroup(columns); !slices.Equal(has, want) {
		return nil, errors.Join(fmt.Errorf("data.eval: its columns %+v are not those of data.train, %+v", has, want), src.Close())
	}
	return src, nil
}

// withoutGroup leaves out the column that is for metrics alone.
func withoutGroup(columns []data.ColumnSpec) []data.ColumnSpec {
	return slices.DeleteFunc(slices.Clone(columns), func(c data.ColumnSpec) bool { return c.Name == data.GroupColumn })
}

// OpenSource opens the job's training rows, or its eval rows.
func OpenSource(ctx context.Context, j job.Job, dataDir string, eval bool) (data.Source, error) {
	features, err := Fit(ctx, j, dataDir, nil)
	if err != nil {
		return nil, err
	}
	if !eval {
		return openTrain(ctx, j, dataDir, features)
	}
	if j.Data.Eval.Format == "" {
		return nil, &job.FieldError{Field: "data.eval.format", Fix: "is missing"}
	}
	columns, err := ColumnsWith(ctx, j, dataDir, features)
	if err != nil {
		return nil, err
	}
	return OpenEval(ctx, j, dataDir, columns, features)
}

// Convert writes the job's training rows, or its eval rows, to a cache file, as
// training would read them, and returns what the file says of itself.
func Convert(ctx context.Context, j job.Job, dataDir string, eval bool, path string) (*cache.Header, error) {
	features, err := Fit(ctx, j, dataDir, nil)
	if err != nil {
		return nil, err
	}
	field, spec := "data.train", Spec(j, j.Data.Train, dataDir, features)
	if eval {
		if j.Data.Eval.Format == "" {
			return nil, &job.FieldError{Field: "data.eval.format", Fix: "is missing"}
		}
		columns, err := ColumnsWith(ctx, j, dataDir, features)
		if err != nil {
			return nil, err
		}
		field, spec = "data.eval", evalSpec(j, dataDir, columns, features)
	}
	h, err := data.Convert(ctx, spec, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, job.FeatureError(err))
	}
	return h, nil
}
