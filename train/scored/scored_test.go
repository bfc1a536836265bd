package scored

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gangline/gangline/graph"
)

// Outputs are turned into what each task says, in memory that held other rows before.
func TestFill(t *testing.T) {
	log := math.Log
	for _, c := range []struct {
		task           graph.Task
		label, predict []float64
		value          []float64
		class          []int
	}{
		{graph.Regression, []float64{0, 0}, []float64{-2, 7}, []float64{-2, 7}, nil},
		{graph.Binary, []float64{0, 1}, []float64{0, log(3)}, []float64{.5, .75}, nil},
		{graph.Multiclass, []float64{2, 0}, []float64{0, log(2), 0, log(6), 0, 0}, []float64{.5, .75}, []int{1, 0}},
		{graph.Tokens, []float64{1, 0, 1, 1}, []float64{0, log(3), 0, 0, 0, 0, 0, log(3)}, []float64{log(.75 * .5), log(.5 * .75)}, nil},
	} {
		s := Rows{Task: c.task, Label: c.label, Value: []float64{9, 9, 9}, Class: []int{9}, room: make([]float64, 5)}
		s.Fill(2, c.predict)
		if d := cmp.Diff(c.value, s.Value, cmpopts.EquateApprox(0, 1e-12)); d != "" {
			t.Errorf("%s: %s", c.task, d)
		}
		if d := cmp.Diff(c.class, s.Class, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: classes: %s", c.task, d)
		}
		if c.task == graph.Tokens {
			if got := s.Perplexity(0); s.Tokens != 2 || math.Abs(got-math.Sqrt(8./3)) > 1e-12 {
				t.Errorf("%d tokens a row, perplexity %v", s.Tokens, got)
			}
		}
	}
}
