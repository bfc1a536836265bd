package kernel

import (
	"math"

	"github.com/gangline/gangline/tensor"
)

// The portable kernels. Reslicing the inputs to the length of out takes the
// bounds checks out of the loops; the conversions of products forbid the
// compiler to fuse them into sums, which it does on some machines only.

func add[T tensor.Float](out, a, b []T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] + b[i]
	}
}

func sub[T tensor.Float](out, a, b []T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] - b[i]
	}
}

func mul[T tensor.Float](out, a, b []T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] * b[i]
	}
}

func div[T tensor.Float](out, a, b []T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] / b[i]
	}
}

func addScalar[T tensor.Float](out, x []T, alpha T) {
	x = x[:len(out)]
	for i := range out {
		out[i] = x[i] + alpha
	}
}

func scale[T tensor.Float](out, x []T, alpha T) {
	x = x[:len(out)]
	for i := range out {
		out[i] = alpha * x[i]
	}
}

func addScaled[T tensor.Float](out, a, x []T, alpha T) {
	a, x = a[:len(out)], x[:len(out)]
	for i := range out {
		out[i] = a[i] + T(alpha*x[i])
	}
}

func square[T tensor.Float](out, x []T) {
	x = x[:len(out)]
	for i := range out {
		out[i] = x[i] * x[i]
	}
}

// The root of a float32 taken in float64 and rounded is the rounded root.
func sqrt[T tensor.Float](out, x []T) {
	x = x[:len(out)]
	for i := range out {
		out[i] = T(math.Sqrt(float64(x[i])))
	}
}

func rsqrt[T tensor.Float](out, x []T) {
	x = x[:len(out)]
	for i := range out {
		out[i] = 1 / T(math.Sqrt(float64(x[i])))
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

func addRelu[T tensor.Float](out, a, b []T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		v := a[i] + b[i]
		if v <= 0 {
			v = 0
		}
		out[i] = v
	}
}

func leakyRelu[T tensor.Float](out, x []T, alpha T) {
	x = x[:len(out)]
	for i := range out {
		v := x[i]
		if !(v > 0) {
			v = alpha * v
		}
		out[i] = v
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

func leakyReluGrad[T tensor.Float](out, x, dy []T, alpha T) {
	x, dy = x[:len(out)], dy[:len(out)]
	for i := range out {
		v := dy[i]
		if !(x[i] > 0) {
			v = alpha * v
		}
		out[i] = v
	}
}

func sigmoidGrad[T tensor.Float](out, y, dy []T) {
	y, dy = y[:len(out)], dy[:len(out)]
	for i := range out {
		out[i] = T(dy[i]*y[i]) * (1 - y[i])
	}
}

func tanhGrad[T tensor.Float](out, y, dy []T) {
	y, dy = y[:len(out)], dy[:len(out)]
	for i := range out {
		out[i] = dy[i] * (1 - T(y[i]*y[i]))
	}
}

func squareGrad[T tensor.Float](out, x, dy []T) {
	x, dy = x[:len(out)], dy[:len(out)]
	for i := range out {
		out[i] = (x[i] + x[i]) * dy[i]
	}
}

func normalize[T tensor.Float](out, x, gain, bias []T, mean, inv T) {
	x, gain, bias = x[:len(out)], gain[:len(out)], bias[:len(out)]
	for i := range out {
		out[i] = T(T((x[i]-mean)*inv)*gain[i]) + bias[i]
	}
}

func scaleMul[T tensor.Float](out, x, gain []T, alpha T) {
	x, gain = x[:len(out)], gain[:len(out)]
	for i := range out {
		out[i] = T(x[i]*alpha) * gain[i]
	}
}

func normGrad[T tensor.Float](out, t, x []T, mean, inv, shift, slope T) {
	t, x = t[:len(out)], x[:len(out)]
	for i := range out {
		out[i] = (t[i] - shift - T((x[i]-mean)*slope)) * inv
	}
}

func addNormProducts[T tensor.Float](out, x, dy []T, mean, inv T) {
	x, dy = x[:len(out)], dy[:len(out)]
	for i := range out {
		out[i] += T(T((x[i]-mean)*inv) * dy[i])
	}
}

func softmaxGrad[T tensor.Float](out, y, dy []T, alpha T) {
	y, dy = y[:len(out)], dy[:len(out)]
	for i := range out {
		out[i] = y[i] * (dy[i] - alpha)
	}
}

// each makes a kernel of a function of one element.
func each[T tensor.Float](f func(T) T) func(out, x []T) {
	return func(out, x []T) {
		x = x[:len(out)]
		for i := range out {
			out[i] = f(x[i])
		}
	}
}

// each2 makes a kernel of a function of two elements.
func each2[T tensor.Float](f func(a, b T) T) func(out, a, b []T) {
	return func(out, a, b []T) {
		a, b = a[:len(out)], b[:len(out)]
		for i := range out {
			out[i] = f(a[i], b[i])
		}
	}
}
