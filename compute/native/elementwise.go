package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// unary returns an operator that treats every element alone, from one input or
// from two of the same shape; nil for others.
func (b *builder[T]) unary(n *graph.Node) *pointwise[T] {
	k, alpha := b.k, T(n.Attr.Alpha)
	switch n.Op {
	case graph.Scale:
		return b.one(1, func(out, x []T) { k.Scale(out, x, alpha) })
	case graph.Round:
		return b.one(1, k.Round(n.Attr.Low))
	case graph.Relu:
		return b.one(1, k.Relu)
	case graph.LeakyRelu:
		return b.one(1, func(out, x []T) { k.LeakyRelu(out, x, alpha) })
	case graph.Sigmoid:
		return b.one(4, k.Sigmoid)
	case graph.Tanh:
		return b.one(4, k.Tanh)
	case graph.Exp:
		return b.one(3, k.Exp)
	case graph.Log:
		return b.one(4, k.Log)
	case graph.Gelu:
		return b.one(4, k.Gelu)
	case graph.Silu:
		return b.one(4, k.Silu)
	case graph.Softplus:
		return b.one(5, k.Softplus)
	case graph.Square:
		return b.one(1, k.Square)
	case graph.Sqrt:
		return b.one(2, k.Sqrt)
	case graph.Rsqrt:
		return b.one(2, k.Rsqrt)
	}
	return b.unaryGrad(n)
}

func (b *builder[T]) unaryGrad(n *graph.Node) *pointwise[T] {
	k, alpha := b.k, T(n.Attr.Alpha)
	switch n.Op {
	case graph.ReluGrad:
		return b.two(1, k.ReluGrad)
	case graph.SigmoidGrad:
		return b.two(1, k.SigmoidGrad)
	case graph.TanhGrad:
		return b.two(1, k.TanhGrad)
	case graph.LogGrad:
		return b.two(2, func(out, x, dy []T) { k.Div(out, dy, x) })
	case graph.SquareGrad:
		return b.two(1, k.SquareGrad)
	case graph.LeakyReluGrad:
		return b.two(1, func(out, x, dy []T) { k.LeakyReluGrad(out, x, dy, alpha) })
	case graph.GeluGrad:
		return b.two(5, k.GeluGrad)
	case graph.SiluGrad:
		return b.two(5, k.SiluGrad)
	}
	return nil
}

// pointwise is an operator on elements: run computes as many as out has. An
// input has as many, or one where the operator broadcasts.
type pointwise[T tensor.Float] struct {
	inputs, cost int
	run          func(out, x, y, z []T)
}

func (b *builder[T]) one(cost int, f func(out, x []T)) *pointwise[T] {
	return &pointwise[T]{1, cost, func(out, x, _, _ []T) { f(out, x) }}
}

func (b *builder[T]) two(cost int, f func(out, x, y []T)) *pointwise[T] {
	return &pointwise[T]{2, cost, func(out, x, y, _ []T) { f(out, x, y) }}
}

// elements returns the kernel of an operator that treats every element alone.
func (b *builder[T]) elements(n *graph.Node) compute.Kernel {
	p := b.unary(n)
	if p == nil {
		return nil
	}
	return b.each(p.cost, func(c *compute.Call, lo, hi, _ int) {
		y := tensor.Data[T](c.In[p.inputs-1])[lo:hi]
		p.run(tensor.Data[T](c.Out)[lo:hi], tensor.Data[T](c.In[0])[lo:hi], y, nil)
	})
}
