package fuse

import (
	"slices"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
)

// joins finds each concatenation with what it alone reads and what can be computed
// in its place: gathered rows, also in another shape, and dot products.
func (f *fuser) joins() []compute.Group {
	var groups []compute.Group
	for _, n := range f.seg.Nodes {
		if n.Op != graph.Concat {
			continue
		}
		var nodes []*graph.Node
		for _, x := range n.In {
			if source := Placed(x, n.Attr.Axis); source != nil && f.alone(source, n) {
				nodes = append(nodes, f.between(source, n)...)
			}
		}
		if len(nodes) > 0 {
			groups = append(groups, f.moves(append(nodes, n)))
		}
	}
	return groups
}

// cuts finds each gradient of a gather or of dot products that reads a Slice, which
// nothing else does. It can be computed from where the piece is.
func (f *fuser) cuts() []compute.Group {
	var groups []compute.Group
	for _, n := range f.seg.Nodes {
		if source := cutFrom(n); source != nil && f.alone(source, n) {
			groups = append(groups, f.moves(append(f.between(source, n), n)))
		}
	}
	return groups
}

// Placed returns the node that can be computed in its place in a concatenation
// along an axis, of which x is an input; nil if there is none.
func Placed(x *graph.Node, axis int) *graph.Node {
	switch source := shaped(x); {
	case x.Op == graph.DotInteraction && axis == 1:
		return x
	case source.Op == graph.Gather && wholeRows(source, x, axis):
		return source
	}
	return nil
}

// cutFrom returns the Slice that n can read in its place, nil if there is none.
func cutFrom(n *graph.Node) *graph.Node {
	switch n.Op {
	case graph.DotInteractionGrad:
		if x := n.In[1]; x.Op == graph.Slice && x.Attr.Axis == 1 {
			return x
		}
	case graph.GatherGrad:
		if x := shaped(n.In[0]); x.Op == graph.Slice && wholeRows(n, x, x.Attr.Axis) {
			return x
		}
	}
	return nil
}

// shaped returns the node that x is another shape of, or x.
func shaped(x *graph.Node) *graph.Node {
	for x.Op == graph.Reshape {
		x = x.In[0]
	}
	return x
}

// wholeRows reports whether the dims of x from an axis on are whole rows of those
// that a node, [n dim], has, whatever the batch.
func wholeRows(rows, x *graph.Node, axis int) bool {
	dims, dim := x.Shape[axis:], rows.Shape[1:]
	return dims.Static() && dim.Static() && dim.Elems() > 0 && dims.Elems() > 0 && dims.Elems()%dim.Elems() == 0
}

// alone reports whether x is a node of the segment, and no output, that only the
// node end reads, once, itself or in another shape.
func (f *fuser) alone(x, end *graph.Node) bool {
	for x != end {
		if _, ok := f.at[x]; !ok || len(f.readers[x]) != 1 || slices.Contains(f.seg.Out, x) || f.taken[x] {
			return false
		}
		x = f.readers[x][0]
	}
	return true
}

// between returns the nodes from x to end, without end.
func (f *fuser) between(x, end *graph.Node) []*graph.Node {
	var nodes []*graph.Node
	for ; x != end; x = f.readers[x][0] {
		nodes = append(nodes, x)
	}
	return nodes
}

// moves makes a group in which the last value alone is kept.
func (f *fuser) moves(nodes []*graph.Node) compute.Group {
	slices.SortFunc(nodes, func(a, b *graph.Node) int { return f.at[a] - f.at[b] })
	g := compute.Group{Nodes: nodes, Kept: make([]bool, len(nodes))}
	g.Kept[len(nodes)-1] = true
	for _, n := range nodes {
		f.taken[n] = true
	}
	return g
}
