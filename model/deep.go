package model

import (
	"strconv"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// embedScale is the standard deviation of a new embedding row: small, so that a
// row that training has hardly touched says little.
const embedScale = 0.01

// MLP is a network of fully connected layers with rectified units: h1 =
// relu(Σ x·w1 + b1), and so on; the last layer is linear.
func MLP(g *graph.Graph, c Config) graph.Model {
	fanIn := 0
	for _, col := range c.Inputs {
		fanIn += entries(col)
	}
	first := linear(g, "w1", c.Inputs, c.Hidden[0], false, func(Column) graph.Init {
		return glorot(fanIn, c.Hidden[0], c.Seed)
	})
	h := g.Relu(g.Add(first, g.Variable("b1", graph.Init{}, c.Hidden[0])))
	if c.Classes == 0 {
		return binary(g, c, layers(g, h, 2, c.Hidden, 1, c.Seed))
	}
	return multiclass(g, c, layers(g, h, 2, c.Hidden, c.Classes, c.Seed))
}

// entries is how many features of a column are not 0 in one row, as far as the
// schema says.
func entries(col Column) int {
	if col.Ragged && col.PerRow > 0 {
		return col.PerRow
	}
	return col.Dim
}

// layers appends layers number from, from+1, ... to h, whose width is
// widths[0]: one layer for each further width, then the linear one to out.
func layers(g *graph.Graph, h *graph.Node, from int, widths []int, out int, seed uint64) *graph.Node {
	for i, in := range widths {
		last, width := i == len(widths)-1, out
		if !last {
			width = widths[i+1]
		}
		n := strconv.Itoa(from + i)
		w := g.Variable("w"+n, glorot(in, width, seed), in, width)
		h = g.Add(g.MatMul(h, w), g.Variable("b"+n, graph.Init{}, width))
		if !last {
			h = g.Relu(h)
		}
	}
	return h
}

// CTR predicts clicks as wide and deep models do (Cheng et al. 2016): a linear
// model over all features beside a network that reads the dense columns and the
// embeddings of all entries, side by side. wide and embed are tables over the
// same keys. Entry weights count in the wide part only.
func CTR(g *graph.Graph, c Config) graph.Model {
	var dense, ragged []Column
	for _, col := range c.Inputs {
		if col.Ragged {
			ragged = append(ragged, col)
		} else {
			dense = append(dense, col)
		}
	}
	var deep []*graph.Node
	width := 0
	for _, col := range dense {
		deep = append(deep, g.Input(col.Name, col.Dim))
		width += col.Dim
	}
	for _, col := range ragged {
		x := g.Ragged(col.Name)
		init := graph.Init{Kind: graph.Normal, Scale: embedScale, Seed: c.Seed}
		rows := g.GatherRows(g.Table(each("embed", col, ragged), init, col.Dim, c.Dim), x.Keys())
		deep = append(deep, g.Reshape(g.Gather(rows, x.Pos()), tensor.Dynamic, col.PerRow*c.Dim))
		width += col.PerRow * c.Dim
	}
	logit := layers(g, g.Concat(deep...), 1, append([]int{width}, c.Hidden...), 1, c.Seed)
	logit = g.Add(logit, linear(g, "wide", ragged, 1, true, zero))
	if len(dense) > 0 {
		logit = g.Add(logit, linear(g, "linear", dense, 1, false, zero))
	}
	return binary(g, c, logit)
}
