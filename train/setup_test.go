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
	from := job.Source{Format: "libsvm", Path: "f", Features: 9, Rows: 5, MaxBadRows: 2, ZeroBased: true}
	based := from
	based.LabelBase = 1
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
	} {
		spec := want
		c.add(&spec)
		if diff := cmp.Diff(spec, input.Spec(job.Job{Model: c.model}, c.from, "d", nil), cmpopts.IgnoreUnexported(data.Intake{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
