package strategy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
)

// TestDocumentedPlans: the plans that docs/plan.md prints are those that the
// strategies make today, in the order of the page.
func TestDocumentedPlans(t *testing.T) {
	page, err := os.ReadFile("../docs/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	g, m, err := model.Build(model.Config{Kind: "logistic", Inputs: []model.Column{{Name: "x", Dim: 4}}, Float: tensor.F32})
	if err != nil {
		t.Fatal(err)
	}
	step, err := graph.Train(g, m, optim.Rule{Kind: optim.Momentum, LR: .1})
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```text\n")[1:]
	made := []struct {
		make    strategy.Strategy
		cluster strategy.Cluster
	}{
		{strategy.AllReduce, strategy.Cluster{Workers: 2}},
		{strategy.PS, strategy.Cluster{Workers: 2, Servers: 1}},
	}
	if len(blocks) != len(made) {
		t.Fatalf("the page has %d plans, want %d", len(blocks), len(made))
	}
	for i, s := range made {
		program, err := s.make(step, s.cluster)
		if err != nil {
			t.Fatal(err)
		}
		text := plan.Format(program.Plans[strategy.StepPlan])
		printed, _, _ := strings.Cut(blocks[i], "```")
		if i > 0 { // of the second the page shows the list only
			_, text, _ = strings.Cut(text, "\nranks")
			text = "ranks" + text
		}
		if d := cmp.Diff(text, printed); d != "" {
			t.Errorf("plan %d of the page is out of date (-made +printed):\n%s\nmade:\n%s", i+1, d, text)
		}
	}
}
