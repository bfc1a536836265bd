package kernel

import (
	"math"

	"github.com/gangline/gangline/tensor"
)

// Table is the kernels for one element type. All but sums are element by
// element and as long as out, which may be one of the inputs. They cost one
// pass over memory; the transcendental ones of assembly 0.5 to 1.5 ns an
// element, portable 5 to 20.
type Table[T tensor.Float] struct {
	Tile *Tile[T]

	// Add, Sub, Mul, Div are a op b.
	Add, Sub, Mul, Div func(out, a, b []T)
	// AddScalar is x + alpha; Scale is alpha·x.
	AddScalar, Scale func(out, x []T, alpha T)
	// AddScaled is a + alpha·x, with two roundings.
	AddScaled func(out, a, x []T, alpha T)
	// Square is x²; Sqrt and Rsqrt, 1/√x, are NaN below 0.
	Square, Sqrt, Rsqrt func(out, x []T)
	// Relu is 0 where x <= 0 and lets NaN pass; AddRelu is that of a + b.
	Relu    func(out, x []T)
	AddRelu func(out, a, b []T)
	// LeakyRelu is x where x > 0, else alpha·x.
	LeakyRelu func(out, x []T, alpha T)
	// Exp, Sigmoid, Tanh are exact to 3 units in the last place, Silu,
	// x·sigmoid(x), to 4, and Gelu, x·Φ(x), to 6 (or 2⁻¹⁴⁰ where that is more);
	// Log to 1.
	Exp, Sigmoid, Tanh, Silu, Gelu, Log func(out, x []T)

	// The gradients: from the result y or the input x, and that of the result.
	ReluGrad, SigmoidGrad, TanhGrad func(out, y, dy []T)
	SquareGrad, SiluGrad, GeluGrad  func(out, x, dy []T)
	LeakyReluGrad                   func(out, x, dy []T, alpha T)
	// SoftmaxGrad is y·(dy - alpha).
	SoftmaxGrad func(out, y, dy []T, alpha T)

	// Normalize is (x - mean)·inv·gain + bias; ScaleMul is x·alpha·gain.
	Normalize func(out, x, gain, bias []T, mean, inv T)
	ScaleMul  func(out, x, gain []T, alpha T)
	// NormGrad is (t - shift - (x - mean)·slope)·inv.
	NormGrad func(out, t, x []T, mean, inv, shift, slope T)
	// SumRows sums over rows that lie stride apart, in their order. SumNormProducts
	// is Σ (x - mean)·inv·dy, moments being mean and inv of every row.
	SumRows         func(out, x []T, rows, stride int)
	SumNormProducts func(out, x, dy []T, moments [][2]T, stride int)

	// Gather copies the rows of dim elements that ids name, one after the other.
	// Fetch has rows brought near that are about to be used.
	Gather func(out, rows []T, ids []int64, dim int)
	Fetch  func(rows []T, ids []int64, dim int)

	// Sum, Dot and Squares, Σ(x - mean)², are in float64, in 8 interleaved lanes.
	Sum     func(x []T) float64
	Dot     func(x, y []T) float64
	Squares func(x []T, mean float64) float64
	// ExpSum sets out to exp(x - shift) and returns its sum as Sum does.
	ExpSum func(out, x []T, shift T) float64
	// Max is the largest element, passing over NaN; -Inf of none.
	Max func(x []T) T
}

// For returns the table of an element type: with assembly where there is some,
// if asm is set, which needs Assembly.
func For[T tensor.Float](asm bool) *Table[T] {
	t := &Table[T]{
		Tile: TileFor[T](asm),
		Add:  add[T], Sub: sub[T], Mul: mul[T], Div: div[T],
		AddScalar: addScalar[T], Scale: scale[T], AddScaled: addScaled[T],
		Square: square[T], Sqrt: sqrt[T], Rsqrt: rsqrt[T],
		Relu: relu[T], AddRelu: addRelu[T], LeakyRelu: leakyRelu[T],
		Log:      each(func(x T) T { return T(math.Log(float64(x))) }),
		ReluGrad: reluGrad[T], SigmoidGrad: sigmoidGrad[T], TanhGrad: tanhGrad[T],
		SquareGrad: squareGrad[T], LeakyReluGrad: leakyReluGrad[T], SoftmaxGrad: softmaxGrad[T],
		Normalize: normalize[T], ScaleMul: scaleMul[T],
		NormGrad: normGrad[T], SumRows: sumRows[T], SumNormProducts: sumNormProducts[T],
		Gather: gather[T], Fetch: fetch[T],
		Sum: sum[T], Dot: dot[T], Squares: squares[T], Max: maximum[T],
	}
	switch t := any(t).(type) {
	case *Table[float64]:
		t.Exp, t.Sigmoid, t.Tanh = each(math.Exp), each(sigmoid64), each(math.Tanh)
		t.Silu, t.Gelu = each(silu64), each(gelu64)
		t.SiluGrad, t.GeluGrad = each2(siluGrad64), each2(geluGrad64)
		t.ExpSum = expSumOf(math.Exp)
	case *Table[float32]:
		t.Exp, t.Sigmoid, t.Tanh = each(exp32), each(sigmoid32), each(tanh32)
		t.Silu, t.Gelu = each(silu32), each(gelu32)
		t.SiluGrad, t.GeluGrad = each2(siluGrad32), each2(geluGrad32)
		t.ExpSum = expSumOf(exp32)
		if asm {
			assemble(t)
		}
	}
	return t
}

