// Command rowcount is gangline with a model and a rule under which training counts:
// the parameter of a feature ends as the number of times that a row with it was
// used. Where every row has a feature of its own, that is how often each row was.
// The tests of package chaos kill it; its jobs say
//
//	model: {kind: rowcount}
//	optimizer: {kind: rowcount, lr: 1}
//
// lr and its schedule are what a use adds, so that epochs can be told apart.
//
// ROWCOUNT_GATE, with the number of the attempt behind it, names a pipe: every process
// that updates parameters reads one byte of it before each step, and so waits for
// whoever holds the pipe.
package main

import (
	"os"

	"github.com/gangline/gangline/cli"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

func main() {
	g := &gate{path: os.Getenv("ROWCOUNT_GATE"), step: -1}
	if g.path != "" {
		g.path += os.Getenv(launch.EnvAttempt)
	}
	os.Exit(cli.Main(
		cli.Model("rowcount", graph.Regression, counts),
		cli.Rule(optim.Custom{Name: "rowcount", F32: count[float32](g), F64: count[float64](g)}),
	))
}

// counts is the sum of the weights of a row's features, and the loss the same: its
// gradient is 1 for every use of a feature.
func counts(g *graph.Graph, c model.Config) graph.Model {
	col := c.Inputs[0]
	x, zeros := g.Ragged(col.Name), graph.Init{Kind: graph.Zeros}
	var z *graph.Node
	if c.Table {
		z = g.Bag(g.GatherRows(g.Table("uses", zeros, col.Dim, 1), x.Keys()), x.Pos(), x.Offsets(), x.Weights())
	} else {
		z = g.Bag(g.Variable("uses", zeros, col.Dim, 1), x.IDs(), x.Offsets(), x.Weights())
	}
	y := g.Input(c.Label, 0)
	p := g.Reshape(z, tensor.Dynamic)
	return graph.Model{Task: graph.Regression, Predict: p, Label: y, Loss: g.Sum(p), Weight: g.Count(y)}
}

// count adds the gradient's sum, times the rate.
func count[T optim.Float](gate *gate) func(u optim.Pass[T], p, g []T, slots [][]T) {
	return func(u optim.Pass[T], p, g []T, _ [][]T) {
		if isCount(g) {
			gate.pass(u.Step)
		}
		for i := range p {
			p[i] += u.Rate * g[i]
		}
	}
}

// isCount tells the gradients of a run from the fractions that a rule is tried on
// before any process is started.
func isCount[T optim.Float](g []T) bool {
	for _, v := range g {
		if v < 0 || v != T(int64(v)) {
			return false
		}
	}
	return true
}
