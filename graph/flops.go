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
	in := func(i int) float64 { return size(n.In[i].Shape) }
	switch n.Op {
	case MatMul:
		s := n.In[0].Shape
		inner := s[len(s)-1]
		if n.Attr.TransA {
			inner = s[len(s)-2]
		}
		return 2 * size(n.Shape) * size(tensor.Shape{inner})
	case Conv2D:
		return 2 * size(n.Shape) * size(n.In[1].Shape[1:])
	case Conv2DGradX:
		return 2 * in(0) * size(n.In[1].Shape[1:])
	case Conv2DGradW:
		return 2 * in(0) * size(n.Shape[1:])
	case CausalAttention, CausalAttentionGrad:
		// Half of all pairs; two products of D forward, five backward.
		products := map[Op]float64{CausalAttention: 2, CausalAttentionGrad: 5}[n.Op]
		return in(0) * size(n.In[0].Shape[2:3]) * products
	case DotInteraction:
		return 2 * size(n.Shape) * size(n.In[0].Shape[2:])
	case DotInteractionGrad:
		return 4 * in(1) * size(n.Shape[2:])
	case FMInteraction, FMInteractionGrad:
		return 4 * in(0)
	case Bag, BagGrad:
		return 2 * size(n.In[0].Shape[1:])
	case Update:
		return float64(4+4*len(n.Attr.Rule.Slots())) * size(n.Shape)
	case UpdateRows:
		return float64(4+4*len(n.Attr.Rule.Slots())) * size(n.Shape[1:])
	case MaxPool2D, AvgPool2D:
		return size(n.Shape) * float64(n.Attr.Window*n.Attr.Window)
	case Count, FillLike, MaxPool2DGrad:
		return 0
	}
	perInput, perResult := flopsElement(n.Op)
	if perInput > 0 {
		return perInput * in(0)
	}
	return perResult * size(n.Shape)
}

// flopsElement is what an operator counts an element of its first input, or of
// its result. Moving values is free.
func flopsElement(op Op) (perInput, perResult float64) {
	switch op {
	case Sum, SumRows, SumAxis, Mean, Max, ArgMax, Unbroadcast, GatherGrad:
		return 1, 0
	case SquaredLoss, SquaredGrad:
		return 3, 0
	case LogisticLoss, SoftmaxLoss, LogisticGrad, SoftmaxLossGrad:
		return 2 * flopsExp, 0
	case LayerNormGainGrad, RMSNormGainGrad:
		return 6, 0
	case AvgPool2DGrad:
		return 1, 0
	case Add, Sub, Mul, Div, Maximum, Minimum, Less, LessEqual, Equal, Where, Scale, Relu, LeakyRelu, Square,
		Float, ReluGrad, LeakyReluGrad, SquareGrad, LogGrad, MeanGrad, MaxGrad:
		return 0, 1
	case SigmoidGrad, TanhGrad:
		return 0, 3
	case SoftmaxGrad, Sqrt, Rsqrt, Dropout:
		return 0, 4
	case LayerNorm, RMSNorm, LayerNormGrad, RMSNormGrad:
		return 0, 8
	case Sigmoid, Tanh, Exp, Log, Softmax, Gelu, Silu, Softplus, GeluGrad, SiluGrad:
		return 0, flopsExp
	}
	return 0, 0
}
