// Package ref is the obvious backend: one loop an operator, in float32 and
// float64, written to be read. It is the judge of the other backends and says
// in which order sums are taken: left to right, in the type of the values for
// MatMul, Unbroadcast, Bag and the gradients of gathers, and in float64 for
// Sum, SumRows, Softmax and the losses, rounded once at the end.
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
	return compute.Build(seg, compute.Options{Kernel: func(n *graph.Node) (compute.Kernel, error) {
		k := kernel[float32](n)
		if n.DType == tensor.F64 {
			k = kernel[float64](n)
		}
		if k == nil {
			return nil, fmt.Errorf("backend ref has no such operator")
		}
		return k, nil
	}})
}

// kernel returns the function that computes a node, nil if there is none.
func kernel[T tensor.Float](n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.MatMul:
		return matMul[T]
	case graph.Sum:
		return sum[T]
	case graph.SumRows:
		return sumRows[T]
	case graph.Count:
		return count[T]
	case graph.Unbroadcast:
		return unbroadcast[T]
	case graph.Softmax:
		return softmax[T]
	case graph.SoftmaxGrad:
		return softmaxGrad[T]
	case graph.LogisticLoss, graph.SquaredLoss:
		return pointLoss[T]
	case graph.LogisticGrad, graph.SquaredGrad:
		return pointLossGrad[T]
	case graph.SoftmaxLoss:
		return softmaxLoss[T]
	case graph.SoftmaxLossGrad:
		return softmaxLossGrad[T]
	case graph.GatherRows, graph.Gather:
		return gather[T]
	case graph.GatherGrad:
		return gatherGrad[T]
	case graph.Bag:
		return bag[T]
	case graph.BagGrad:
		return bagGrad[T]
	case graph.Update, graph.UpdateRows:
		return compute.UpdateKernel[T](n)
	}
	if k := elementwise[T](n); k != nil {
		return k
	}
	return move[T](n.Op)
}
