// Package fuse finds the nodes of a segment that one kernel can compute.
package fuse

import (
	"slices"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// groupMax is how many nodes a group has at most.
const groupMax = 8

// Groups finds chains, joins and cuts in a segment. Link reports what can be in
// a chain.
func Groups(seg *graph.Segment, link func(n *graph.Node) bool) []compute.Group {
	f := newFuser(seg)
	return slices.Concat(f.chains(link), f.joins(), f.cuts())
}

type fuser struct {
	seg     *graph.Segment
	at      map[*graph.Node]int // where a node stands
	readers map[*graph.Node][]*graph.Node
	taken   map[*graph.Node]bool
}

func newFuser(seg *graph.Segment) *fuser {
	f := &fuser{at: map[*graph.Node]int{}, readers: map[*graph.Node][]*graph.Node{}, taken: map[*graph.Node]bool{}, seg: seg}
	for i, n := range seg.Nodes {
		f.at[n] = i
		for _, x := range n.In {
			f.readers[x] = append(f.readers[x], n)
		}
	}
	return f
}

// chains finds chains of element-wise operators, those that link reports: from a
// product of matrices or an element-wise node on, each next one the first reader
// of the one before, as long as all have one shape.
func (f *fuser) chains(link func(n *graph.Node) bool) []compute.Group {
	var groups []compute.Group
	for _, n := range f.seg.Nodes {
		if f.taken[n] || n.Op != graph.MatMul && !link(n) {
			continue
		}
		nodes := []*graph.Node{n}
		for len(nodes) < groupMax {
			next := f.next(nodes)
			if next == nil || !link(next) {
				break
			}
			nodes = append(nodes, next)
		}
		if len(nodes) < 2 {
			continue
		}
		for _, n := range nodes {
			f.taken[n] = true
		}
		groups = append(groups, f.group(nodes))
	}
	return groups
}

// Repeats reports whether a value of shape x, of which all dims are known, is
// repeated along the leading dims of a shape only, or is one element.
func Repeats(x, shape tensor.Shape) bool {
	for len(x) > 0 && x[0] == 1 {
		x = x[1:]
	}
	return x.Static() && x.Elems() > 0 && len(x) <= len(shape) && x.Equal(shape[len(shape)-len(x):])
}

// fuser is what Chains knows of a segment.
// next returns the node that a group can go on with: the first reader of its last
// one, if it has the shape of that, and nothing reads any of the group before
// it; nil if there is none.
func (f *fuser) next(group []*graph.Node) *graph.Node {
	last := group[len(group)-1]
	if len(f.readers[last]) == 0 {
		return nil
	}
	next := f.readers[last][0]
	if f.taken[next] || next.DType != last.DType || !next.Shape.Equal(last.Shape) {
		return nil
	}
	for _, n := range group {
		for _, r := range f.readers[n] {
			if f.at[r] < f.at[next] && !slices.Contains(group, r) {
				return nil
			}
		}
	}
	return next
}

// group says what is kept of the nodes, and whose memory the last may take over:
// of a chain without a product, which is written first, any input as large.
func (f *fuser) group(nodes []*graph.Node) compute.Group {
	g := compute.Group{Nodes: nodes}
	for i, n := range nodes {
		outside := slices.ContainsFunc(f.readers[n], func(r *graph.Node) bool { return !slices.Contains(nodes, r) })
		g.Kept = append(g.Kept, outside || i == len(nodes)-1 || slices.Contains(f.seg.Out, n))
		for _, x := range n.In {
			if nodes[0].Op != graph.MatMul && x.Shape.Equal(n.Shape) && !slices.Contains(nodes, x) {
				g.InPlace = append(g.InPlace, x)
			}
		}
	}
	return g
}
