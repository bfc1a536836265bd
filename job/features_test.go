package job_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/job"
)

const columnsJob = `
model: {kind: logistic}
data:
  train: {format: csv, path: a.csv, columns: [y, x, c], missing: ["?", NA], types: {c: text}}
  eval: {format: csv, path: b.csv, missing: [none]}
  label: {column: y, positive: [1, yes]}
  weight: w
  group: user
  ignore: [id]
  features:
    - {kind: number, column: x, fill: 0, clip: [-1, 2.5], log: signed, normalize: standard, indicator: true}
    - {kind: category, column: c, min_count: 5}
    - {kind: cross, columns: [x, c], buckets: 100, name: both}
optimizer: {kind: sgd, lr: 0.1}
`

// Everything that a job says of columns is read.
func TestFeatures(t *testing.T) {
	j, err := job.Parse("a", []byte(columnsJob), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := feature.Spec{
		Label: feature.Label{Column: "y", Positive: []string{"1", "yes"}}, Task: feature.Binary, Weight: "w", Ignore: []string{"id", "user"},
		Features: []feature.Feature{
			{Kind: feature.Number, Column: "x", Fill: "0", Clip: []float64{-1, 2.5}, Log: "signed", Normalize: "standard", Indicator: true},
			{Kind: feature.Category, Column: "c", MinCount: 5},
			{Kind: feature.Cross, Columns: []string{"x", "c"}, Buckets: 100, Name: "both"},
		},
	}
	if diff := cmp.Diff(want, j.Pipeline()); diff != "" {
		t.Errorf("pipeline (-want +got):\n%s", diff)
	}
	split, err := job.Parse("a", []byte(columnsJob), []string{"data.train.split.by=time", "data.train.split.column=when", "data.train.split.part=train", "data.train.split.test=5"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"id", "user", "when"}, split.Pipeline().Ignore); diff != "" {
		t.Errorf("what no feature is made of (-want +got):\n%s", diff)
	}
	e := j.Data.Eval
	if diff := cmp.Diff([]any{j.Data.Train.Columns, j.Data.Train.Types, []string{"none"}}, []any{e.Columns, e.Types, e.Missing}); diff != "" {
		t.Errorf("eval is not read as train is (-want +got):\n%s", diff)
	}
	for kind, want := range map[string]feature.Task{"linear": feature.Regression, "softmax, classes: 3": feature.Multiclass, "mlp, hidden: [2]": feature.Binary} {
		text := strings.NewReplacer("logistic", kind, ", positive: [1, yes]", "").Replace(columnsJob)
		j, err := job.Parse("a", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if p := j.Pipeline(); p.Task != want || want == feature.Multiclass && p.Classes != 3 {
			t.Errorf("%s: %s of %d classes", kind, p.Task, p.Classes)
		}
	}
}

// Vowpal Wabbit text and libffm have columns with a role, which no job need name.
func TestRolesOfFormats(t *testing.T) {
	for format, want := range map[string]feature.Spec{
		"vw":     {Label: feature.Label{Column: "label"}, Task: feature.Binary, Weight: "weight", Ignore: []string{"tag"}},
		"libffm": {Label: feature.Label{Column: "label"}, Task: feature.Binary, Ignore: []string{"field"}},
	} {
		text := "model: {kind: logistic}\ndata: {train: {format: " + format + ", path: a}}\noptimizer: {kind: sgd, lr: 0.1}\n"
		j, err := job.Parse("a", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, j.Pipeline()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

// What is wrong with features is an error of the job's field with what to change.
func TestFeatureErrors(t *testing.T) {
	for _, c := range []struct{ old, now, field, fix string }{
		{"label: {column: y, positive: [1, yes]}", "", "data.label.column", "is missing: name the column"},
		{"logistic", "linear", "data.label.positive", "is for two classes; the model is for regression"},
		{"min_count: 5", "min_count: -5", "data.features[1].min_count", "must not be negative"},
		{"buckets: 100, ", "", "data.features[2].buckets", "is missing"},
		{"kind: cross", "kind: kross", "data.features[2].kind", `did you mean "cross"?`},
		{"eval: {format: csv", "eval: {format: libsvm", "data.eval.format", "libsvm has no named columns"},
		{"logistic", "gpt", "model.kind", "gpt reads text, not the columns of format csv"},
		{"train: {format: csv", "train: {format: criteo", "data.label", "format criteo has none: leave it out"},
		{"train: {format: csv", "train: {format: libsvm", "data.label", "format libsvm has none"},
		{"train: {format: csv", "train: {format: cache", "data.label", "is in the cache file already"},
	} {
		text := strings.Replace(columnsJob, c.old, c.now, 1)
		_, err := job.Parse("a", []byte(text), nil)
		f, ok := errors.AsType[*job.FieldError](err)
		if !ok || f.Field != c.field || !strings.Contains(f.Fix, c.fix) {
			t.Errorf("%q for %q: got %v, want %s: ...%s", c.now, c.old, err, c.field, c.fix)
		}
	}
	for setting, want := range map[string]string{
		"data.features=[{knd: number}]":              `does not fit data.features`,
		"data.label.colum=y":                         `unknown field "colum" in data.label`,
		"data.features=[{kind: number, column: [a]}": "does not fit data.features",
	} {
		if _, err := job.Parse("a", []byte(columnsJob), []string{setting}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: got %v, want %q in it", setting, err, want)
		}
	}
	bad := strings.Replace(columnsJob, "fill: 0", "fil: 0", 1)
	if _, err := job.Parse("a", []byte(bad), nil); err == nil || !strings.Contains(err.Error(), `a:11: unknown field "fil" in data.features: did you mean "fill"?`) {
		t.Errorf("got %v", err)
	}
}

// A table to test on goes with training rows that have features: a table's, or those
// of a cache file.
func TestTableToTestOn(t *testing.T) {
	const eval = "\nmodel: {kind: logistic}\noptimizer: {kind: sgd, lr: 1}\ndata: {train: {format: cache, path: a}, eval: {format: csv, path: b}, group: who}\n"
	if _, err := job.Parse("a", []byte(eval), nil); err != nil {
		t.Error(err)
	}
	_, err := job.Parse("a", []byte(eval), []string{"data.train.format=libsvm", "data.group="})
	if f, ok := errors.AsType[*job.FieldError](err); !ok || f.Field != "data.eval.format" || !strings.Contains(f.Fix, "csv has named columns, which the training rows of format libsvm have not") {
		t.Errorf("beside libsvm: %v", err)
	}
	_, err = job.Parse("a", []byte(eval), []string{"data.eval.format=cache"})
	if f, ok := errors.AsType[*job.FieldError](err); !ok || f.Field != "data.group" {
		t.Errorf("groups of cache files: %v", err)
	}
}

// Rows of libsvm know one feature, and what is declared must not change on resume.
func TestLibsvmUnitNorm(t *testing.T) {
	only := "data.features=[{kind: category, column: x, unit_norm: true}]"
	j, err := job.Parse("a", []byte(adult), []string{only})
	if err != nil || !j.Data.UnitNorm() {
		t.Fatalf("%v %v", j.Data.UnitNorm(), err)
	}
	plain, err := job.Parse("a", []byte(adult), nil)
	if err != nil || plain.Data.UnitNorm() {
		t.Fatalf("%v %v", plain.Data.UnitNorm(), err)
	}
	a, _, err := j.Fixed()
	b, _, err2 := plain.Fixed()
	if err != nil || err2 != nil || a == b || strings.Contains(b, "unit_norm") {
		t.Errorf("fixed with unit_norm:\n%s (%v)\nwithout:\n%s (%v)", a, err, b, err2)
	}
	for _, s := range []string{
		"data.features=[{kind: category, column: y, unit_norm: true}]", "data.features=[{kind: category, column: x}]",
		"data.features=[{kind: category, column: x, unit_norm: true, buckets: 5}]", "data.features=[{kind: category, column: x, unit_norm: true}, {kind: category, column: x, name: z, unit_norm: true}]",
	} {
		if _, err := job.Parse("a", []byte(adult), []string{s}); err == nil || !strings.Contains(err.Error(), "data.features: of libsvm can be one alone") {
			t.Errorf("%s: got %v", s, err)
		}
	}
}
