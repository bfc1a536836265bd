// Command model is gangline with one more model: a cross network (Wang et al.,
// "Deep & Cross Network for Ad Click Predictions", 2017). All commands work as
// ever, with model.kind cross:
//
//	go run ./examples/custom/model train examples/custom/model/job.yaml
package main

import (
	"os"
	"strconv"

	"github.com/gangline/gangline/cli"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/tensor"
)

func main() { os.Exit(cli.Main(cli.Model("cross", graph.Binary, cross))) }

// layers is the number of times the input is crossed with what came of it.
const layers = 3

// cross puts dense columns and embeddings of ragged ones side by side as x0, and
// crosses it: x ← x0·(x·w) + b + x.
func cross(g *graph.Graph, c model.Config) graph.Model {
	var parts []*graph.Node
	width := 0
	for _, col := range c.Inputs {
		if !col.Ragged {
			parts = append(parts, g.Input(col.Name, col.Dim))
			width += col.Dim
			continue
		}
		ids := g.Ragged(col.Name)
		rows := g.GatherRows(g.Table("embed."+col.Name, normal(c, 0.01), col.Dim, c.Dim), ids.Keys())
		n := col.PerRow * c.Dim
		parts = append(parts, g.Reshape(g.Gather(rows, ids.Pos()), tensor.Dynamic, n))
		width += n
	}
	x0 := g.Concat(parts...)
	x := x0
	for i := range layers {
		n := strconv.Itoa(i + 1)
		s := g.MatMul(x, g.Variable("w"+n, normal(c, 0.05), width, 1)) // [B 1]
		b := g.Variable("b"+n, graph.Init{}, width)
		x = g.Add(g.Add(g.Mul(x0, s), b), x)
	}
	out := g.MatMul(x, g.Variable("out", normal(c, 0.05), width, 1))
	z := g.Named("logit", g.Reshape(g.Add(out, g.Variable("bias", graph.Init{}, 1)), tensor.Dynamic))
	y := g.Input(c.Label, 0)
	return graph.Model{Task: graph.Binary, Loss: g.LogisticLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}
}

func normal(c model.Config, scale float64) graph.Init {
	return graph.Init{Kind: graph.Normal, Scale: scale, Seed: c.Seed}
}
