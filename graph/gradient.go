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
	// Grad is the node of the gradient: the variable's shape, or [K D]. In a graph of mixed
	// precision that of a variable is of the low type, and that of a table f32. No other
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
			b.give(n, g.seed())
		}
		dy := b.grad[n]
		switch {
		case n.Op == Variable && !n.Attr.Frozen || n.Op == Table:
			all = append(all, Gradient{Of: n})
		case dy == nil || n.Op == GatherRows || !b.need[id] || isLowParam(n):
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
			!cuts(n.Op) && slices.ContainsFunc(n.In, func(x *Node) bool { return b.need[x.ID] })
	}
}

// cuts reports whether an operator's result has no gradient by its nature: it
// does not change, or only in jumps.
func cuts(op Op) bool {
	return op == Count || op == Less || op == LessEqual || op == Equal || op == ArgMax
}

// isParam reports whether the gradient of n is the gradient of a parameter.
func isParam(n *Node) bool { return n.Op == Variable || n.Op == GatherRows || isLowParam(n) }

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
		} else if low := b.g.casts[at]; low != nil {
			at = low
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
