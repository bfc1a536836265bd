// Package cut makes more segments of a step, so that each reads few parameters: who
// holds these in shards then gathers few at a time.
package cut

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gangline/gangline/graph"
)

// Step returns the step with forward pass, backward pass and evaluation cut where a
// segment would read more than limit bytes of variables, at least one in each, and
// between the loss and the first gradient; what comes out of the step is the same. The
// last piece of the evaluation is Step.Eval, those before it are the other segments of
// which Eval is true, in their order. The argument is unchanged.
func Step(step *graph.Step, limit int) *graph.Step {
	s := *step
	s.Segments, s.Forward = slices.Clone(step.Segments), nil
	for _, seg := range step.Forward {
		s.Forward = append(s.Forward, add(&s, seg, limit, step.Model.Loss)...)
	}
	add(&s, s.Eval, limit, nil)
	return &s
}

// add puts the pieces of a segment among the others, the last in its place, and returns
// where all are.
func add(s *graph.Step, seg, limit int, loss *graph.Node) (at []int) {
	all := pieces(&s.Segments[seg], limit, loss)
	for _, p := range all[:len(all)-1] {
		s.Segments = append(s.Segments, p)
		at = append(at, len(s.Segments)-1)
	}
	s.Segments[seg] = all[len(all)-1]
	return append(at, seg)
}

// pieces cuts a segment, also behind the loss.
func pieces(seg *graph.Segment, limit int, loss *graph.Node) []graph.Segment {
	var all []graph.Segment
	for _, nodes := range chunks(seg, limit, loss) {
		all = append(all, piece(seg, nodes))
	}
	wanted := map[*graph.Node]bool{}
	for _, n := range seg.Out {
		wanted[n] = true
	}
	for i := len(all) - 1; i >= 0; i-- { // what a piece makes for those after it
		p := &all[i]
		if i < len(all)-1 {
			p.Name += "." + strconv.Itoa(i+1)
		}
		for _, n := range p.Nodes {
			if wanted[n] {
				p.Out = append(p.Out, n)
				wanted[n] = false
			}
		}
		for _, n := range p.In {
			wanted[n] = true
		}
	}
	return all
}

// chunks parts the nodes of a segment, in their order, but for those that are repeated
// wherever they are read.
func chunks(seg *graph.Segment, limit int, loss *graph.Node) [][]*graph.Node {
	var all [][]*graph.Node
	read, bytes, behind := map[*graph.Node]bool{}, 0, false
	for _, n := range seg.Nodes {
		if repeated(n) && !slices.Contains(seg.Out, n) {
			continue
		}
		more := 0
		for _, x := range n.In {
			if x.Op == graph.Variable && !read[x] {
				more += x.Shape.Elems() * x.DType.Size()
			}
		}
		if len(all) == 0 || behind || bytes > 0 && more > 0 && bytes+more > limit {
			all, bytes = append(all, nil), 0
			clear(read)
		}
		for _, x := range n.In {
			read[x] = true
		}
		bytes += more
		all[len(all)-1], behind = append(all[len(all)-1], n), n == loss
	}
	if len(all) == 0 {
		all = append(all, nil)
	}
	return all
}

// piece makes a segment of some nodes of another: what they read and is repeated is in
// it too, all else is an input.
func piece(seg *graph.Segment, nodes []*graph.Node) graph.Segment {
	p := graph.Segment{Name: seg.Name, Eval: seg.Eval, Nodes: slices.Clone(nodes)}
	inside := map[*graph.Node]bool{}
	for _, n := range nodes {
		inside[n] = true
	}
	for i := 0; i < len(p.Nodes); i++ { // which grows by those repeated
		for _, x := range p.Nodes[i].In {
			switch {
			case inside[x]:
				continue
			case repeated(x):
				p.Nodes = append(p.Nodes, x)
			default:
				p.In = append(p.In, x)
			}
			inside[x] = true
		}
	}
	byID := func(a, b *graph.Node) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(p.Nodes, byID)
	slices.SortFunc(p.In, byID)
	return p
}

// repeated reports whether a node is made again in every segment that reads it, as
// package graph does.
func repeated(n *graph.Node) bool { return n.Op == graph.Const || n.Op == graph.Reshape }
