package strategy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
)

// averagings are ways to let copies meet, by kind.
func averagings(kind string) []strategy.Averaging {
	if kind == "sma" {
		return []strategy.Averaging{{}, {Every: 3}, {Alpha: 1}, {Alpha: .5, Slots: strategy.KeepSlots}}
	}
	return []strategy.Averaging{
		{},
		{Every: 1, Slots: strategy.AverageSlots},
		{Every: 3, Slots: strategy.ResetSlots},
		{Every: 2, Outer: strategy.Outer{Momentum: .9}},
		{Every: 4, Slots: strategy.AverageSlots, Outer: strategy.Outer{Momentum: .9, LR: .7, Nesterov: true}},
	}
}

// TestEveryAveragingIsProved: the programs of workers that train copies of their own
// hold, whatever the model, the number of workers, the buckets and the options; and
// their plans read back from their texts.
func TestEveryAveragingIsProved(t *testing.T) {
	models := steps(t)
	for _, kind := range []string{"localsgd", "sma"} {
		build, err := strategy.ByName(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"logistic", "softmax", "mlp"} {
			for i, a := range averagings(kind) {
				for _, n := range []int{0, 1, 2, 4} {
					c := strategy.Cluster{Workers: n + 1, Micro: i % 3, Bucket: []int{0, 1, 100}[n%3], Averaging: a}
					t.Run(fmt.Sprintf("%s/%s/%d/%d", kind, name, i, c.Workers), func(t *testing.T) {
						program, err := build(models[name], c)
						if err != nil {
							t.Fatal(err)
						}
						if err := check.Program(program); err != nil {
							t.Error(err)
						}
						for _, p := range program.Plans {
							back, err := plan.Parse(plan.Format(p))
							if err != nil {
								t.Fatal(err)
							}
							if plan.Format(back) != plan.Format(p) || plan.Digest(back) != plan.Digest(p) || back.Local != p.Local {
								t.Errorf("%s does not read back as itself", p.Name)
							}
						}
						again, err := build(models[name], c)
						if err != nil || plan.ProgramDigest(again) != plan.ProgramDigest(program) {
							t.Errorf("the same arguments gave another program (%v)", err)
						}
					})
				}
			}
		}
	}
}

// TestForgottenAveraging: a program of which an averaging is left out, or sums too few
// or counts them wrongly, is refused.
func TestForgottenAveraging(t *testing.T) {
	for _, c := range []struct {
		name  string
		plan  string
		spoil func(p *plan.Program)
		want  string
	}{
		{"cycle", "", func(p *plan.Program) { p.Cycle = p.Cycle[:len(p.Cycle)-1] }, "its copy of w1 has nothing of that of ranks 1 2"},
		{"settle", "", func(p *plan.Program) { p.Settle = "" }, "no plan \"\" lets them settle"},
		{"sum", strategy.AveragePlan, nil, "has nothing of that of rank"},
		{"sum to settle", strategy.SettlePlan, nil, "settling after a cycle leaves it another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program, err := strategy.LocalSGD(steps(t)["mlp"], strategy.Cluster{Workers: 3, Averaging: strategy.Averaging{Every: 4}})
			if err != nil {
				t.Fatal(err)
			}
			if c.spoil != nil {
				c.spoil(program)
			} else {
				p := program.Plans[c.plan]
				for rank := range p.Ranks {
					drop(p, rank, slices.IndexFunc(p.Ranks[rank], func(t plan.Task) bool { return t.Kind == plan.Collective }))
				}
			}
			if err := check.Program(program); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, want %q", err, c.want)
			}
		})
	}
}

// TestLocalStepIsSilent: no task of a step of LocalSGD has to do with another worker.
func TestLocalStepIsSilent(t *testing.T) {
	program, err := strategy.LocalSGD(steps(t)["mlp"], strategy.Cluster{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	p := program.Plans[strategy.StepPlan]
	for rank, tasks := range p.Ranks {
		for i, task := range tasks {
			switch task.Kind {
			case plan.Feed, plan.Compute, plan.Add:
			case plan.Commit:
				if g := p.Groups[task.Group]; len(g) != 1 || g[0] != rank {
					t.Errorf("rank %d: task %d commits over ranks %v", rank, i, g)
				}
			case plan.Send, plan.Recv, plan.Collective, plan.Pull, plan.Push:
				t.Errorf("rank %d: task %d (%s %s) is of others too", rank, i, task.Verb(), task.Name)
			}
		}
	}
	if got := len(program.Cycle); got != strategy.LocalSGDEvery+1 {
		t.Errorf("a cycle of %d turns, want %d steps and an averaging", got, strategy.LocalSGDEvery)
	}
}

// TestAveragingRefusals: what LocalSGD and SMA cannot do they say, with what to change.
func TestAveragingRefusals(t *testing.T) {
	models := steps(t)
	for _, c := range []struct {
		kind, model string
		c           strategy.Cluster
		want        string
	}{
		{"localsgd", "ctr", strategy.Cluster{Workers: 2}, "is a table, of which each worker changes other rows"},
		{"sma", "sparse", strategy.Cluster{Workers: 2}, "take allreduce or ps"},
		{"localsgd", "mlp", strategy.Cluster{Workers: 2, Servers: 1}, "no servers"},
		{"localsgd", "mlp", strategy.Cluster{Workers: 2, Bucket: -1}, "buckets of -1 bytes"},
		{"localsgd", "mlp", strategy.Cluster{Workers: 2, Averaging: strategy.Averaging{Every: -1}}, "every -1: want 1 to 65536 steps"},
		{"localsgd", "mlp", strategy.Cluster{Workers: 2, Averaging: strategy.Averaging{Slots: "mean"}}, `slots "mean": want average, keep or reset`},
		{"localsgd", "mlp", strategy.Cluster{Workers: 2, Averaging: strategy.Averaging{Alpha: .1}}, "alpha is of sma"},
		{"localsgd", "mlp", strategy.Cluster{Workers: 2, Averaging: strategy.Averaging{Outer: strategy.Outer{Momentum: 1}}}, "outer momentum 1"},
		{"localsgd", "mlp", strategy.Cluster{Workers: 2, Averaging: strategy.Averaging{Outer: strategy.Outer{LR: 11}}}, "outer lr 11"},
		{"sma", "mlp", strategy.Cluster{Workers: 2, Averaging: strategy.Averaging{Alpha: 1.5}}, "alpha 1.5: want more than 0 and at most 1"},
		{"sma", "mlp", strategy.Cluster{Workers: 2, Averaging: strategy.Averaging{Slots: strategy.ResetSlots}}, "want keep"},
		{"sma", "mlp", strategy.Cluster{Workers: 2, Averaging: strategy.Averaging{Outer: strategy.Outer{Momentum: .5}}}, "take it with kind localsgd"},
	} {
		build, err := strategy.ByName(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := build(models[c.model], c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want %q", c.kind, c.model, err, c.want)
		}
	}
}
