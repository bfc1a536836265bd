package model

import (
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// embedScale is the standard deviation of a new embedding row: small, so that a
// row that training has hardly touched says little.
const embedScale = 0.01

// FM is a factorisation machine of degree two (Rendle 2010): every feature has
// a weight and a vector, and the logit is Σ x·w + b and the dot product of each
// two vectors, times both features. The pairs cost no more than a sum does:
// Σ over i<j of v_i·v_j = (|Σ v|² - Σ |v|²)/2.
func FM(g *graph.Graph, c Config) graph.Model {
	var sum, squares *graph.Node
	for _, col := range c.Inputs {
		name, x := each("embed", col, c.Inputs), g.Ragged(col.Name)
		var s, q *graph.Node
		if col.Ragged {
			rows := g.GatherRows(g.Table(name, embedding(c), col.Dim, c.Dim), x.Keys())
			s = g.Bag(rows, x.Pos(), x.Offsets(), x.Weights())
			q = g.Bag(g.Square(rows), x.Pos(), x.Offsets(), g.Square(x.Weights()))
		} else {
			dense, v := g.Input(col.Name, col.Dim), g.Variable(name, embedding(c), col.Dim, c.Dim)
			s, q = g.MatMul(dense, v), g.MatMul(g.Square(dense), g.Square(v))
		}
		sum, squares = plus(g, sum, s), plus(g, squares, q)
	}
	pairs := g.Scale(g.SumAxis(g.Sub(g.Square(sum), squares), -1, true), .5)
	c.Table = true
	return binary(g, c, g.Add(scores(g, c, 1), pairs))
}

// embedding is what the rows of a table of vectors start from.
func embedding(c Config) graph.Init {
	return graph.Init{Kind: graph.Normal, Scale: embedScale, Seed: c.Seed}
}

// split returns the dense and the ragged columns, in order.
func split(cols []Column) (dense, ragged []Column) {
	for _, col := range cols {
		if col.Ragged {
			ragged = append(ragged, col)
		} else {
			dense = append(dense, col)
		}
	}
	return dense, ragged
}

// vectors returns the embeddings of all entries of ragged columns, [B F dim] for
// each column, and the sum of the F.
func vectors(g *graph.Graph, c Config, ragged []Column) (parts []*graph.Node, fields int) {
	for _, col := range ragged {
		x := g.Ragged(col.Name)
		rows := g.GatherRows(g.Table(each("embed", col, ragged), embedding(c), col.Dim, c.Dim), x.Keys())
		parts = append(parts, g.Reshape(g.Gather(rows, x.Pos()), tensor.Dynamic, col.PerRow, c.Dim))
		fields += col.PerRow
	}
	return parts, fields
}

// join is Concat, which one value alone does not need.
func join(g *graph.Graph, parts []*graph.Node) *graph.Node {
	if len(parts) == 1 {
		return parts[0]
	}
	return g.Concat(parts...)
}

// denseInputs returns the dense columns side by side, and their width.
func denseInputs(g *graph.Graph, dense []Column) (parts []*graph.Node, width int) {
	for _, col := range dense {
		parts = append(parts, g.Input(col.Name, col.Dim))
		width += col.Dim
	}
	return parts, width
}

// wideAndDeep returns the logit of a linear model over all features beside a
// network that reads the dense columns and the embeddings of all entries, side by
// side, and these embeddings, [B F dim]. wide and embed are tables over the same
// keys. Entry weights count in the wide part only.
func wideAndDeep(g *graph.Graph, c Config) (logit, embedded *graph.Node) {
	dense, ragged := split(c.Inputs)
	deep, width := denseInputs(g, dense)
	parts, fields := vectors(g, c, ragged)
	embedded = join(g, parts)
	deep = append(deep, g.Reshape(embedded, tensor.Dynamic, fields*c.Dim))
	width += fields * c.Dim
	logit = layers(g, c, join(g, deep), "", 1, append([]int{width}, c.Hidden...), 1)
	logit = g.Add(logit, linear(g, "wide", ragged, 1, true, zero))
	if len(dense) > 0 {
		logit = g.Add(logit, linear(g, "linear", dense, 1, false, zero))
	}
	return logit, embedded
}

// CTR predicts clicks as wide and deep models do (Cheng et al. 2016).
func CTR(g *graph.Graph, c Config) graph.Model {
	logit, _ := wideAndDeep(g, c)
	return binary(g, c, logit)
}

// DeepFM is CTR with the dot products of all pairs of embeddings in the logit
// (Guo et al. 2017): the embeddings serve a factorisation machine and the
// network alike.
func DeepFM(g *graph.Graph, c Config) graph.Model {
	logit, embedded := wideAndDeep(g, c)
	return binary(g, c, g.Add(logit, g.Reshape(g.FMInteraction(embedded), tensor.Dynamic, 1)))
}

// DLRM is the deep learning recommendation model (Naumov et al. 2019): a bottom
// network makes one more vector of the dense columns, and the top network reads
// it beside the dot products of all pairs of vectors. Entry weights do not count.
func DLRM(g *graph.Graph, c Config) graph.Model {
	dense, ragged := split(c.Inputs)
	parts, width := denseInputs(g, dense)
	bottom := g.Relu(layers(g, c, join(g, parts), "bottom.", 1, append([]int{width}, c.Bottom...), c.Dim))
	embedded, fields := vectors(g, c, ragged)
	all := g.Concat(append([]*graph.Node{g.Reshape(bottom, tensor.Dynamic, 1, c.Dim)}, embedded...)...)
	width = c.Dim + (fields+1)*fields/2
	top := g.Concat(bottom, g.DotInteraction(all))
	return binary(g, c, layers(g, c, top, "", 1, append([]int{width}, c.Hidden...), 1))
}
