package ref

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// elementwise returns the kernel of an operator that treats every element
// alone, nil for others.
func elementwise[T tensor.Float](n *graph.Node) compute.Kernel {
	if k := ofOne[T](n); k != nil {
		return k
	}
	switch n.Op {
	case graph.Add:
		return binary(func(a, b T) T { return a + b })
	case graph.Sub:
		return binary(func(a, b T) T { return a - b })
	case graph.Mul:
		return binary(func(a, b T) T { return a * b })
	case graph.Div:
		return binary(func(a, b T) T { return a / b })
	case graph.Maximum:
		return binary(func(a, b T) T { return max(a, b) })
	case graph.Minimum:
		return binary(func(a, b T) T { return min(a, b) })
	case graph.Less:
		return binary(func(a, b T) T { return truth[T](a < b) })
	case graph.LessEqual:
		return binary(func(a, b T) T { return truth[T](a <= b) })
	case graph.Equal:
		return binary(func(a, b T) T { return truth[T](a == b) })
	case graph.Where:
		return where[T]
	case graph.Float:
		return float[T]
	case graph.Dropout:
		return dropout[T]
	}
	return ofGradient[T](n)
}

// ofOne is for functions of one element. Functions of math are taken in float64
// and rounded.
func ofOne[T tensor.Float](n *graph.Node) compute.Kernel {
	alpha := T(n.Attr.Alpha)
	switch n.Op {
	case graph.Scale:
		return unary(func(x T) T { return alpha * x })
	case graph.Relu:
		return unary(func(x T) T { return max(x, 0) })
	case graph.LeakyRelu:
		return unary(func(x T) T { return x * slope(x, alpha) })
	case graph.Sigmoid:
		return wide[T](sigmoid)
	case graph.Tanh:
		return wide[T](math.Tanh)
	case graph.Exp:
		return wide[T](math.Exp)
	case graph.Log:
		return wide[T](math.Log)
	case graph.Square:
		return unary(func(x T) T { return x * x })
	case graph.Sqrt:
		return wide[T](math.Sqrt)
	case graph.Rsqrt:
		return wide[T](func(x float64) float64 { return 1 / math.Sqrt(x) })
	case graph.Gelu:
		return wide[T](func(x float64) float64 { return x * normal(x) })
	case graph.Silu:
		return wide[T](func(x float64) float64 { return x * sigmoid(x) })
	case graph.Softplus:
		return wide[T](func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) })
	}
	return nil
}

// ofGradient is for the gradients of those.
func ofGradient[T tensor.Float](n *graph.Node) compute.Kernel {
	alpha := T(n.Attr.Alpha)
	switch n.Op {
	case graph.ReluGrad:
		return binary(func(y, dy T) T {
			if y > 0 {
				return dy
			}
			return 0
		})
	case graph.LeakyReluGrad:
		return binary(func(x, dy T) T { return dy * slope(x, alpha) })
	case graph.SigmoidGrad:
		return binary(func(y, dy T) T { return dy * y * (1 - y) })
	case graph.TanhGrad:
		return binary(func(y, dy T) T { return dy * (1 - y*y) })
	case graph.LogGrad:
		return binary(func(x, dy T) T { return dy / x })
	case graph.SquareGrad:
		return binary(func(x, dy T) T { return 2 * x * dy })
	case graph.GeluGrad:
		return binary(func(x, dy T) T {
			v := float64(x)
			return T(float64(dy) * (normal(v) + v*math.Exp(-v*v/2)/math.Sqrt(2*math.Pi)))
		})
	case graph.SiluGrad:
		return binary(func(x, dy T) T {
			v := float64(x)
			return T(float64(dy) * sigmoid(v) * (1 + v*sigmoid(-v)))
		})
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

// normal is the distribution function of the normal distribution, by erfc so
// that it keeps its digits far below 0.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// slope is that of LeakyRelu.
func slope[T tensor.Float](x, alpha T) T {
	if x > 0 {
		return 1
	}
	return alpha
}

func truth[T tensor.Float](ok bool) T {
	if ok {
		return 1
	}
	return 0
}

func wide[T tensor.Float](f func(float64) float64) compute.Kernel {
	return unary(func(x T) T { return T(f(float64(x))) })
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
		s, sa, sb := c.Out.Shape(), c.In[0].Shape(), c.In[1].Shape()
		for i := range out {
			out[i] = f(a[broadcastIndex(i, s, sa)], b[broadcastIndex(i, s, sb)])
		}
		return nil
	}
}

func where[T tensor.Float](c *compute.Call) error {
	condition, out, s := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Out.Shape()
	for i := range out {
		from := c.In[1]
		if condition[broadcastIndex(i, s, c.In[0].Shape())] == 0 {
			from = c.In[2]
		}
		out[i] = tensor.Data[T](from)[broadcastIndex(i, s, from.Shape())]
	}
	return nil
}

func float[T tensor.Float](c *compute.Call) error {
	out := tensor.Data[T](c.Out)
	for i, v := range c.In[0].I64() {
		out[i] = T(v)
	}
	return nil
}

// dropout scales what the masks of the examples keep.
func dropout[T tensor.Float](c *compute.Call) error {
	x, index, out := tensor.Data[T](c.In[0]), c.In[1].I64(), tensor.Data[T](c.Out)
	rate := c.Node.Attr.Rate
	for b, example := range index {
		n := len(x) / len(index) // elements of an example
		mask := compute.MaskOf(c.Node.Attr.Seed, rate, c.Step, example)
		for i := range n {
			out[b*n+i] = 0
			if mask.Keeps(i) {
				out[b*n+i] = x[b*n+i] * T(1/(1-rate))
			}
		}
	}
	return nil
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
