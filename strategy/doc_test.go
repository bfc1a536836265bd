package strategy_test

import (
	"flag"
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

var rewrite = flag.Bool("rewrite", false, "write the plans of docs/plan.md anew")

// TestDocumentedPlans: the plans that docs/plan.md prints are those that the
// strategies make today, in the order of the page, and the line that it explains
// is one of the first.
func TestDocumentedPlans(t *testing.T) {
	const path = "../docs/plan.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const open, shut = "```text\n", "```"
	made := documented(t)
	parts := strings.Split(string(page), open)
	if len(parts) != len(made)+1 {
		t.Fatalf("the page has %d plans, want %d", len(parts)-1, len(made))
	}
	for i, text := range made {
		_, rest, _ := strings.Cut(parts[i+1], shut)
		parts[i+1] = text + shut + rest
	}
	now := strings.Join(parts, open)
	if now != string(page) && *rewrite {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != string(page) {
		t.Errorf("the page is out of date; go test ./strategy -run DocumentedPlans -rewrite writes it anew (-page +now):\n%s",
			cmp.Diff(strings.Split(string(page), "\n"), strings.Split(now, "\n")))
	}
	_, rest, _ := strings.Cut(now, "## How to read a task\n\n")
	line, _, _ := strings.Cut(rest, "\n")
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if line == "" || !strings.Contains(words(made[0]), words(line)) {
		t.Errorf("%q, which the page explains, is no line of its first plan", line)
	}
}

// documented makes the plans of the page: all of the first, and of the others
// the task list only.
func documented(t *testing.T) []string {
	t.Helper()
	g, m, err := model.Build(model.Config{Kind: "logistic", Inputs: []model.Column{{Name: "x", Dim: 4}}, Float: tensor.F32})
	if err != nil {
		t.Fatal(err)
	}
	step, err := graph.Train(g, m, optim.Rule{Kind: optim.Momentum, LR: .1})
	if err != nil {
		t.Fatal(err)
	}
	show := func(build strategy.Strategy, c strategy.Cluster) string {
		program, err := build(step, c)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Format(program.Plans[strategy.StepPlan])
	}
	whole := show(strategy.AllReduce, strategy.Cluster{Workers: 2, Bucket: 1})
	_, fused, _ := strings.Cut(show(strategy.AllReduce, strategy.Cluster{Workers: 2}), "\nranks")
	_, list, _ := strings.Cut(show(strategy.PS, strategy.Cluster{Workers: 2, Servers: 1}), "\nranks")
	_, sharded, _ := strings.Cut(show(strategy.Zero, strategy.Cluster{Workers: 2, Stage: 2}), "\nranks")
	return []string{whole, "ranks" + list, "ranks" + fused, "ranks" + sharded}
}
