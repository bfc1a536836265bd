package strategy_test

import (
	"slices"
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
)

// TestLabelIsFedThoughNothingReadsIt: metrics may be of another label than the
// loss (one without smoothing, say), which no segment reads.
func TestLabelIsFedThoughNothingReadsIt(t *testing.T) {
	g := graph.New(tensor.F64)
	x, smooth, label := g.Input("x", 2), g.Input("smooth", 0), g.Input("label", 0)
	w := g.Variable("w", graph.Init{}, 2, 1)
	z := g.Reshape(g.MatMul(x, w), tensor.Dynamic)
	step, err := graph.Train(g, graph.Model{
		Task: graph.Binary, Loss: g.LogisticLoss(z, smooth), Weight: g.Count(smooth), Predict: z, Label: label,
	}, optim.Rule{Kind: optim.SGD, LR: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := strategy.Inputs(step, strategy.EvalPlan); !slices.Contains(got, label) || !slices.Contains(got, smooth) {
		t.Errorf("the evaluation is fed %v, want both labels", got)
	}
	if got := strategy.Inputs(step, strategy.StepPlan); slices.Contains(got, label) {
		t.Error("training is fed a label that it does not read")
	}
}
