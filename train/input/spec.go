package train

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/strategy"
)

// takeIn says which rows of a source are kept, and where.
func takeIn(spec *data.Spec, j *job.Job, s *job.Source) {
	rows, share := s.BadRows()
	spec.MaxBadRows = rows
	spec.Intake = data.Intake{
		MaxBadShare: share, Rejects: j.Data.Rejects, Memory: int64(j.Data.Memory), CacheDir: j.Data.CacheDir,
		Split: s.Split.Rule(), Negatives: s.Negatives.Sample(),
	}
}

// takeInTests is takeIn for the rows of eval, which must have the columns that the
// training rows have.
func takeInTests(spec *data.Spec, columns []data.ColumnSpec) {
	spec.Weighted = weighedBy(columns) != "" && spec.Format != "cache"
	if spec.Rejects != "" {
		spec.Rejects += ".eval"
	}
}

// weighedBy is the column of the weights of rows; "" if there is none.
func weighedBy(columns []data.ColumnSpec) string {
	if slices.ContainsFunc(columns, func(c data.ColumnSpec) bool { return c.Name == data.WeightColumn }) {
		return data.WeightColumn
	}
	return ""
}

// checkWeighed refuses a model of a program's own that would count all rows alike.
func (s *Setup) checkWeighed(column string) error {
	for _, n := range strategy.Inputs(s.Step, strategy.StepPlan) {
		if n.Attr.Column == column {
			return nil
		}
	}
	return &job.FieldError{Field: "model.kind", Fix: fmt.Sprintf(
		"the rows have weights, which model %s does not read: make its loss of the input Config.Weight, or leave the weights out", s.Job.Model.Kind)}
}

// Convert writes the job's training rows, or its eval rows, to a cache file, as
// training would read them, and returns what the file says of itself.
func Convert(j job.Job, dataDir string, eval bool, path string) (*cache.Header, error) {
	features, err := fit(j, dataDir, nil)
	if err != nil {
		return nil, err
	}
	field, spec := "data.train", sourceSpec(j, j.Data.Train, dataDir, features)
	if eval {
		if j.Data.Eval.Format == "" {
			return nil, &job.FieldError{Field: "data.eval.format", Fix: "is missing"}
		}
		columns, err := columnsOf(j, dataDir, features)
		if err != nil {
			return nil, err
		}
		field, spec = "data.eval", evalSpec(j, dataDir, columns, features)
	}
	h, err := data.Convert(spec, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, job.FeatureError(err))
	}
	return h, nil
}
