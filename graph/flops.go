package graph

import (
	"math"

	"github.com/gangline/gangline/tensor"
)

// flopsExp is what a transcendental function counts, in additions: about the
// length of the polynomial that computes it.
const flopsExp = 10

// FLOPs estimates the floating-point operations of the segment for one example.
// Every dynamic dim counts as 1, so for ragged columns it is the estimate for
// one entry, and for a table's update that for one row; an update of a variable
// costs the same for any batch. Moving data (gather, reshape, concat) is free.
func (s Segment) FLOPs() int64 {
	sum := 0.0
	for _, n := range s.Nodes {
		sum += flops(n)
	}
	if sum >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(sum)
}

// size is the number of elements with dynamic dims counted as 1.
func size(s tensor.Shape) float64 {
	n := 1.0
	for _, d := range s {
		if d != tensor.Dynamic {
			n *= float64(d)
		}
	}
	return n
}

func flops(n *Node) float64 {
	switch n.Op {
	case MatMul:
		inner := n.In[0].Shape[1]
		if n.Attr.TransA {
			inner = n.In[0].Shape[0]
		}
		return 2 * size(n.Shape) * size(tensor.Shape{inner})
	case Add, Sub, Mul, Scale, Relu, Square, ReluGrad, SquareGrad, LogGrad:
		return size(n.Shape)
	case SigmoidGrad, TanhGrad:
		return 3 * size(n.Shape)
	case SoftmaxGrad:
		return 4 * size(n.Shape)
	case Sigmoid, Tanh, Exp, Log, Softmax:
		return flopsExp * size(n.Shape)
	case Sum, SumRows, Unbroadcast, GatherGrad:
		return size(n.In[0].Shape)
	case Bag, BagGrad:
		return 2 * size(n.In[0].Shape[1:])
	case SquaredLoss, SquaredGrad:
		return 3 * size(n.In[0].Shape)
	case LogisticLoss, SoftmaxLoss, LogisticGrad, SoftmaxLossGrad:
		return 2 * flopsExp * size(n.In[0].Shape)
	case Update:
		return float64(4+4*len(n.Attr.Rule.Slots())) * size(n.Shape)
	case UpdateRows:
		return float64(4+4*len(n.Attr.Rule.Slots())) * size(n.Shape[1:])
	case Input, Variable, Table, SlotVar, Const, Total, Count, Reshape, Concat, Slice,
		GatherRows, Gather, FillLike, SpreadRows, ReshapeLike, PadSlice:
		return 0
	}
	return 0
}
