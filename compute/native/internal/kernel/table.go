package kernel

import (
	"math"

	"github.com/gangline/gangline/internal/half"
	"github.com/gangline/gangline/tensor"
)

// Table is the kernels for one element type. All but sums are element by
// element and as long as out, which may be one of the inputs. In assembly those
// that only move, add and multiply cost one pass over memory, 0.05 to 0.2 ns an
// element in the cache, and the transcendental ones 0.4 to 1.5; in portable Go
// 0.3 to 2, and 5 to 40. In float64 the transcendental ones are portable.
type Table[T tensor.Float] struct {
	Tile *Tile[T]

	// Add, Sub, Mul, Div are a op b, Maximum and Minimum those of Go, NaN if
	// one is NaN; Less, LessEqual, Equal are 1 where true, else 0. An operand
	// may have one element, which is repeated.
	Add, Sub, Mul, Div, Maximum, Minimum, Less, LessEqual, Equal func(out, a, b []T)
	// Where is x where c is not 0, NaN among that, else y. Each may be repeated.
	Where func(out, c, x, y []T)
	// AddScalar is x + alpha; Scale is alpha·x.
	AddScalar, Scale func(out, x []T, alpha T)
	// AddScaled is a + alpha·x, with two roundings.
	AddScaled func(out, a, x []T, alpha T)
	// Square is x²; Sqrt and Rsqrt, 1/√x, are NaN below 0.
	Square, Sqrt, Rsqrt func(out, x []T)
	// RoundBF16 and RoundF16 are the nearest 16-bit value; nil for float64.
	RoundBF16, RoundF16 func(out, x []T)
	// Relu is 0 where x <= 0 and lets NaN pass.
	Relu func(out, x []T)
	// LeakyRelu is x where x > 0, else alpha·x.
	LeakyRelu func(out, x []T, alpha T)
	// Exp, Sigmoid, Tanh are exact to 3 units in the last place, Silu,
	// x·sigmoid(x), and Softplus, log(1+exp(x)), to 4, and Gelu, x·Φ(x), to 6 (or
	// 2⁻¹⁴⁰ where that is more); Log to 1.
	Exp, Sigmoid, Tanh, Silu, Gelu, Log, Softplus func(out, x []T)

	// The gradients: from the result y or the input x, and that of the result.
	ReluGrad, SigmoidGrad, TanhGrad func(out, y, dy []T)
	SquareGrad, SiluGrad, GeluGrad  func(out, x, dy []T)
	LeakyReluGrad                   func(out, x, dy []T, alpha T)
	// SoftmaxGrad is y·(dy - alpha).
	SoftmaxGrad func(out, y, dy []T, alpha T)
	// LogisticGrad is (sigmoid(z) - y)·dy, exact to 4 units in the last place of
	// a label 0 or 1, and to 4 of that of dy for those between. SquaredGrad is
	// (p - y)·dy.
	LogisticGrad func(out, z, y []T, dy T)
	SquaredGrad  func(out, p, y []T, dy T)

	// Normalize is (x - mean)·inv·gain + bias; ScaleMul is x·alpha·gain.
	Normalize func(out, x, gain, bias []T, mean, inv T)
	ScaleMul  func(out, x, gain []T, alpha T)
	// NormGrad is (t - shift - (x - mean)·slope)·inv.
	NormGrad func(out, t, x []T, mean, inv, shift, slope T)
	// SumRows sums over rows that lie stride apart, in their order. SumNormProducts
	// is Σ (x - mean)·inv·dy, moments being mean and inv of every row.
	SumRows         func(out, x []T, rows, stride int)
	SumNormProducts func(out, x, dy []T, moments [][2]T, stride int)

	// Gather copies the rows of dim elements that ids name to runs of out.
	// AddRows adds the rows x, in runs, to those of out that the ids less lo name,
	// if they are there.
	Gather  func(out []T, to Runs, rows []T, ids []int64, dim int)
	AddRows func(out, x []T, from Runs, ids []int64, lo, dim int)

	// Fill sets all elements to v.
	Fill func(out []T, v T)
	// Turn sets out[c·outRow+r] to x[r·xRow+c], for rows and cols of x.
	Turn func(out []T, outRow int, x []T, xRow, rows, cols int)
	// Second is x[2i]. AddSecond adds x[i] to out[2i].
	Second, AddSecond func(out, x []T)
	// Drop is x[i]·scale where compute.Mask.Keeps(i), of the keys that a Mask
	// has, else 0.
	Drop func(out, x []T, k0, k1, least uint32, scale T)

	// Sum, Dot and Squares, Σ(x - mean)², are in float64, in 8 interleaved lanes.
	Sum     func(x []T) float64
	Dot     func(x, y []T) float64
	Squares func(x []T, mean float64) float64
	// ExpSum sets out to exp(x - shift) and returns its sum as Sum does.
	ExpSum func(out, x []T, shift T) float64
	// LogisticLoss is Σ max(z, 0) - z·y + log(1+exp(-|z|)), each term exact to 4
	// units in the last place, and SquaredLoss Σ (p - y)², added as Sum does.
	LogisticLoss, SquaredLoss func(x, y []T) float64

	// Max is the largest element, passing over NaN; -Inf of none, and never -0.
	Max func(x []T) T
	// First is the index of the first of the largest elements of some, where NaN
	// is larger than any number. Raise is a step of the same in columns: top is x
	// and at is i where x is larger than top.
	First func(x []T) int
	Raise func(top, at, x []T, i T)
	// Inside reports whether all elements are in [low, high]; NaN is not.
	Inside func(x []T, low, high T) bool
}

