package ref

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// elementwise returns the kernel of an operator that treats every element
// alone, nil for others. Functions of math are taken in float64 and rounded.
func elementwise[T tensor.Float](n *graph.Node) compute.Kernel {
	alpha := T(n.Attr.Alpha)
	switch n.Op {
	case graph.Scale:
		return unary(func(x T) T { return alpha * x })
	case graph.Relu:
		return unary(func(x T) T { return max(x, 0) })
	case graph.Sigmoid:
		return unary(func(x T) T { return T(sigmoid(float64(x))) })
	case graph.Tanh:
		return unary(func(x T) T { return T(math.Tanh(float64(x))) })
	case graph.Exp:
		return unary(func(x T) T { return T(math.Exp(float64(x))) })
	case graph.Log:
		return unary(func(x T) T { return T(math.Log(float64(x))) })
	case graph.Square:
		return unary(func(x T) T { return x * x })
	case graph.Add:
		return binary(func(a, b T) T { return a + b })
	case graph.Sub:
		return binary(func(a, b T) T { return a - b })
	case graph.Mul:
		return binary(func(a, b T) T { return a * b })
	case graph.ReluGrad:
		return binary(func(y, dy T) T {
			if y > 0 {
				return dy
			}
			return 0
		})
	case graph.SigmoidGrad:
		return binary(func(y, dy T) T { return dy * y * (1 - y) })
	case graph.TanhGrad:
		return binary(func(y, dy T) T { return dy * (1 - y*y) })
	case graph.LogGrad:
		return binary(func(x, dy T) T { return dy / x })
	case graph.SquareGrad:
		return binary(func(x, dy T) T { return 2 * x * dy })
	}
	return nil
}

// sigmoid is 1/(1+exp(-x)) without overflow on either side.
func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

func unary[T tensor.Float](f func(T) T) compute.Kernel {
	return func(c *compute.Call) error {
		x, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out)
		for i := range out {
			out[i] = f(x[i])
		}
		return nil
	}
}

func binary[T tensor.Float](f func(a, b T) T) compute.Kernel {
	return func(c *compute.Call) error {
		a, b, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
		for i := range out {
			out[i] = f(a[i], b[broadcastIndex(i, c.In[0].Shape(), c.In[1].Shape())])
		}
		return nil
	}
}

// broadcastIndex returns which element of shape b stands for element i of
// shape a: the same coordinates, but 0 in dims of 1, aligned at the last dim.
func broadcastIndex(i int, a, b tensor.Shape) int {
	j, stride := 0, 1
	for d := 1; d <= len(b); d++ {
		size := a[len(a)-d]
		if b[len(b)-d] != 1 {
			j += i % size * stride
		}
		i /= size
		stride *= b[len(b)-d]
	}
	return j
}
