package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// Gradient is the gradient of one trained parameter.
type Gradient struct {
	// Of is the Variable or Table.
	Of *Node
	// Grad is the node of the gradient: the variable's shape, or [K D]. No other
	// node reads it and no two parameters share it, so that a plan may sum over
	// ranks in place.
	Grad *Node
	// Rows is the GatherRows node of a table, nil for a variable.
	Rows *Node
}

// Differentiate appends the nodes that compute the gradient of a scalar loss
// with respect to every trained variable and table, and returns the gradients
// in the order in which the backward pass completes them.
//
// It is reverse mode over the table of gradient functions: nodes are visited
// from the loss back to the sources, and what several readers contribute to a
// node is added. GatherRows ends the way: the gradient of its rows, paired with
// its keys, is the gradient of the table. A parameter that the loss does not
// depend on is an error, because training would never change it.
func Differentiate(g *Graph, loss *Node) ([]Gradient, error) {
	if g.err != nil {
		return nil, g.Err()
	}
	if !g.owns(loss) || len(loss.Shape) != 0 || !loss.DType.IsFloat() {
		return nil, fmt.Errorf("graph: the loss must be a float scalar of this graph")
	}
	b := &backward{g: g, rules: gradients(), grad: map[*Node]*Node{}}
	b.markNeeded()
	var all []Gradient
	for id := len(b.need) - 1; id >= 0 && g.err == nil; id-- {
		n := g.nodes[id]
		if n == loss && b.need[id] {
			b.give(n, g.Const(1))
		}
		dy := b.grad[n]
		switch {
		case n.Op == Variable && !n.Attr.Frozen || n.Op == Table:
			all = append(all, Gradient{Of: n})
		case dy == nil || n.Op == GatherRows || !b.need[id]:
		case b.rules[n.Op] == nil:
			g.fail("node %q: %s has no gradient", n.Name, describe(n.Op, n.In))
		default:
			b.visit(n, dy)
		}
	}
	if g.err != nil {
		return nil, g.Err()
	}
	return b.collect(all, loss)
}

// backward is the state of one Differentiate.
type backward struct {
	g     *Graph
	rules map[Op]gradFunc
	// need says of each forward node whether its value depends on a parameter.
	need []bool
	grad map[*Node]*Node
}

func (b *backward) markNeeded() {
	b.need = make([]bool, len(b.g.nodes))
	for id, n := range b.g.nodes {
		b.need[id] = n.Op == Variable && !n.Attr.Frozen || n.Op == Table ||
			n.Op != Count && slices.ContainsFunc(n.In, func(x *Node) bool { return b.need[x.ID] })
	}
}

// isParam reports whether the gradient of n is the gradient of a parameter.
func isParam(n *Node) bool { return n.Op == Variable || n.Op == GatherRows }

// visit hands the gradient of n to its inputs, to parameters first, since a
// plan may send their gradients off while the rest is computed.
func (b *backward) visit(n, dy *Node) {
	for _, params := range []bool{true, false} {
		for i, x := range n.In {
			if b.need[x.ID] && isParam(x) == params && b.g.err == nil {
				b.visitInput(n, dy, i)
			}
		}
	}
}

func (b *backward) visitInput(n, dy *Node, i int) {
	made, x := len(b.g.nodes), n.In[i]
	dx := b.rules[n.Op](b.g, n, dy, i)
	if dx == nil {
		b.g.fail("node %q: %s has no gradient for input %d, %q", n.Name, describe(n.Op, n.In), i, x.Name)
		return
	}
	if isParam(x) && dx.ID < made {
		dx = b.g.Scale(dx, 1) // others read dx; a parameter's gradient is its own
	}
	b.give(x, dx)
}

// give adds one contribution to the gradient of n.
func (b *backward) give(n, dy *Node) {
	if old := b.grad[n]; old != nil {
		dy = b.g.Add(old, dy)
	}
	b.grad[n] = dy
}

