// Package flops estimates how much a segment computes.
package flops

import (
	"math"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// flopsExp is what a transcendental function counts, in additions: about the
// length of the polynomial that computes it.
const flopsExp = 10

// Of estimates the floating-point operations of the segment for one example.
// Every dynamic dim counts as 1, so for ragged columns it is the estimate for
// one entry, and for a table's update that for one row; an update of a variable
// costs the same for any batch. Moving data (gather, reshape, concat) is free.
func Of(s graph.Segment) int64 {
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

func flops(n *graph.Node) float64 {
	in := func(i int) float64 { return size(n.In[i].Shape) }
	switch n.Op {
	case graph.MatMul:
		s := n.In[0].Shape
		inner := s[len(s)-1]
		if n.Attr.TransA {
			inner = s[len(s)-2]
		}
		return 2 * size(n.Shape) * size(tensor.Shape{inner})
	case graph.Conv2D:
		return 2 * size(n.Shape) * size(n.In[1].Shape[1:])
	case graph.Conv2DGradX:
		return 2 * in(0) * size(n.In[1].Shape[1:])
	case graph.Conv2DGradW:
		return 2 * in(0) * size(n.Shape[1:])
	case graph.CausalAttention, graph.CausalAttentionGrad:
		// Half of all pairs; two products of D forward, five backward.
		products := map[graph.Op]float64{graph.CausalAttention: 2, graph.CausalAttentionGrad: 5}[n.Op]
		return in(0) * size(n.In[0].Shape[1:2]) * products
	case graph.DotInteraction:
		return 2 * size(n.Shape) * size(n.In[0].Shape[2:])
	case graph.DotInteractionGrad:
		return 4 * in(1) * size(n.Shape[2:])
	case graph.FMInteraction, graph.FMInteractionGrad:
		return 4 * in(0)
	case graph.Bag, graph.BagGrad:
		return 2 * size(n.In[0].Shape[1:])
	case graph.Update:
		return float64(4+4*len(n.Attr.Rule.Slots())) * size(n.Shape)
	case graph.UpdateRows:
		return float64(4+4*len(n.Attr.Rule.Slots())) * size(n.Shape[1:])
	case graph.MaxPool2D, graph.AvgPool2D:
		return size(n.Shape) * float64(n.Attr.Window*n.Attr.Window)
	case graph.Count, graph.FillLike, graph.MaxPool2DGrad:
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
func flopsElement(op graph.Op) (perInput, perResult float64) {
	switch op {
	case graph.Sum, graph.SumRows, graph.SumAxis, graph.Mean, graph.Max, graph.ArgMax, graph.Unbroadcast, graph.GatherGrad:
		return 1, 0
	case graph.SquaredLoss, graph.SquaredGrad:
		return 3, 0
	case graph.LogisticLoss, graph.SoftmaxLoss, graph.LogisticGrad, graph.SoftmaxLossGrad:
		return 2 * flopsExp, 0
	case graph.LayerNormGainGrad, graph.RMSNormGainGrad:
		return 6, 0
	case graph.AvgPool2DGrad:
		return 1, 0
	case graph.Add, graph.Sub, graph.Mul, graph.Div, graph.Maximum, graph.Minimum, graph.Less, graph.LessEqual, graph.Equal, graph.Where, graph.Scale, graph.Relu, graph.LeakyRelu, graph.Square,
		graph.Float, graph.ReluGrad, graph.LeakyReluGrad, graph.SquareGrad, graph.LogGrad, graph.MeanGrad, graph.MaxGrad:
		return 0, 1
	case graph.SigmoidGrad, graph.TanhGrad:
		return 0, 3
	case graph.SoftmaxGrad, graph.Sqrt, graph.Rsqrt, graph.Dropout:
		return 0, 4
	case graph.LayerNorm, graph.RMSNorm, graph.LayerNormGrad, graph.RMSNormGrad:
		return 0, 8
	case graph.Sigmoid, graph.Tanh, graph.Exp, graph.Log, graph.Softmax, graph.Gelu, graph.Silu, graph.Softplus, graph.GeluGrad, graph.SiluGrad:
		return 0, flopsExp
	}
	return 0, 0
}
