package strategy_test

import (
	"slices"
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
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

// TestPlansShareNoTag: a message of one plan of a program that comes late must
// not pass for one of the other.
func TestPlansShareNoTag(t *testing.T) {
	for name, step := range steps(t) {
		program, err := strategy.PS(step, strategy.Cluster{Workers: 2, Servers: 2})
		if err != nil {
			t.Fatal(err)
		}
		tags := func(p *plan.Plan) (all []uint32) {
			for _, task := range p.Ranks[0] {
				if task.Tag != 0 {
					all = append(all, task.Tag)
				}
			}
			return all
		}
		step, eval := tags(program.Plans[strategy.StepPlan]), tags(program.Plans[strategy.EvalPlan])
		if len(step) == 0 || len(eval) == 0 {
			t.Fatalf("%s: no tags to compare", name)
		}
		for _, tag := range eval {
			if slices.Contains(step, tag) {
				t.Errorf("%s: tag %d is in both plans", name, tag)
			}
		}
	}
}
