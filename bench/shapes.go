package bench

import (
	"strconv"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// label is the column that models predict.
const label = "label"

// The step cases train on one batch over and over, dlrm on eight.
const (
	oneBatch    = 1
	dlrmBatches = 8
)

// Fields of a click log in the form of Criteo's.
const (
	fields    = 26
	numbers   = 13
	embedding = 16
)

func dense(name string, dim int) data.ColumnSpec {
	return data.ColumnSpec{Name: name, Kind: data.DenseColumn, Dim: dim}
}

func ragged(name string, ids, perRow int) data.ColumnSpec {
	return data.ColumnSpec{Name: name, Kind: data.RaggedColumn, Dim: ids, PerRow: perRow}
}

func mlp() spec {
	return spec{
		model: model.MLP, config: model.Config{Hidden: []int{512, 512}, Classes: 10},
		rule: optim.Rule{Kind: optim.SGD, LR: 0.01}, batch: 128, batches: oneBatch,
		columns: []data.ColumnSpec{dense("x", 784), dense(label, 1)},
	}
}

func gpt() spec {
	const context = 128
	return spec{
		model: model.GPT, config: model.Config{Layers: 4, Heads: 4, Dim: 256},
		rule: optim.Rule{Kind: optim.Adam, LR: 1e-3}, batch: 8, batches: oneBatch,
		columns: []data.ColumnSpec{ragged("text", 256, context), dense(label, context)},
	}
}

// clicks are the columns of a click log with a table for each field.
func clicks(rows int) []data.ColumnSpec {
	var columns []data.ColumnSpec
	for i := range fields {
		columns = append(columns, ragged("field"+strconv.Itoa(i), rows, 1))
	}
	return append(columns, dense("numbers", numbers), dense(label, 1))
}

func ctr(rows, batch int) func() spec {
	return func() spec {
		return spec{
			model: embedAndLayers, config: model.Config{Hidden: []int{256, 128}, Dim: embedding},
			rule: optim.Rule{Kind: optim.SGD, LR: 0.01}, batch: batch, batches: oneBatch, columns: clicks(rows),
		}
	}
}

// embedAndLayers is a network that reads embeddings and dense columns side by
// side, without the wide part of model.CTR.
func embedAndLayers(g *graph.Graph, c model.Config) graph.Model {
	var parts []*graph.Node
	width := 0
	for _, col := range c.Inputs {
		if !col.Ragged {
			parts = append(parts, g.Input(col.Name, col.Dim))
			width += col.Dim
			continue
		}
		x := g.Ragged(col.Name)
		init := graph.Init{Kind: graph.Normal, Scale: 1, Seed: c.Seed}
		rows := g.GatherRows(g.Table("embed."+col.Name, init, col.Dim, c.Dim), x.Keys())
		parts = append(parts, g.Gather(rows, x.Pos()))
		width += c.Dim
	}
	h := g.Concat(parts...)
	for i, out := range append(c.Hidden, 1) {
		n := strconv.Itoa(i + 1)
		w := g.Variable("w"+n, graph.Init{Kind: graph.Uniform, Scale: 0.05, Seed: c.Seed}, width, out)
		if i > 0 {
			h = g.Relu(h)
		}
		h = g.Add(g.MatMul(h, w), g.Variable("b"+n, graph.Init{}, out))
		width = out
	}
	z, y := g.Reshape(h, tensor.Dynamic), g.Input(c.Label, 0)
	return graph.Model{Task: graph.Binary, Loss: g.LogisticLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}
}

func dlrm(rows, batch, batches int) func() spec {
	return func() spec {
		return spec{
			model: model.DLRM, config: model.Config{Bottom: []int{64}, Hidden: []int{256, 64}, Dim: embedding},
			rule: optim.Rule{Kind: optim.SGD, LR: 0.01}, batch: batch, batches: batches, columns: clicks(rows),
		}
	}
}
