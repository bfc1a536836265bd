package kernel

import "github.com/gangline/gangline/tensor"

// assemble and assemble64 put assembly in place of portable kernels.

func assemble(t *Table[float32]) {
	t.Add, t.Sub, t.Mul, t.Div = repeated(addAVX), repeated(subAVX), repeated(mulAVX), repeated(divAVX)
	t.Maximum, t.Minimum = repeated(maximumAVX), repeated(minimumAVX)
	t.Less, t.LessEqual, t.Equal = repeated(lessAVX), repeated(lessEqualAVX), repeated(equalAVX)
	t.Where = chosen(whereAVX)
	t.AddScalar, t.Scale, t.AddScaled = fast1s(addScalarAVX), fast1s(scaleAVX), fast2s(addScaledAVX)
	t.Square, t.Sqrt, t.Rsqrt = fast1(squareAVX), fast1(sqrtAVX), fast1(rsqrtAVX)
	t.Relu, t.LeakyRelu = fast1(reluAVX), fast1s(leakyReluAVX)
	t.ReluGrad, t.SigmoidGrad, t.TanhGrad = fast2(reluGradAVX), fast2(sigmoidGradAVX), fast2(tanhGradAVX)
	t.SquareGrad, t.LeakyReluGrad, t.SoftmaxGrad = fast2(squareGradAVX), fast2s(leakyReluGradAVX), fast2s(softmaxGradAVX)
	t.SquaredGrad, t.ScaleMul = fast2s(squaredGradAVX), fast2s(scaleMulAVX)
	t.Normalize, t.NormGrad = normalizeOf(normalizeAVX), normGradOf(normGradAVX)
	t.SumRows, t.SumNormProducts = sumRowsFast, sumNormProductsFast
	t.Sum, t.Squares = sumOf(sumAVX), squaresOf(squaresAVX)
	t.Dot, t.SquaredLoss = sumOf2(dotAVX), sumOf2(squaredLossAVX)
	t.Max, t.First, t.Raise = largestOf(maxAVX), firstOf(firstAVX), raiseOf(raiseAVX)
	t.Inside = insideOf(outsideAVX)
	t.Exp, t.Sigmoid, t.Tanh, t.Log = fast1(expAVX), fast1(sigmoidAVX), fast1(tanhAVX), fast1(logAVX)
	t.Silu, t.Gelu, t.Softplus = fast1(siluAVX), fast1(geluAVX), fast1(softplusAVX)
	t.SiluGrad, t.GeluGrad, t.LogisticGrad = fast2(siluGradAVX), fast2(geluGradAVX), fast2s(logisticGradAVX)
	t.Gather, t.AddRows, t.Turn = gatherFast, addRowsFast, turnFast
	t.Second, t.AddSecond, t.Drop = secondFast, addSecondFast, dropOf(dropAVX)
	t.ExpSum, t.LogisticLoss = expSum, sumOf2(logisticLossAVX)
}

func assemble64(t *Table[float64]) {
	t.Add, t.Sub, t.Mul, t.Div = repeated(addAVX64), repeated(subAVX64), repeated(mulAVX64), repeated(divAVX64)
	t.Maximum, t.Minimum = repeated(maximumAVX64), repeated(minimumAVX64)
	t.Less, t.LessEqual, t.Equal = repeated(lessAVX64), repeated(lessEqualAVX64), repeated(equalAVX64)
	t.Where = chosen(whereAVX64)
	t.AddScalar, t.Scale, t.AddScaled = fast1s(addScalarAVX64), fast1s(scaleAVX64), fast2s(addScaledAVX64)
	t.Square, t.Sqrt, t.Rsqrt = fast1(squareAVX64), fast1(sqrtAVX64), fast1(rsqrtAVX64)
	t.Relu, t.LeakyRelu = fast1(reluAVX64), fast1s(leakyReluAVX64)
	t.ReluGrad, t.SigmoidGrad, t.TanhGrad = fast2(reluGradAVX64), fast2(sigmoidGradAVX64), fast2(tanhGradAVX64)
	t.SquareGrad, t.LeakyReluGrad, t.SoftmaxGrad = fast2(squareGradAVX64), fast2s(leakyReluGradAVX64), fast2s(softmaxGradAVX64)
	t.SquaredGrad, t.ScaleMul = fast2s(squaredGradAVX64), fast2s(scaleMulAVX64)
	t.Normalize, t.NormGrad = normalizeOf(normalizeAVX64), normGradOf(normGradAVX64)
	t.Sum, t.Squares = sumOf(sumAVX64), squaresOf(squaresAVX64)
	t.Dot, t.SquaredLoss = sumOf2(dotAVX64), sumOf2(squaredLossAVX64)
	t.Max, t.First, t.Raise = largestOf(maxAVX64), firstOf(firstAVX64), raiseOf(raiseAVX64)
	t.Inside, t.Drop = insideOf(outsideAVX64), dropOf(dropAVX64)
}

// What follows makes a kernel on slices of assembly for n elements, by the
// parameters of it.

func fast1[T tensor.Float](f func(out, x *T, n int)) func(out, x []T) {
	return func(out, x []T) {
		if n := len(out); n > 0 {
			x = x[:n]
			f(&out[0], &x[0], n)
		}
	}
}

