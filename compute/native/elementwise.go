package native

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// unary returns the kernel of an operator that treats every element alone,
// from one input or from two of the same shape; nil for others.
func (b *builder[T]) unary(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.Scale:
		alpha := T(n.Attr.Alpha)
		return one(func(out, x []T) { scale(out, x, alpha) })
	case graph.Relu:
		return one(relu[T])
	case graph.Sigmoid:
		return one(b.math.sigm)
	case graph.Tanh:
		return one(b.math.tanh)
	case graph.Exp:
		return one(b.math.exps)
	case graph.Log:
		return one(logs[T])
	case graph.Square:
		return one(square[T])
	case graph.ReluGrad:
		return two(reluGrad[T])
	case graph.SigmoidGrad:
		return two(sigmoidGrad[T])
	case graph.TanhGrad:
		return two(tanhGrad[T])
	case graph.LogGrad:
		return two(logGrad[T])
	case graph.SquareGrad:
		return two(squareGrad[T])
	}
	return nil
}

func one[T tensor.Float](f func(out, x []T)) compute.Kernel {
	return func(c *compute.Call) error {
		f(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]))
		return nil
	}
}

func two[T tensor.Float](f func(out, a, b []T)) compute.Kernel {
	return func(c *compute.Call) error {
		f(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]))
		return nil
	}
}

// The kernels. out may be one of the inputs. Reslicing the inputs to the length
// of out takes the bounds checks out of the loops.

func scale[T tensor.Float](out, x []T, alpha T) {
	x = x[:len(out)]
	for i := range out {
		out[i] = alpha * x[i]
	}
}

// relu lets NaN pass, so that a broken run shows.
func relu[T tensor.Float](out, x []T) {
	x = x[:len(out)]
	for i := range out {
		v := x[i]
		if v <= 0 {
			v = 0
		}
		out[i] = v
	}
}

func logs[T tensor.Float](out, x []T) {
	x = x[:len(out)]
	for i := range out {
		out[i] = T(math.Log(float64(x[i])))
	}
}

func square[T tensor.Float](out, x []T) {
	x = x[:len(out)]
	for i := range out {
		out[i] = x[i] * x[i]
	}
}

func reluGrad[T tensor.Float](out, y, dy []T) {
	y, dy = y[:len(out)], dy[:len(out)]
	for i := range out {
		v := dy[i]
		if !(y[i] > 0) {
			v = 0
		}
		out[i] = v
	}
}

func sigmoidGrad[T tensor.Float](out, y, dy []T) {
	y, dy = y[:len(out)], dy[:len(out)]
	for i := range out {
		out[i] = dy[i] * y[i] * (1 - y[i])
	}
}

func tanhGrad[T tensor.Float](out, y, dy []T) {
	y, dy = y[:len(out)], dy[:len(out)]
	for i := range out {
		out[i] = dy[i] * (1 - y[i]*y[i])
	}
}

func logGrad[T tensor.Float](out, x, dy []T) {
	x, dy = x[:len(out)], dy[:len(out)]
	for i := range out {
		out[i] = dy[i] / x[i]
	}
}

func squareGrad[T tensor.Float](out, x, dy []T) {
	x, dy = x[:len(out)], dy[:len(out)]
	for i := range out {
		out[i] = 2 * x[i] * dy[i]
	}
}
