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

func maximum[T tensor.Float](a, b T) T { return max(a, b) }
func minimum[T tensor.Float](a, b T) T { return min(a, b) }

// truth makes numbers of a comparison.
func truth[T tensor.Float](f func(a, b T) bool) func(a, b T) T {
	return func(a, b T) T {
		if f(a, b) {
			return 1
		}
		return 0
	}
}

// step is how far to go in an operand from element to element of n: nowhere if
// it is one that is repeated.
func step[T any](x []T, n int) int {
	if len(x) == 1 && n > 1 {
		return 0
	}
	return 1
}

// operator makes a kernel whose operands may be repeated of one for whole
// operands, or nil, and of the function of two elements.
func operator[T tensor.Float](whole func(out, a, b []T), f func(a, b T) T) func(out, a, b []T) {
	return func(out, a, b []T) {
		sa, sb := step(a, len(out)), step(b, len(out))
		if whole != nil && sa&sb == 1 {
			whole(out, a, b)
			return
		}
		for i := range out {
			out[i] = f(a[i*sa], b[i*sb])
		}
	}
}

func where[T tensor.Float](out, c, x, y []T) {
	sc, sx, sy := step(c, len(out)), step(x, len(out)), step(y, len(out))
	for i := range out {
		v := y[i*sy]
		if c[i*sc] != 0 {
			v = x[i*sx]
		}
		out[i] = v
	}
}

// fill sets all elements; memory is copied faster than set.
func fill[T tensor.Float](out []T, v T) {
	if len(out) > 0 {
		out[0] = v
	}
	for n := 1; n < len(out); n *= 2 {
		copy(out[n:], out[:n])
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

func squaredGrad[T tensor.Float](out, p, y []T, alpha T) {
	p, y = p[:len(out)], y[:len(out)]
	for i := range out {
		out[i] = (p[i] - y[i]) * alpha
	}
}

// logisticGradOf makes a Table.LogisticGrad of an exponential function.
func logisticGradOf[T tensor.Float](exp func(T) T) func(out, z, y []T, dy T) {
	return func(out, z, y []T, dy T) {
		z, y = z[:len(out)], y[:len(out)]
		for i, v := range z {
			e := exp(-abs(v))
			p := (1 - y[i]) - T(y[i]*e)
			if v < 0 {
				p = T((1-y[i])*e) - y[i]
			}
			out[i] = p / (1 + e) * dy
		}
	}
}

func abs[T tensor.Float](x T) T { return T(math.Abs(float64(x))) }

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
