package train

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train/input"
)

// What a job says of a libsvm file reaches the reader, and what its labels must
// be follows from the model.
func TestLibsvmSpec(t *testing.T) {
	from := job.Source{Format: "libsvm", Path: job.Files{"f"}, Features: 9, Rows: 5, MaxBadRows: 2, ZeroBased: true}
	based := from
	based.LabelBase = 1
	listed := from
	listed.Path = job.Files{"f", "g*", "s3://b/h"}
	want := data.Spec{Format: "libsvm", Path: filepath.Join("d", "f"), Features: 9, Limit: 5, MaxBadRows: 2, ZeroBased: true}
	for _, c := range []struct {
		name  string
		model job.Model
		from  job.Source
		add   func(*data.Spec)
	}{
		{"two classes", job.Model{Kind: "logistic"}, from, func(s *data.Spec) { s.LabelMap = "binary" }},
		{"two classes from 1", job.Model{Kind: "logistic"}, based, func(s *data.Spec) { s.LabelBase, s.Classes = 1, 2 }},
		{"three classes", job.Model{Kind: "softmax", Classes: 3}, from, func(s *data.Spec) { s.Classes = 3 }},
		{"three classes from 1", job.Model{Kind: "mlp", Classes: 3}, based, func(s *data.Spec) { s.LabelBase, s.Classes = 1, 3 }},
		{"mlp of two", job.Model{Kind: "mlp"}, from, func(s *data.Spec) { s.LabelMap = "binary" }},
		{"numbers", job.Model{Kind: "linear"}, from, func(*data.Spec) {}},
		{"three files", job.Model{Kind: "linear"}, listed, func(s *data.Spec) { s.More = []string{filepath.Join("d", "g*"), "s3://b/h"} }},
		{"images of two classes", job.Model{Kind: "logistic"}, job.Source{Format: "idx"}, func(s *data.Spec) { *s = data.Spec{Format: "idx", Classes: 2} }},
		{"images of three", job.Model{Kind: "mlp", Classes: 3}, job.Source{Format: "idx"}, func(s *data.Spec) { *s = data.Spec{Format: "idx", Classes: 3} }},
	} {
		spec := want
		c.add(&spec)
		if diff := cmp.Diff(spec, input.Spec(job.Job{Model: c.model}, c.from, "d", nil), cmpopts.IgnoreUnexported(data.Intake{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
