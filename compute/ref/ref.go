// Package ref is the obvious backend: one loop an operator, in float32 and
// float64, written to be read. It is the judge of the other backends and says
// in which order sums are taken: left to right, in the type of the values for
// MatMul, Unbroadcast, Bag, convolutions, average pooling, DotInteractionGrad and
// whatever adds up over rows (gradients of gathers, of gains, of keys), and in
// float64, rounded once at the end, for all else.
package ref

import (
	"fmt"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Backend implements compute.Backend. The zero value is ready.
type Backend struct{}

// New returns the backend.
func New() compute.Backend { return Backend{} }

// Name returns "ref".
func (Backend) Name() string { return "ref" }

// Compile makes a program that owns memory for every inner value.
func (Backend) Compile(seg *graph.Segment) (compute.Program, error) {
	return compute.Build(seg, compute.Options{Kernel: Kernel})
}

// Kernel returns the function that computes a node. Other backends may fall back
// on it. It fails if there is no such operator.
func Kernel(n *graph.Node) (compute.Kernel, error) {
	k := conversion(n)
	switch {
	case k != nil:
	case compute.FloatType(n) != tensor.F64:
		k = kernel[float32](n)
	default:
		k = kernel[float64](n)
	}
	if k == nil {
		return nil, fmt.Errorf("backend ref has no such operator")
	}
	return k, nil
}

// kernel returns the function that computes a node, nil if there is none.
func kernel[T tensor.Float](n *graph.Node) compute.Kernel {
	for _, family := range []func(*graph.Node) compute.Kernel{
		elementwise[T], move[T], reduction[T], vector[T], lookup[T], image[T],
	} {
		if k := family(n); k != nil {
			return k
		}
	}
	switch n.Op {
	case graph.MatMul:
		return matMul[T]
	case graph.LogisticLoss, graph.SquaredLoss:
		return pointLoss[T]
	case graph.LogisticGrad, graph.SquaredGrad:
		return pointLossGrad[T]
	case graph.SoftmaxLoss:
		return softmaxLoss[T]
	case graph.SoftmaxLossGrad:
		return softmaxLossGrad[T]
	case graph.CausalAttention:
		return attention[T]()
	case graph.CausalAttentionGrad:
		return attentionGrad[T]()
	case graph.Update, graph.UpdateRows, graph.UpdateScale:
		return compute.UpdateKernel[T](n)
	}
	return nil
}

func reduction[T tensor.Float](n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.Sum:
		return sum[T]
	case graph.SumRows:
		return sumRows[T]
	case graph.SumAxis, graph.Mean:
		return reduceAxis[T]
	case graph.Max:
		return maxAxis[T]
	case graph.ArgMax:
		return argMax[T]
	case graph.MaxGrad:
		return maxGrad[T]
	case graph.Count:
		return count[T]
	case graph.Unbroadcast:
		return unbroadcast[T]
	}
	return nil
}

// vector is for operators over the vectors of the last dim.
func vector[T tensor.Float](n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.Softmax:
		return softmax[T]
	case graph.SoftmaxGrad:
		return softmaxGrad[T]
	case graph.LayerNorm, graph.RMSNorm:
		return norm[T]
	case graph.LayerNormGrad, graph.RMSNormGrad:
		return normGrad[T]
	case graph.LayerNormGainGrad, graph.RMSNormGainGrad:
		return normGainGrad[T]
	case graph.FMInteraction:
		return fm[T]
	case graph.FMInteractionGrad:
		return fmGrad[T]
	case graph.DotInteraction:
		return dots[T]
	case graph.DotInteractionGrad:
		return dotsGrad[T]
	}
	return nil
}

// lookup is for operators that read or add up rows by index.
func lookup[T tensor.Float](n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.GatherRows, graph.Gather:
		return gather[T]
	case graph.GatherGrad:
		return gatherGrad[T]
	case graph.Bag:
		return bag[T]
	case graph.BagGrad:
		return bagGrad[T]
	}
	return nil
}

func image[T tensor.Float](n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.Conv2D, graph.Conv2DGradX, graph.Conv2DGradW:
		return convolution[T]
	case graph.MaxPool2D:
		return maxPool[T]
	case graph.MaxPool2DGrad:
		return maxPoolGrad[T]
	case graph.AvgPool2D:
		return avgPool[T]
	case graph.AvgPool2DGrad:
		return avgPoolGrad[T]
	}
	return nil
}
