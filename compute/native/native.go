// Package native is the fast backend: tight loops over plain slices in
// float32, and in float64 through the same generic code.
//
// Every family of operators has a file with its kernels, functions on plain
// slices that know nothing of graphs. MatMul packs its operands into panels
// and works them off in register tiles. Inner values share memory by lifetime,
// and element-wise operators work in place.
//
// Results are deterministic: every sum is taken in an order that depends on
// shapes alone. A row of a product does not depend on how many rows there are.
package native

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

// Name returns "native".
func (Backend) Name() string { return "native" }

// Compile makes a program whose inner values share memory by lifetime and whose
// products share one pair of packing buffers.
func (Backend) Compile(seg *graph.Segment) (compute.Program, error) {
	f32 := builder[float32]{packs: &packs[float32]{}, math: math32()}
	f64 := builder[float64]{packs: &packs[float64]{}, math: math64()}
	return compute.Build(seg, compute.Options{Reuse: true, InPlace: inPlace, Kernel: func(n *graph.Node) (compute.Kernel, error) {
		k := f32.kernel(n)
		if n.DType == tensor.F64 {
			k = f64.kernel(n)
		}
		if k == nil {
			return nil, fmt.Errorf("backend native has no such operator")
		}
		return k, nil
	}})
}

// builder makes the kernels of one program.
type builder[T tensor.Float] struct {
	packs *packs[T]
	math  functions[T]
}

// kernel returns what computes a node, nil if there is nothing.
func (b *builder[T]) kernel(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.MatMul:
		return b.matMul
	case graph.Sum, graph.SumRows, graph.Count, graph.Unbroadcast:
		return reduction[T](n.Op)
	case graph.Softmax, graph.SoftmaxGrad, graph.SoftmaxLoss, graph.SoftmaxLossGrad:
		return b.softmaxKernel(n.Op)
	case graph.LogisticLoss, graph.LogisticGrad, graph.SquaredLoss, graph.SquaredGrad:
		return pointLoss[T](n.Op)
	case graph.GatherRows, graph.Gather, graph.GatherGrad, graph.Bag, graph.BagGrad:
		return rowsKernel[T](n.Op)
	case graph.Update, graph.UpdateRows:
		return compute.UpdateKernel[T](n)
	case graph.Add, graph.Sub, graph.Mul:
		return binary[T](n.Op)
	}
	if k := b.unary(n); k != nil {
		return k
	}
	return move[T](n.Op)
}

// inPlace lists the inputs whose memory a result may take over: those that are
// read, element by element, no later than the result is written there.
func inPlace(n *graph.Node) []int {
	switch n.Op {
	case graph.Add, graph.Sub, graph.Mul, graph.Scale, graph.Relu, graph.Sigmoid, graph.Tanh,
		graph.Exp, graph.Log, graph.Square, graph.Softmax, graph.Reshape, graph.ReshapeLike,
		graph.LogisticGrad, graph.SquaredGrad, graph.SoftmaxLossGrad:
		return []int{0}
	case graph.ReluGrad, graph.SigmoidGrad, graph.TanhGrad, graph.LogGrad, graph.SquareGrad, graph.SoftmaxGrad:
		return []int{1, 0}
	}
	return nil
}