// Round returns the rounding to a 16-bit type.
func (t *Table[T]) Round(low tensor.DType) func(out, x []T) {
	if low == tensor.BF16 {
		return t.RoundBF16
	}
	return t.RoundF16
}

// For returns the table of an element type: with assembly where there is some,
// if asm is set, which needs Assembly.
func For[T tensor.Float](asm bool) *Table[T] {
	t := &Table[T]{
		Tile: TileFor[T](asm),
		Add:  operator(add[T], func(a, b T) T { return a + b }), Sub: operator(sub[T], func(a, b T) T { return a - b }),
		Mul: operator(mul[T], func(a, b T) T { return a * b }), Div: operator(div[T], func(a, b T) T { return a / b }),
		Maximum: operator(nil, maximum[T]), Minimum: operator(nil, minimum[T]),
		Less:      operator(nil, truth(func(a, b T) bool { return a < b })),
		LessEqual: operator(nil, truth(func(a, b T) bool { return a <= b })),
		Equal:     operator(nil, truth(func(a, b T) bool { return a == b })),
		Where:     where[T], AddScalar: addScalar[T], Scale: scale[T], AddScaled: addScaled[T],
		Square: square[T], Sqrt: sqrt[T], Rsqrt: rsqrt[T],
		Relu: relu[T], LeakyRelu: leakyRelu[T],
		ReluGrad: reluGrad[T], SigmoidGrad: sigmoidGrad[T], TanhGrad: tanhGrad[T],
		SquareGrad: squareGrad[T], LeakyReluGrad: leakyReluGrad[T], SoftmaxGrad: softmaxGrad[T], SquaredGrad: squaredGrad[T],
		Normalize: normalize[T], ScaleMul: scaleMul[T], NormGrad: normGrad[T],
		SumRows: sumRows[T], SumNormProducts: sumNormProducts[T],
		Gather: gather[T], AddRows: addRows[T], Fill: fill[T], Turn: turn[T], Second: second[T], AddSecond: addSecond[T], Drop: drop[T],
		Sum: sum[T], Dot: dot[T], Squares: squares[T], SquaredLoss: squaredLoss[T],
		Max: largest[T], First: first[T], Raise: raise[T], Inside: inside[T],
	}
	switch t := any(t).(type) {
	case *Table[float64]:
		t.Exp, t.Sigmoid, t.Tanh, t.Log = each(math.Exp), each(sigmoid64), each(math.Tanh), each(math.Log)
		t.Silu, t.Gelu, t.Softplus = each(silu64), each(gelu64), each(softplusOf(math.Exp, math.Log1p))
		t.SiluGrad, t.GeluGrad, t.LogisticGrad = each2(siluGrad64), each2(geluGrad64), logisticGradOf(math.Exp)
		t.ExpSum, t.LogisticLoss = expSumOf(math.Exp), logisticLossOf(math.Exp, math.Log1p)
		if asm {
			assemble64(t)
		}
	case *Table[float32]:
		t.RoundBF16, t.RoundF16 = half.BF16(!asm).Round, half.F16(!asm).Round
		t.Exp, t.Sigmoid, t.Tanh, t.Log = each(exp32), each(sigmoid32), each(tanh32), each(log32)
		t.Silu, t.Gelu, t.Softplus = each(silu32), each(gelu32), each(softplusOf(exp32, logOf1And32))
		t.SiluGrad, t.GeluGrad, t.LogisticGrad = each2(siluGrad32), each2(geluGrad32), logisticGradOf(exp32)
		t.ExpSum, t.LogisticLoss = expSumOf(exp32), logisticLossOf(exp32, logOf1And32)
		if asm {
			assemble(t)
		}
	}
	return t
}