// collect fills in the gradients and sorts them by completion.
func (b *backward) collect(all []Gradient, loss *Node) ([]Gradient, error) {
	for i := range all {
		at := all[i].Of
		if at.Op == Table {
			at = b.g.rows[at]
			all[i].Rows = at
		}
		all[i].Grad = b.grad[at]
		if all[i].Grad == nil {
			return nil, fmt.Errorf("graph: the loss %q does not depend on %s %q: training would never change it",
				loss.Name, all[i].Of.Op, all[i].Of.Name)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("graph: the loss %q depends on no trained variable or table", loss.Name)
	}
	slices.SortFunc(all, func(x, y Gradient) int { return cmp.Compare(x.Grad.ID, y.Grad.ID) })
	return all, nil
}

// gradFunc returns the gradient of input i of n, given the gradient dy of n, or
// nil if the operator has none for that input.
type gradFunc func(g *Graph, n, dy *Node, i int) *Node

// gradients is the table of gradient functions.
func gradients() map[Op]gradFunc {
	return map[Op]gradFunc{
		MatMul: matMulGrad,
		Add:    addGrad, Sub: subGrad, Mul: mulGrad,
		Scale:   func(g *Graph, n, dy *Node, _ int) *Node { return g.Scale(dy, n.Attr.Alpha) },
		Relu:    ofResult(ReluGrad),
		Sigmoid: ofResult(SigmoidGrad),
		Tanh:    ofResult(TanhGrad),
		Softmax: ofResult(SoftmaxGrad),
		Exp:     func(g *Graph, n, dy *Node, _ int) *Node { return g.Mul(dy, n) },
		Log:     ofInput(LogGrad),
		Square:  ofInput(SquareGrad),
		Sum:     like(FillLike),
		SumRows: like(SpreadRows),
		Reshape: like(ReshapeLike),
		Slice:   like(PadSlice),
		Concat:  concatGrad,
		Gather: first(func(g *Graph, n, dy *Node) *Node {
			return g.Apply(GatherGrad, Attr{}, dy, n.In[1], n.In[0])
		}),
		Bag: first(func(g *Graph, n, dy *Node) *Node {
			return g.Apply(BagGrad, Attr{}, dy, n.In[1], n.In[2], n.In[3], n.In[0])
		}),
		LogisticLoss: ofLoss(LogisticGrad),
		SoftmaxLoss:  ofLoss(SoftmaxLossGrad),
		SquaredLoss:  ofLoss(SquaredGrad),
	}
}

// ofResult is for operators whose gradient reads the result: op(y, dy).
func ofResult(op Op) gradFunc {
	return func(g *Graph, n, dy *Node, _ int) *Node { return g.Apply(op, Attr{}, n, dy) }
}

// ofInput is for operators whose gradient reads the input: op(x, dy).
func ofInput(op Op) gradFunc {
	return func(g *Graph, n, dy *Node, _ int) *Node { return g.Apply(op, Attr{}, n.In[0], dy) }
}

// like is for operators that only move values: op(dy, x), with n's settings.
func like(op Op) gradFunc {
	return func(g *Graph, n, dy *Node, _ int) *Node {
		return g.Apply(op, Attr{Axis: n.Attr.Axis, Start: n.Attr.Start, End: n.Attr.End}, dy, n.In[0])
	}
}

// first is for operators with a gradient for their first input only.
func first(f func(g *Graph, n, dy *Node) *Node) gradFunc {
	return func(g *Graph, n, dy *Node, i int) *Node {
		if i != 0 {
			return nil
		}
		return f(g, n, dy)
	}
}

// ofLoss is for losses: op(z, labels, dy).
func ofLoss(op Op) gradFunc {
	return first(func(g *Graph, n, dy *Node) *Node { return g.Apply(op, Attr{}, n.In[0], n.In[1], dy) })
}

// unbroadcast sums dy to the shape of x where they differ.
func unbroadcast(g *Graph, dy, x *Node) *Node {
	if dy.Shape.Equal(x.Shape) {
		return dy
	}
	return g.Apply(Unbroadcast, Attr{}, dy, x)
}

func addGrad(g *Graph, n, dy *Node, i int) *Node {
	if i == 0 {
		return dy
	}
	return unbroadcast(g, dy, n.In[1])
}

func subGrad(g *Graph, n, dy *Node, i int) *Node {
	if i == 0 {
		return dy
	}
	return g.Scale(unbroadcast(g, dy, n.In[1]), -1)
}

func mulGrad(g *Graph, n, dy *Node, i int) *Node {
	if i == 0 {
		return g.Mul(dy, n.In[1])
	}
	return unbroadcast(g, g.Mul(dy, n.In[0]), n.In[1])
}

// matMulGrad follows from d(op(a)·op(b)): for y = a·b, da = dy·bᵀ, db = aᵀ·dy;
// an operand read transposed has the transposed gradient.
func matMulGrad(g *Graph, n, dy *Node, i int) *Node {
	a, b, ta, tb := n.In[0], n.In[1], n.Attr.TransA, n.Attr.TransB
	switch {
	case i == 0 && !ta:
		return g.MatMulT(dy, b, false, !tb)
	case i == 0:
		return g.MatMulT(b, dy, tb, true)
	case !tb:
		return g.MatMulT(a, dy, !ta, false)
	default:
		return g.MatMulT(dy, a, true, ta)
	}
}

// concatGrad cuts the part of input i out of dy.
func concatGrad(g *Graph, n, dy *Node, i int) *Node {
	start := 0
	for _, x := range n.In[:i] {
		start += x.Shape[1]
	}
	return g.Slice(dy, start, start+n.In[i].Shape[1])
}
