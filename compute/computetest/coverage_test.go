package computetest

import (
	"testing"

	"github.com/gangline/gangline/compute/computetest/internal/ops"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
)

// TestEveryOperatorHasACase proves that no operator is left out of the suite.
func TestEveryOperatorHasACase(t *testing.T) {
	have := map[graph.Op]bool{
		graph.Update: true, graph.UpdateRows: true, graph.UpdateScale: true, // see updates
		graph.Cast: true, graph.Round: true, // see gradtest.RunHalves
	}
	for _, c := range allCases() {
		have[c.op] = true
	}
	for _, op := range ops.All(t, "../../graph/op.go") {
		if !have[op] {
			t.Errorf("no case for operator %s", op)
		}
	}
}

// TestEveryRuleHasACase proves the same of update rules.
func TestEveryRuleHasACase(t *testing.T) {
	have := map[optim.Kind]bool{}
	for _, r := range rules() {
		have[r.Kind] = true
	}
	for _, k := range optim.Kinds() {
		if !have[k] {
			t.Errorf("no case for rule %s", k)
		}
	}
}