func fast2[T tensor.Float](f func(out, a, b *T, n int)) func(out, a, b []T) {
	return func(out, a, b []T) {
		if n := len(out); n > 0 {
			a, b = a[:n], b[:n]
			f(&out[0], &a[0], &b[0], n)
		}
	}
}

func fast1s[T tensor.Float](f func(out, x *T, n int, alpha T)) func(out, x []T, alpha T) {
	return func(out, x []T, alpha T) {
		if n := len(out); n > 0 {
			x = x[:n]
			f(&out[0], &x[0], n, alpha)
		}
	}
}

func fast2s[T tensor.Float](f func(out, a, b *T, n int, alpha T)) func(out, a, b []T, alpha T) {
	return func(out, a, b []T, alpha T) {
		if n := len(out); n > 0 {
			a, b = a[:n], b[:n]
			f(&out[0], &a[0], &b[0], n, alpha)
		}
	}
}

// one is 1 if x is one element to be repeated for n; other slices must be long
// enough.
func one[T any](x []T, n int) int {
	if step(x, n) == 0 {
		return 1
	}
	_ = x[n-1]
	return 0
}

// Bits of what assembly is told to repeat, by input; not all inputs may be.
const (
	repeatSecond = 2
	repeatThird  = 4
)

func repeated[T tensor.Float](f func(out, a, b *T, n, single int)) func(out, a, b []T) {
	return func(out, a, b []T) {
		n := len(out)
		if n == 0 {
			return
		}
		single := one(a, n) | repeatSecond*one(b, n)
		if single == 1|repeatSecond {
			f(&out[0], &a[0], &b[0], 1, 0)
			fill(out, out[0])
			return
		}
		f(&out[0], &a[0], &b[0], n, single)
	}
}

func chosen[T tensor.Float](f func(out, c, x, y *T, n, single int)) func(out, c, x, y []T) {
	return func(out, c, x, y []T) {
		n := len(out)
		if n == 0 {
			return
		}
		single := repeatSecond*one(x, n) | repeatThird*one(y, n)
		if one(c, n) == 1 {
			where(out, c, x, y)
			return
		}
		f(&out[0], &c[0], &x[0], &y[0], n, single)
	}
}

func normalizeOf[T tensor.Float](f func(out, x, gain, bias *T, n int, mean, inv T)) func(out, x, gain, bias []T, mean, inv T) {
	return func(out, x, gain, bias []T, mean, inv T) {
		if n := len(out); n > 0 {
			x, gain, bias = x[:n], gain[:n], bias[:n]
			f(&out[0], &x[0], &gain[0], &bias[0], n, mean, inv)
		}
	}
}

func normGradOf[T tensor.Float](f func(out, t, x *T, n int, mean, inv, shift, slope T)) func(out, t, x []T, mean, inv, shift, slope T) {
	return func(out, t, x []T, mean, inv, shift, slope T) {
		if n := len(out); n > 0 {
			t, x = t[:n], x[:n]
			f(&out[0], &t[0], &x[0], n, mean, inv, shift, slope)
		}
	}
}

func sumOf[T tensor.Float](f func(x *T, n int) float64) func(x []T) float64 {
	return func(x []T) float64 {
		if len(x) == 0 {
			return 0
		}
		return f(&x[0], len(x))
	}
}

func sumOf2[T tensor.Float](f func(x, y *T, n int) float64) func(x, y []T) float64 {
	return func(x, y []T) float64 {
		y = y[:len(x)]
		if len(x) == 0 {
			return 0
		}
		return f(&x[0], &y[0], len(x))
	}
}

func squaresOf[T tensor.Float](f func(x *T, n int, mean float64) float64) func(x []T, mean float64) float64 {
	return func(x []T, mean float64) float64 {
		if len(x) == 0 {
			return 0
		}
		return f(&x[0], len(x), mean)
	}
}

func expSum(out, x []float32, shift float32) float64 {
	x = x[:len(out)]
	if len(x) == 0 {
		return 0
	}
	return expSumAVX(&out[0], &x[0], len(x), shift)
}

func largestOf[T tensor.Float](f func(x *T, n int) T) func(x []T) T {
	return func(x []T) T {
		if len(x) == 0 {
			return largest(x)
		}
		return f(&x[0], len(x)) + 0
	}
}

// firstOf leaves short rows to Go, which is as fast.
func firstOf[T tensor.Float](f func(x *T, n int) int) func(x []T) int {
	return func(x []T) int {
		if len(x) < 8 {
			return first(x)
		}
		return f(&x[0], len(x))
	}
}

func raiseOf[T tensor.Float](f func(top, at, x *T, n int, i T)) func(top, at, x []T, i T) {
	return func(top, at, x []T, i T) {
		if n := len(top); n > 0 {
			at, x = at[:n], x[:n]
			f(&top[0], &at[0], &x[0], n, i)
		}
	}
}

func insideOf[T tensor.Float](f func(x *T, n int, low, high T) int) func(x []T, low, high T) bool {
	return func(x []T, low, high T) bool { return len(x) == 0 || f(&x[0], len(x), low, high) == 0 }
}

func dropOf[T tensor.Float](f func(out, x *T, n int, k0, k1, least uint32, scale T)) func(out, x []T, k0, k1, least uint32, scale T) {
	return func(out, x []T, k0, k1, least uint32, scale T) {
		if n := len(out); n > 0 {
			x = x[:n]
			f(&out[0], &x[0], n, k0, k1, least, scale)
		}
	}
}
