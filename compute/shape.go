package compute

import (
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// shapeOf appends the shape of a node's result to dst, given the tensors that
// came in; room is memory for their shapes. It checks that the shapes fit each
// other and the operator; values (ids, labels) are the kernel's to check. It
// allocates only to report an error.
func shapeOf(dst tensor.Shape, n *graph.Node, in []*tensor.Tensor, room []tensor.Shape) (tensor.Shape, error) {
	room = room[:0]
	for _, t := range in {
		room = append(room, t.Shape())
	}
	return graph.ResultShape(dst, n.Op, &n.Attr, room)
}

// FloatType is the type of the floats that a node reads or makes: that of its
// result or, where this is i64, of its first float input.
func FloatType(n *graph.Node) tensor.DType {
	if n.DType.IsFloat() {
		return n.DType
	}
	for _, x := range n.In {
		if x.DType.IsFloat() {
			return x.DType
		}
	}
	return n.DType
}
