package model

import (
	"math"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// glorot returns the initial values of a layer with the given numbers of inputs
// and outputs: they keep the variance of activations and gradients alike.
func glorot(in, out int, seed uint64) graph.Init {
	return graph.Init{Kind: graph.Uniform, Scale: math.Sqrt(6 / float64(in+out)), Seed: seed}
}

// each names a parameter that is there once for each column.
func each(name string, col Column, cols []Column) string {
	if len(cols) == 1 {
		return name
	}
	return name + "." + col.Name
}

// linear returns Σ x·w over the columns, [B out], without a bias: a matrix
// product for a dense column, the weighted sum of rows of w for a ragged one,
// in which absent features cost nothing.
func linear(g *graph.Graph, name string, cols []Column, out int, table bool, init func(Column) graph.Init) *graph.Node {
	var sum *graph.Node
	for _, col := range cols {
		var y *graph.Node
		wname := each(name, col, cols)
		x := g.Ragged(col.Name)
		switch {
		case !col.Ragged:
			y = g.MatMul(g.Input(col.Name, col.Dim), g.Variable(wname, init(col), col.Dim, out))
		case table:
			rows := g.GatherRows(g.Table(wname, init(col), col.Dim, out), x.Keys())
			y = g.Bag(rows, x.Pos(), x.Offsets(), x.Weights())
		default:
			y = g.Bag(g.Variable(wname, init(col), col.Dim, out), x.IDs(), x.Offsets(), x.Weights())
		}
		sum = plus(g, sum, y)
	}
	return sum
}

// plus is sum + y, where a sum may be nil: nothing yet.
func plus(g *graph.Graph, sum, y *graph.Node) *graph.Node {
	if sum == nil {
		return y
	}
	return g.Add(sum, y)
}

// vector returns [B 1] as [B].
func vector(g *graph.Graph, x *graph.Node) *graph.Node { return g.Reshape(x, tensor.Dynamic) }

// zero starts a parameter at 0.
func zero(Column) graph.Init { return graph.Init{Kind: graph.Zeros} }

// scores returns the scores [B out] of a linear model.
func scores(g *graph.Graph, c Config, out int) *graph.Node {
	return g.Add(linear(g, "w", c.Inputs, out, c.Table, zero), g.Variable("b", graph.Init{}, out))
}

// binary ends a model with one logit [B 1].
func binary(g *graph.Graph, c Config, logit *graph.Node) graph.Model {
	z, y := g.Named("logit", vector(g, logit)), g.Input(c.Label, 0)
	m := graph.Model{Task: graph.Binary, Predict: z, Label: y}
	m.Loss, m.Weight = loss(g, c, y, func() *graph.Node { return g.LogisticLoss(z, y) }, func() *graph.Node {
		return g.Sub(g.Softplus(z), g.Mul(z, y))
	})
	return m
}

// multiclass ends a model with the logits of classes [B C].
func multiclass(g *graph.Graph, c Config, logits *graph.Node) graph.Model {
	z, y := g.Named("logits", logits), g.Input(c.Label, 0)
	m := graph.Model{Task: graph.Multiclass, Predict: z, Label: y}
	m.Loss, m.Weight = loss(g, c, y, func() *graph.Node { return g.SoftmaxLoss(z, y) }, func() *graph.Node {
		return crossEntropy(g, z, y, c.Classes)
	})
	return m
}

// classify ends a model with what logits makes: one logit [B 1] if there are no
// Classes, else one a class.
func classify(g *graph.Graph, c Config, logits func(out int) *graph.Node) graph.Model {
	if c.Classes == 0 {
		return binary(g, c, logits(1))
	}
	return multiclass(g, c, logits(c.Classes))
}

// Logistic is logistic regression: logit = Σ x·w + b.
func Logistic(g *graph.Graph, c Config) graph.Model { return binary(g, c, scores(g, c, 1)) }

// Softmax is multinomial logistic regression: logits = Σ x·w + b.
func Softmax(g *graph.Graph, c Config) graph.Model { return multiclass(g, c, scores(g, c, c.Classes)) }

// Linear is linear regression by least squares: value = Σ x·w + b.
func Linear(g *graph.Graph, c Config) graph.Model {
	p, y := g.Named("value", vector(g, scores(g, c, 1))), g.Input(c.Label, 0)
	m := graph.Model{Task: graph.Regression, Predict: p, Label: y}
	m.Loss, m.Weight = loss(g, c, y, func() *graph.Node { return g.SquaredLoss(p, y) }, func() *graph.Node {
		return g.Scale(g.Square(g.Sub(p, y)), .5)
	})
	return m
}

// loss returns the sum of the losses of the rows and what the rows count together:
// all, or, where rows have weights, Σ weight·each and Σ weight.
func loss(g *graph.Graph, c Config, y *graph.Node, all, each func() *graph.Node) (sum, weight *graph.Node) {
	if c.Weight == "" {
		return g.Named("loss", all()), g.Named("weight", g.Count(y))
	}
	w := g.Input(c.Weight, 0)
	return g.Named("loss", g.Sum(g.Mul(w, each()))), g.Named("weight_sum", g.Sum(w))
}

// crossEntropy is log Σexp(z) - z_y for every row of logits [B C], as [B], with the
// maximum taken off first so that nothing overflows.
func crossEntropy(g *graph.Graph, z, y *graph.Node, classes int) *graph.Node {
	most := g.MaxAxis(z, 1, true)
	total := g.Add(g.Log(g.SumAxis(g.Exp(g.Sub(z, most)), 1, true)), most)
	number := make([]*graph.Node, classes)
	for k := range number {
		number[k] = g.Const(float64(k), 1, 1)
	}
	hot := g.Equal(g.Reshape(y, tensor.Dynamic, 1), g.Concat(number...))
	return g.Sub(vector(g, total), g.SumRows(g.Mul(hot, z)))
}
