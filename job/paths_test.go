package job_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/job"
)

// Every path can be set, and every word of a field is known to it.
func TestPathsAndValues(t *testing.T) {
	paths := job.Paths()
	if len(paths) < 60 || !slices.Contains(paths, "data.eval.path") || !slices.Contains(paths, "optimizer.schedule.kind") {
		t.Fatalf("paths: %v", paths)
	}
	const least = "model: {kind: logistic}\noptimizer: {kind: sgd, lr: 0.1}\ndata: {train: {format: libsvm, path: a}}\n"
	words := 0
	for _, p := range paths {
		if _, err := job.Parse("test", []byte(least), []string{p + "=[{"}); err == nil || strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s cannot be set: %v", p, err)
		}
		for _, v := range (job.Extensions{}).Values(p) {
			words++
			_, err := job.Parse("test", []byte(least), []string{p + "=" + v})
			if err != nil && (strings.Contains(err.Error(), "is not known") || strings.Contains(err.Error(), "does not fit") || strings.Contains(err.Error(), "unknown")) {
				t.Errorf("%s=%s: %v", p, v, err)
			}
		}
	}
	if words < 50 {
		t.Errorf("%d words only", words)
	}
	if v := (job.Extensions{}).Values("nothing"); v != nil {
		t.Errorf("of no field: %v", v)
	}
}

// The column of data.group is that of the AUC within groups, of models that have one.
func TestGroupIsOfTests(t *testing.T) {
	const text = "optimizer: {kind: sgd, lr: 0.1}\ndata: {group: user, label: {column: y}, train: {format: csv, path: a}}\n"
	for model, want := range map[string]string{"{kind: logistic}": "group", "{kind: softmax, classes: 3}": ""} {
		j, err := job.Parse("test", []byte("model: "+model+"\n"+text), nil)
		if err != nil || j.Eval.Group != want {
			t.Errorf("%s: group %q, %v", model, j.Eval.Group, err)
		}
	}
	j, err := job.Parse("test", []byte("model: {kind: logistic}\n"+text), []string{"eval.group=num.0"})
	if err != nil || j.Eval.Group != "num.0" {
		t.Errorf("what is said does not count: %q, %v", j.Eval.Group, err)
	}
}
