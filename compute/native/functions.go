package native

import (
	"math"

	"github.com/gangline/gangline/tensor"
)

// functions are the transcendental kernels of an element type. In float64 they
// are those of package math; in float32 they work in float64 with polynomials
// just long enough, which is exact to 0.6 units in the last place and several
// times as fast for tanh.
type functions[T tensor.Float] struct {
	exp  func(T) T
	exps func(out, x []T)
	sigm func(out, x []T)
	tanh func(out, x []T)
}

func math32() functions[float32] {
	return functions[float32]{exp: exp32, exps: exps32, sigm: sigmoids32, tanh: tanhs32}
}

func math64() functions[float64] {
	return functions[float64]{
		exp:  math.Exp,
		exps: func(out, x []float64) { apply(out, x, math.Exp) },
		sigm: func(out, x []float64) { apply(out, x, sigmoid64) },
		tanh: func(out, x []float64) { apply(out, x, math.Tanh) },
	}
}

func apply[T tensor.Float](out, x []T, f func(T) T) {
	x = x[:len(out)]
	for i := range out {
		out[i] = f(x[i])
	}
}

// sigmoid64 is 1/(1+exp(-x)) without overflow on either side.
func sigmoid64(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

// expWide is exp(x) to 6e-9, for |x| below 700: x = n·ln 2 + r with
// |r| <= ln 2 / 2, the Taylor series of exp(r) up to r⁷, and n put in the
// exponent. Adding and taking off 1.5·2⁵² rounds to the nearest whole number.
func expWide(x float64) float64 {
	const round = 0x1.8p52
	n := x*math.Log2E + round - round
	r := x - n*math.Ln2
	r2 := r * r
	p := 1 + r + r2*(1./2+r*(1./6)+r2*(1./24+r*(1./120)+r2*(1./720+r*(1./5040))))
	return p * math.Float64frombits(uint64(int64(n)+1023)<<52)
}

func exp32(x float32) float32 {
	if x > -600 && x < 600 {
		return float32(expWide(float64(x)))
	}
	return float32(math.Exp(float64(x)))
}

func exps32(out, x []float32) {
	x = x[:len(out)]
	for i := range out {
		out[i] = exp32(x[i])
	}
}

func sigmoids32(out, x []float32) {
	x = x[:len(out)]
	for i := range out {
		v := float64(x[i])
		if v > -600 && v < 600 {
			out[i] = float32(1 / (1 + expWide(-v)))
			continue
		}
		out[i] = float32(sigmoid64(v))
	}
}

// tanhs32 takes the odd Taylor series near 0, where 1 - 2/(exp(2x)+1) would
// lose all digits.
func tanhs32(out, x []float32) {
	x = x[:len(out)]
	for i := range out {
		v := float64(x[i])
		switch {
		case v > -0.25 && v < 0.25:
			q := v * v
			out[i] = float32(v * (1 - q*(1./3-q*(2./15-q*(17./315-q*(62./2835-q*(1382./155925)))))))
		case v > -300 && v < 300:
			out[i] = float32(1 - 2/(expWide(2*v)+1))
		default:
			out[i] = float32(math.Tanh(v))
		}
	}
}
