package job

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/graph"
)

// Data says where rows come from, and what models are given of their columns.
type Data struct {
	Train Source `yaml:"train"`
	// Eval is what the model is tested on; without a format, nothing is.
	Eval Source `yaml:"eval"`
	// Memory is how many bytes the rows of a source may take in a worker; more are
	// kept in a cache file in CacheDir, and read from it block by block.
	Memory   Size   `yaml:"memory"`
	CacheDir string `yaml:"cache_dir"`
	// Rejects is a file that gets the first malformed rows and what is wrong with
	// them; those of eval get one of the same name with .eval behind it.
	Rejects string `yaml:"rejects"`
	// Label is the column that is predicted (tables).
	Label feature.Label `yaml:"label,omitempty"`
	// Weight is the column of a row's weight, Group the column that becomes the
	// column group, for eval.group (tables).
	Weight string `yaml:"weight,omitempty"`
	Group  string `yaml:"group,omitempty"`
	// Ignore are columns that no feature is made of where none is declared
	// (tables).
	Ignore []string `yaml:"ignore,omitempty"`
	// Features are made of the columns (tables); without any, of every column one.
	// libsvm knows one alone, which scales rows to a norm of 1.
	Features []feature.Feature `yaml:"features,omitempty"`
}

// tables are the formats of named columns, of which features are made.
func tables() []string { return []string{"csv", "vw", "libffm", "npy", "npz", "parquet"} }

// IsTable reports whether the rows of a source have named columns, of which
// features are made.
func (s *Source) IsTable() bool { return slices.Contains(tables(), s.Format) }

// formats are all that a source can have.
func formats() []string {
	return append([]string{"libsvm", "criteo", "idx", "text", "generated", "cache"}, tables()...)
}

// complete reads eval as train is read, where it does not say otherwise.
func (d *Data) complete() {
	t, e := &d.Train, &d.Eval
	if e.Format != t.Format || !t.IsTable() {
		return
	}
	e.Header, e.NoQuotes, e.NumericIDs = e.Header || t.Header, e.NoQuotes || t.NoQuotes, e.NumericIDs || t.NumericIDs
	e.Delimiter, e.Encoding = cmp.Or(e.Delimiter, t.Delimiter), cmp.Or(e.Encoding, t.Encoding)
	for _, list := range []struct{ own, other *[]string }{{&e.Columns, &t.Columns}, {&e.Missing, &t.Missing}, {&e.Namespaces, &t.Namespaces}} {
		if *list.own == nil {
			*list.own = *list.other
		}
	}
	if e.Types == nil {
		e.Types = t.Types
	}
	if e.Suffix == nil {
		e.Suffix = t.Suffix
	}
}

// declared is what decides features, nil if there is nothing.
func (d *Data) declared() any {
	if !d.Train.IsTable() && len(d.Features) == 0 {
		return nil
	}
	return struct {
		Label    feature.Label     `yaml:"label"`
		Weight   string            `yaml:"weight"`
		Ignore   []string          `yaml:"ignore"`
		Features []feature.Feature `yaml:"features"`
	}{d.Label, d.Weight, d.Ignore, d.Features}
}

// libsvmColumn is what the features of libsvm rows are called.
const libsvmColumn = "x"

// UnitNorm reports whether the rows of libsvm are scaled to a norm of 1.
func (d *Data) UnitNorm() bool { return d.Train.Format == "libsvm" && len(d.Features) > 0 }

// Task is what the model predicts.
func (j *Job) Task() graph.Task {
	if m := j.Extensions.Model(j.Model.Kind); m != nil {
		return m.Task
	}
	switch j.Model.Kind {
	case "logistic", "fm", "ctr", "deepfm", "dlrm":
		return graph.Binary
	case "linear":
		return graph.Regression
	case "gpt":
		return graph.Tokens
	case "mlp", "cnn":
		if j.Model.Classes == 0 {
			return graph.Binary
		}
	}
	return graph.Multiclass
}

// Pipeline is what the job declares of features (tables).
func (j *Job) Pipeline() feature.Spec {
	d := &j.Data
	s := feature.Spec{Features: d.Features, Label: d.Label, Weight: d.Weight, Ignore: d.Ignore}
	switch j.Task() {
	case graph.Binary:
		s.Task = feature.Binary
	case graph.Multiclass:
		s.Task, s.Classes = feature.Multiclass, j.Model.Classes
	case graph.Regression:
		s.Task = feature.Regression
	case graph.Tokens: // no model of columns, which validateFeatures says
	}
	switch d.Train.Format { // whose columns have names and roles of their own
	case "vw":
		s.Label.Column, s.Weight = cmp.Or(s.Label.Column, "label"), cmp.Or(s.Weight, "weight")
		s.Ignore = append(slices.Clone(s.Ignore), "tag")
	case "libffm":
		s.Label.Column = cmp.Or(s.Label.Column, "label")
		s.Ignore = append(slices.Clone(s.Ignore), "field")
	}
	// What rows are told apart by is no property of theirs.
	for _, other := range []string{d.Group, d.Train.Split.Column} {
		if other != "" {
			s.Ignore = append(slices.Clone(s.Ignore), other)
		}
	}
	return s
}

// FeatureError turns an error of the pipeline into one that names the job's
// field; others it returns as they are.
func FeatureError(err error) error {
	if d, ok := errors.AsType[*feature.DeclError](err); ok {
		return &FieldError{"data." + d.Field, d.Fix}
	}
	return err
}

// validateFeatures checks what is declared of columns.
func (j *Job) validateFeatures() error {
	d := &j.Data
	if d.Train.IsTable() {
		if d.Eval.Format != "" && !d.Eval.IsTable() {
			return &FieldError{"data.eval.format", fmt.Sprintf("%s has no named columns, as the training rows have: set one of %v", d.Eval.Format, tables())}
		}
		if j.Task() == graph.Tokens {
			return &FieldError{"model.kind", fmt.Sprintf("%s reads text, not the columns of format %s: set another kind, or data.train.format=text", j.Model.Kind, d.Train.Format)}
		}
		p := j.Pipeline()
		return FeatureError(p.Validate())
	}
	for _, c := range []struct {
		set   bool
		field string
	}{
		{d.Label.Column != "" || d.Label.Positive != nil || d.Label.Negative != nil || d.Label.Classes != nil, "data.label"},
		{d.Weight != "", "data.weight"},
		{d.Group != "" && (d.Train.Format != "cache" || !d.Eval.IsTable()), "data.group"},
		{len(d.Ignore) > 0, "data.ignore"},
		{len(d.Features) > 0 && d.Train.Format != "libsvm", "data.features"},
	} {
		if c.set && d.Train.Format == "cache" {
			return &FieldError{c.field, "is in the cache file already, since it was converted: leave it out"}
		}
		if c.set {
			return &FieldError{c.field, fmt.Sprintf("is for rows with named columns (%v), format %s has none: leave it out", tables(), d.Train.Format)}
		}
	}
	if d.Eval.IsTable() && d.Train.Format != "cache" {
		return &FieldError{"data.eval.format", fmt.Sprintf("%s has named columns, which the training rows of format %s have not: set %s", d.Eval.Format, d.Train.Format, d.Train.Format)}
	}
	if len(d.Features) == 0 {
		return nil
	}
	only := feature.Feature{Kind: feature.Category, Column: libsvmColumn, UnitNorm: true}
	if len(d.Features) > 1 || !reflect.DeepEqual(d.Features[0], only) {
		return &FieldError{"data.features", "of libsvm can be one alone: set [{kind: category, column: x, unit_norm: true}], which scales rows to a norm of 1, or leave it out"}
	}
	return nil
}
