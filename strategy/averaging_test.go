package strategy_test

import (
	"fmt"
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
		{}, {Every: 1, Slots: strategy.AverageSlots}, {Every: 3, Slots: strategy.ResetSlots},
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
				for n := range 6 {
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
