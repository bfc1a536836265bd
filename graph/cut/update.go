package cut

import (
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Update is an update segment on flat shards of so many elements: rules act on every
// element alone, and what compiles a segment goes by the shapes of its nodes.
func Update(seg *graph.Segment, elems int) *graph.Segment {
	copies := map[*graph.Node]*graph.Node{}
	flat := func(nodes []*graph.Node) (out []*graph.Node) {
		for _, n := range nodes {
			if copies[n] == nil {
				c := *n
				if len(c.Shape) > 0 { // all but the total
					c.Shape = tensor.Shape{elems}
				}
				copies[n] = &c
			}
			out = append(out, copies[n])
		}
		return out
	}
	cut := *seg
	cut.In, cut.Out, cut.Nodes = flat(seg.In), flat(seg.Out), flat(seg.Nodes)
	for _, n := range cut.Nodes {
		n.In = flat(n.In)
	}
	return &cut
}
