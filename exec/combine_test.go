package exec_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// An Add with factors is the sum of its values, each times its factor, and of one
// number more if there is one; it may overwrite its first value, and it may fill.
func TestAddWithFactors(t *testing.T) {
	d := newDraft(1, 1)
	w, v := d.value("w", plan.Param, 0, 3), d.value("v", plan.Param, 0, 3)
	fill, into := d.value("fill", plan.Param, 0, 3), d.value("into", plan.Param, 0, 3)
	for _, task := range []plan.Task{
		{Name: "into", In: []plan.Ref{w, v}, Out: []plan.Ref{into}, Factors: []float64{2, -.5, 10}},
		{Name: "copy", In: []plan.Ref{v}, Out: []plan.Ref{w}, Factors: []float64{1}},
		{Name: "in place", In: []plan.Ref{v, w}, Out: []plan.Ref{v}, Factors: []float64{3, .25}},
		{Name: "fill", Out: []plan.Ref{fill}, Factors: []float64{.1}},
	} {
		task.Kind, task.Lane = plan.Add, plan.Lane{Kind: plan.Device}
		d.add([]int{0}, task)
	}
	cfg := d.config(0, nil)
	cfg.State["w"], cfg.State["v"] = tensor.From([]float64{1, 2, 3}, 3), tensor.From([]float64{4, 8, 16}, 3)
	cfg.State["fill"] = tensor.From([]float64{math.NaN(), 1, math.Inf(1)}, 3)
	_, errs := runAll(t, nil, 1, cfg)
	must(t, errs)
	for name, want := range map[string][]float64{
		"into": {10, 10, 8}, "w": {4, 8, 16}, "v": {13, 26, 52}, "fill": {.1, .1, .1},
	} {
		if d := cmp.Diff(want, cfg.State[name].F64()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// Factors that do not fit are refused with the task's name.
func TestAddWithFactorsRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		in      []string
		factors []float64
		want    string
	}{
		{"too few", []string{"a", "b"}, []float64{1}, "1 factors for 2 values"},
		{"too many", []string{"a"}, []float64{1, 2, 3}, "3 factors for 1 values"},
		{"shape", []string{"a", "long"}, []float64{1, 1}, "cannot add f64 [4] to f64 [3]"},
		{"overwritten", []string{"a", "out"}, []float64{1, 1}, "may overwrite only its first value"},
	} {
		d := newDraft(1, 1)
		refs := map[string]plan.Ref{
			"a": d.value("a", plan.Param, 0, 3), "b": d.value("b", plan.Param, 0, 3),
			"long": d.value("long", plan.Param, 0, 4), "out": d.value("out", plan.Param, 0, 3),
		}
		task := plan.Task{Kind: plan.Add, Name: "sum", Out: []plan.Ref{refs["out"]}, Factors: c.factors, Lane: plan.Lane{Kind: plan.Device}}
		for _, name := range c.in {
			task.In = append(task.In, refs[name])
		}
		d.add([]int{0}, task)
		if _, err := exec.New(d.config(0, nil)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"sum"`) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
