// Command rule is gangline with one more update rule: Lion (Chen et al.,
// "Symbolic Discovery of Optimization Algorithms", 2023). All commands work as
// ever, with optimizer.kind lion, on workers and on servers:
//
//	go run ./examples/custom/rule train examples/custom/rule/job.yaml
package main

import (
	"os"

	"github.com/gangline/gangline/cli"
	"github.com/gangline/gangline/optim"
)

func main() {
	os.Exit(cli.Main(cli.Rule(optim.Custom{
		Name:  "lion",
		Uses:  []string{"beta1", "beta2", "weight_decay"},
		Slots: []optim.Slot{{Name: "m"}},
		F32:   lion[float32],
		F64:   lion[float64],
	})))
}

// lion moves every element by the rate, in the direction of the sign of
// β₁·m + (1-β₁)·g, and then m towards g.
func lion[T optim.Float](u optim.Pass[T], p, g []T, slots [][]T) {
	beta1, beta2 := T(or(u.Rule.Beta1, 0.9)), T(or(u.Rule.Beta2, 0.99))
	decay, m := T(u.Rule.WeightDecay), slots[0]
	for i := range p {
		mean := u.Mean(g[i], p[i])
		c := m[i] + (1-beta1)*(mean-m[i])
		p[i] -= u.Rate * (sign(c) + decay*p[i])
		m[i] += (1 - beta2) * (mean - m[i])
	}
}

func sign[T optim.Float](x T) T {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

// or returns a setting, or what 0 stands for.
func or(v, zero float64) float64 {
	if v == 0 {
		return zero
	}
	return v
}
