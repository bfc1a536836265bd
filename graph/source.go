package graph

import (
	"github.com/gangline/gangline/graph/internal/line"
	"github.com/gangline/gangline/tensor"
)

// isIndex reports whether the part holds i64 rather than floats.
func (p Part) isIndex() bool {
	return p == Offsets || p == IDs || p == Keys || p == Pos || p == Index
}

// inputName is the name of the input of a part of a column.
func inputName(column string, p Part) string {
	if p == Dense {
		return column
	}
	return column + "." + string(p)
}

// source appends a source under a name that the caller chose.
func (g *Graph) source(name string, op Op, attr Attr) *Node {
	if err := line.CheckName(name); err != nil {
		return g.fail("%s: %w", op, err)
	}
	return g.add(name, op, attr)
}

// Input returns a dense column of the batch: [B dim], or the vector [B] for dim
// 0 (labels). Asking again for the same column returns the same node.
func (g *Graph) Input(column string, dim int) *Node {
	shape := tensor.Shape{tensor.Dynamic, dim}
	if dim == 0 {
		shape = shape[:1]
	}
	if n := g.byName[column]; n != nil && n.Op == Input && n.Attr.Part == Dense && n.Shape.Equal(shape) {
		return n
	}
	return g.source(column, Input, Attr{Column: column, Part: Dense, Shape: shape})
}

// RaggedColumn gives the parts of a ragged column. Each input is made when it
// is first asked for, so a graph has only those that something reads.
type RaggedColumn struct {
	g      *Graph
	column string
}

// Ragged returns the parts of a ragged column of the batch.
//
// Tables are read by
//
//	rows := g.GatherRows(table, x.Keys())
//	sums := g.Bag(rows, x.Pos(), x.Offsets(), x.Weights())
//
// and dense variables by g.Bag(w, x.IDs(), x.Offsets(), x.Weights()).
func (g *Graph) Ragged(column string) RaggedColumn { return RaggedColumn{g: g, column: column} }

func (r RaggedColumn) part(p Part) *Node {
	name := inputName(r.column, p)
	if n := r.g.byName[name]; n != nil && n.Op == Input && n.Attr.Column == r.column {
		return n
	}
	return r.g.source(name, Input, Attr{Column: r.column, Part: p, Shape: tensor.Shape{tensor.Dynamic}})
}

// Offsets is i64 [B+1]: row i owns entries Offsets[i] to Offsets[i+1].
func (r RaggedColumn) Offsets() *Node { return r.part(Offsets) }

// IDs is i64 [E]: the raw ids.
func (r RaggedColumn) IDs() *Node { return r.part(IDs) }

// Weights is float [E]: the weight of each entry.
func (r RaggedColumn) Weights() *Node { return r.part(Weights) }

// Keys is i64 [K]: the distinct ids of the batch, ascending.
func (r RaggedColumn) Keys() *Node { return r.part(Keys) }

// Pos is i64 [E]: for every entry the index of its id in Keys.
func (r RaggedColumn) Pos() *Node { return r.part(Pos) }

// Index returns where each row of the batch stands in the whole batch of the
// step, i64 [B].
func (g *Graph) Index() *Node { return g.Ragged("batch").part(Index) }

// Variable returns a trained dense array of static shape.
func (g *Graph) Variable(name string, init Init, shape ...int) *Node {
	return g.source(name, Variable, Attr{Init: init, Shape: shape})
}

// Frozen returns a dense array that keeps its initial value: it has no gradient
// and no update.
func (g *Graph) Frozen(name string, init Init, shape ...int) *Node {
	return g.source(name, Variable, Attr{Init: init, Shape: shape, Frozen: true})
}

// Table returns a trained array [rows dim] of which a step touches only the
// rows that its keys name. Only GatherRows reads it.
func (g *Graph) Table(name string, init Init, rows, dim int) *Node {
	return g.source(name, Table, Attr{Init: init, Shape: tensor.Shape{rows, dim}})
}

// Const returns an array of static shape with the same value everywhere.
func (g *Graph) Const(value float64, shape ...int) *Node {
	return g.add("", Const, Attr{Value: value, Shape: shape})
}