// assemble puts assembly in place of what is there, which stays in use for the
// elements left over at the end.
func assemble(t *Table[float32]) {
	t.Add, t.Sub, t.Mul, t.Div = fast2(addAVX, t.Add), fast2(subAVX, t.Sub), fast2(mulAVX, t.Mul), fast2(divAVX, t.Div)
	t.AddScalar, t.Scale = fast1s(addScalarAVX, t.AddScalar), fast1s(scaleAVX, t.Scale)
	t.AddScaled = fast2s(addScaledAVX, t.AddScaled)
	t.Square, t.Sqrt, t.Rsqrt = fast1(squareAVX, t.Square), fast1(sqrtAVX, t.Sqrt), fast1(rsqrtAVX, t.Rsqrt)
	t.Relu, t.AddRelu, t.LeakyRelu = fast1(reluAVX, t.Relu), fast2(addReluAVX, t.AddRelu), fast1s(leakyReluAVX, t.LeakyRelu)
	t.Exp, t.Sigmoid, t.Tanh = fast1(expAVX, t.Exp), fast1(sigmoidAVX, t.Sigmoid), fast1(tanhAVX, t.Tanh)
	t.Silu, t.Gelu = fast1(siluAVX, t.Silu), fast1(geluAVX, t.Gelu)
	t.ReluGrad, t.SigmoidGrad = fast2(reluGradAVX, t.ReluGrad), fast2(sigmoidGradAVX, t.SigmoidGrad)
	t.TanhGrad, t.SquareGrad = fast2(tanhGradAVX, t.TanhGrad), fast2(squareGradAVX, t.SquareGrad)
	t.SiluGrad, t.GeluGrad = fast2(siluGradAVX, t.SiluGrad), fast2(geluGradAVX, t.GeluGrad)
	t.LeakyReluGrad, t.SoftmaxGrad = fast2s(leakyReluGradAVX, t.LeakyReluGrad), fast2s(softmaxGradAVX, t.SoftmaxGrad)
	t.Normalize, t.ScaleMul = normalizeFast, fast2s(scaleMulAVX, t.ScaleMul)
	t.NormGrad, t.SumRows, t.SumNormProducts = normGradFast, sumRowsFast, sumNormProductsFast
	t.Gather, t.Fetch = gatherFast, fetchFast
	t.Sum, t.Dot, t.Squares, t.ExpSum, t.Max = sumFast, dotFast, squaresFast, expSumFast, maximumFast
}

// fast1, fast2, fast1s and fast2s make a kernel of one or two inputs, and a
// scalar, of assembly for the part of the length that is a multiple of 8, and
// of Go for the rest.

func fast1(main func(out, x *float32, n int), rest func(out, x []float32)) func(out, x []float32) {
	return func(out, x []float32) {
		x = x[:len(out)]
		n := len(out) &^ 7
		if n > 0 {
			main(&out[0], &x[0], n)
		}
		if n < len(out) {
			rest(out[n:], x[n:])
		}
	}
}

func fast2(main func(out, a, b *float32, n int), rest func(out, a, b []float32)) func(out, a, b []float32) {
	return func(out, a, b []float32) {
		a, b = a[:len(out)], b[:len(out)]
		n := len(out) &^ 7
		if n > 0 {
			main(&out[0], &a[0], &b[0], n)
		}
		if n < len(out) {
			rest(out[n:], a[n:], b[n:])
		}
	}
}

func fast1s(main func(out, x *float32, n int, alpha float32), rest func(out, x []float32, alpha float32)) func(out, x []float32, alpha float32) {
	return func(out, x []float32, alpha float32) {
		x = x[:len(out)]
		n := len(out) &^ 7
		if n > 0 {
			main(&out[0], &x[0], n, alpha)
		}
		if n < len(out) {
			rest(out[n:], x[n:], alpha)
		}
	}
}

func fast2s(main func(out, a, b *float32, n int, alpha float32), rest func(out, a, b []float32, alpha float32)) func(out, a, b []float32, alpha float32) {
	return func(out, a, b []float32, alpha float32) {
		a, b = a[:len(out)], b[:len(out)]
		n := len(out) &^ 7
		if n > 0 {
			main(&out[0], &a[0], &b[0], n, alpha)
		}
		if n < len(out) {
			rest(out[n:], a[n:], b[n:], alpha)
		}
	}
}

func normalizeFast(out, x, gain, bias []float32, mean, inv float32) {
	x, gain, bias = x[:len(out)], gain[:len(out)], bias[:len(out)]
	n := len(out) &^ 7
	if n > 0 {
		normalizeAVX(&out[0], &x[0], &gain[0], &bias[0], n, mean, inv)
	}
	normalize(out[n:], x[n:], gain[n:], bias[n:], mean, inv)
}

func normGradFast(out, t, x []float32, mean, inv, shift, slope float32) {
	t, x = t[:len(out)], x[:len(out)]
	n := len(out) &^ 7
	if n > 0 {
		normGradAVX(&out[0], &t[0], &x[0], n, mean, inv, shift, slope)
	}
	normGrad(out[n:], t[n:], x[n:], mean, inv, shift, slope)
}
