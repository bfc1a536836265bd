package input

import (
	"slices"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
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
	spec.Weighted = WeighedBy(columns) != "" && spec.Format != "cache"
	if spec.Rejects != "" {
		spec.Rejects += ".eval"
	}
}

// WeighedBy is the column of the weights of rows; "" if there is none.
func WeighedBy(columns []data.ColumnSpec) string {
	if slices.ContainsFunc(columns, func(c data.ColumnSpec) bool { return c.Name == data.WeightColumn }) {
		return data.WeightColumn
	}
	return ""
}

// evalSpec is the spec of the rows to test on.
func evalSpec(j job.Job, dataDir string, columns []data.ColumnSpec, features *feature.Fitted) data.Spec {
	spec := Spec(j, j.Data.Eval, dataDir, features)
	takeInTests(&spec, columns)
	for _, c := range columns {
		if spec.Format == "libsvm" && spec.Features == 0 && c.Kind == data.RaggedColumn {
			spec.Features = c.Dim
		}
	}
	if spec.Format == "text" {
		spec.Vocabulary = Path(dataDir, j.Data.Train.Path.First())
	}
	return spec
}

// Spec turns a job's source into the reader's words.
func Spec(j job.Job, s job.Source, dataDir string, features *feature.Fitted) data.Spec {
	spec := data.Spec{
		Format: s.Format, Path: Path(dataDir, s.Path.First()), Labels: Path(dataDir, s.Labels),
		UnitNorm: j.Data.UnitNorm() && s.Format == "libsvm", Features: s.Features, ZeroBased: s.ZeroBased, LabelBase: s.LabelBase,
		Buckets: s.Buckets, Context: s.Context, Stride: s.Stride, From: s.From, To: s.To, First: s.First, Seed: s.Seed,
	}
	for _, path := range s.Path[min(1, len(s.Path)):] {
		spec.More = append(spec.More, Path(dataDir, path))
	}
	takeIn(&spec, &j, &s)
	if s.Format == "generated" {
		spec.Rows = s.Rows
	} else {
		spec.Limit = s.Rows
	}
	binary := j.Task() == graph.Binary
	switch {
	case s.IsTable():
		spec.Fitted, spec.Group, spec.Unlabelled = features, j.Data.Group, s.Unlabelled
		if s.Unlabelled {
			spec.Group = "" // of metrics, for which there are no labels
		}
		spec.Table = format.Spec{
			Header: s.Header, Names: s.Columns, Columns: s.Types, Missing: s.Missing, Suffix: s.Suffix, Delimiter: s.Delimiter,
			NoQuotes: s.NoQuotes, Encoding: s.Encoding, Namespaces: s.Namespaces, NumericIDs: s.NumericIDs,
		}
	case s.Format == "idx" && binary:
		spec.Classes = 2
	case s.Format == "idx":
		spec.Classes = j.Model.Classes
	case s.Format != "libsvm":
	case binary && s.LabelBase == 0:
		spec.LabelMap = "binary"
	case binary:
		spec.Classes = 2
	case j.Model.Kind != "linear":
		spec.Classes = j.Model.Classes
	}
	return spec
}

// Path resolves a path against the data directory; none stays none.
func Path(dir, path string) string {
	if path != "" {
		path = file.Resolve(dir, path)
	}
	return path
}
