package gradtest

import (
	"testing"

	"github.com/gangline/gangline/compute/computetest/internal/ops"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// TestEveryGradientHasACase proves that the cases meet every operator, and every
// one that a gradient is made of; but for those without a gradient.
func TestEveryGradientHasACase(t *testing.T) {
	have := map[graph.Op]bool{
		graph.LessEqual: true, graph.Equal: true, graph.ArgMax: true, graph.Count: true, graph.Float: true,
		graph.Update: true, graph.UpdateRows: true, graph.UpdateScale: true,
		graph.Cast: true, graph.Round: true, // of RunHalves
	}
	for _, c := range append(gradientCases(), layerCases()...) {
		g := graph.New(tensor.F64)
		if _, err := graph.Differentiate(g, c.build(g)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, n := range g.Nodes() {
			have[n.Op] = true
		}
	}
	for _, op := range ops.All(t, "../../../graph/op.go") {
		if !have[op] {
			t.Errorf("no gradient meets operator %s", op)
		}
	}
}
