package kernel

import (
	"math"

	"github.com/gangline/gangline/tensor"
)

// The transcendental functions in float32. Each is the sequence of roundings
// that the assembly has: no product is fused with a sum, which the conversions
// around products forbid. Errors in units in the last place, over all float32:
// exp 1.3, log 0.9, sigmoid 2.6, tanh 2.4, softplus 2.6, Φ and its density 4.

// exp(x) = 2ⁿ·exp(r), |r| <= ln 2/2, and exp(r) = 1 + r + r²·P(r), with the
// coefficients of Cephes' expf (Moshier, netlib.org/cephes). ln 2 is cut in two,
// so that n·ln2High is exact.
const (
	expRound = 0x1.8p23 // adding and taking it off rounds to a whole number
	ln2High  = 0.693359375
	ln2Low   = -2.12194440e-4
	expMin   = -104 // below, exp is 0
	expMax   = 89   // above, it is infinite

	exp0 float32 = 1.9875691500e-4
	exp1 float32 = 1.3981999507e-3
	exp2 float32 = 8.3334519073e-3
	exp3 float32 = 4.1665795894e-2
	exp4 float32 = 1.6666665459e-1
	exp5 float32 = 5.0000001201e-1
)

// expNear is exp(x + low), low being tiny, for x in [expMin, expMax].
func expNear(x, low float32) float32 {
	t := float32(x*math.Log2E) + expRound
	n := t - expRound
	r := x - float32(n*ln2High)
	r = r - float32(n*ln2Low)
	r += low
	p := float32(exp0*r) + exp1
	p = float32(p*r) + exp2
	p = float32(p*r) + exp3
	p = float32(p*r) + exp4
	p = float32(p*r) + exp5
	y := float32(float32(r*r)*p) + r
	y++
	// Two factors, since 2ⁿ may be out of range where y·2ⁿ is not.
	k := int32(math.Float32bits(t)) - int32(math.Float32bits(expRound))
	half := k >> 1
	y = float32(y * math.Float32frombits(uint32(half+127)<<23))
	return float32(y * math.Float32frombits(uint32(k-half+127)<<23))
}

func exp32(x float32) float32 {
	if x > expMax {
		x = expMax
	}
	return expNear(max0(x, expMin), 0)
}

// max0 is the larger of both, x if it is NaN.
func max0(x, bound float32) float32 {
	if x < bound {
		return bound
	}
	return x
}

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func negative(x float32) bool { return math.Float32bits(x)>>31 == 1 }

// log(x) = n·ln 2 + log(m), √½ <= m < √2, and log(1+f) = f - f²/2 + f³·P(f), with
// the coefficients of Cephes' logf.
const (
	rootHalf  = 0x3f3504f3 // the bits of √½
	leastUsed = 0x1p-126   // the least number of all digits

	log0 float32 = 7.0376836292e-2
	log1 float32 = -1.1514610310e-1
	log2 float32 = 1.1676998740e-1
	log3 float32 = -1.2420140846e-1
	log4 float32 = 1.4249322787e-1
	log5 float32 = -1.6668057665e-1
	log6 float32 = 2.0000714765e-1
	log7 float32 = -2.4999993993e-1
	log8 float32 = 3.3333331174e-1
)

func log32(x float32) float32 {
	switch {
	case x == 0:
		return float32(math.Inf(-1))
	case !(x >= 0):
		return float32(math.NaN())
	case math.IsInf(float64(x), 1):
		return x
	}
	n := float32(0)
	if x < leastUsed {
		x, n = float32(x*0x1p23), -23
	}
	k := (int32(math.Float32bits(x)) - rootHalf) >> 23
	n += float32(k)
	f := math.Float32frombits(math.Float32bits(x)-uint32(k)<<23) - 1
	z := float32(f * f)
	p := float32(log0*f) + log1
	p = float32(p*f) + log2
	p = float32(p*f) + log3
	p = float32(p*f) + log4
	p = float32(p*f) + log5
	p = float32(p*f) + log6
	p = float32(p*f) + log7
	p = float32(p*f) + log8
	p = float32(float32(p*f)*z) + float32(n*ln2Low)
	p -= float32(z * 0.5)
	return (f + p) + float32(n*ln2High)
}

// log(1+e) = e - s·(e - s²·P(s²)), s = e/(2+e), e in [0, 1], which keeps all
// digits of a small e: 2·atanh(s) = 2s + s³·P(s²), P through the Chebyshev nodes
// of [0, 1/9].
const (
	near0 float32 = 0.26851498
	near1 float32 = 0.28236622
	near2 float32 = 0.4000756
	near3 float32 = 0.6666664
)

func logOf1And32(e float32) float32 {
	s := e / (e + 2)
	z := float32(s * s)
	p := float32(near0*z) + near1
	p = float32(p*z) + near2
	p = float32(p*z) + near3
	r := e - float32(z*p)
	return e - float32(s*r)
}

// softplusOf makes log(1+exp(x)) as max(x, 0) + log(1+exp(-|x|)), which never
// overflows.
func softplusOf[T tensor.Float](exp, logOf1And func(T) T) func(x T) T {
	return func(x T) T {
		v := logOf1And(exp(-abs(x)))
		if x <= 0 {
			return v
		}
		return x + v
	}
}

// sigmoid32 is 1/(1+e) or e/(1+e), e = exp(-|x|), so that neither side
// overflows nor loses digits.
func sigmoid32(x float32) float32 {
	e := expNear(max0(-abs32(x), expMin), 0)
	if negative(x) {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

func silu32(x float32) float32 { return x * sigmoid32(x) }

func siluGrad32(x, dy float32) float32 {
	s := sigmoid32(x)
	return float32(dy*s) * (float32(x*(1-s)) + 1)
}

// tanh is x + x³·P(x²) near 0, with the coefficients of Cephes' tanhf, and
// (1-e)/(1+e), e = exp(-2|x|), elsewhere.
const (
	tanh0 float32 = -5.70498872745e-3
	tanh1 float32 = 2.06390887954e-2
	tanh2 float32 = -5.37397155531e-2
	tanh3 float32 = 1.33314422036e-1
	tanh4 float32 = -3.33332819422e-1
)

func tanh32(x float32) float32 {
	a := -abs32(x)
	if a > -0.625 {
		z := float32(x * x)
		p := float32(tanh0*z) + tanh1
		p = float32(p*z) + tanh2
		p = float32(p*z) + tanh3
		p = float32(p*z) + tanh4
		return float32(float32(p*z)*x) + x
	}
	e := expNear(max0(a+a, expMin), 0)
	y := (1 - e) / (1 + e)
	return math.Float32frombits(math.Float32bits(y) | math.Float32bits(x)&(1<<31))
}

// Φ(-x) = exp(-x²/2)·u·P(u), u = 1/(1+tailScale·x), x >= 0. P was fitted to
// [0, 14.5] by iterated least squares of the relative error, which is 4e-9.
const (
	tailMax           = 14.5 // beyond, exp(-x²/2) is 0
	tailScale float32 = 0.3

	tail0 float32 = -0.0206235535
	tail1 float32 = 0.112436064
	tail2 float32 = -0.228214636
	tail3 float32 = 0.191785902
	tail4 float32 = -0.0794245899
	tail5 float32 = 0.0961574018
	tail6 float32 = 0.0783894584
	tail7 float32 = 0.11023546
	tail8 float32 = 0.119571812
	tail9 float32 = 0.119686693
)

// normal32 returns the normal distribution Φ(x) and exp(-x²/2). The square is
// taken of a number cut to 12 bits, which is exact, and of the rest.
func normal32(x float32) (phi, e float32) {
	a := abs32(x)
	if a > tailMax {
		a = tailMax
	}
	h := math.Float32frombits(math.Float32bits(a) & 0xfffff000)
	low := float32(float32((a-h)*(a+h)) * -0.5)
	e = expNear(float32(float32(h*h)*-0.5), low)
	u := 1 / (float32(a*tailScale) + 1)
	p := float32(tail0*u) + tail1
	p = float32(p*u) + tail2
	p = float32(p*u) + tail3
	p = float32(p*u) + tail4
	p = float32(p*u) + tail5
	p = float32(p*u) + tail6
	p = float32(p*u) + tail7
	p = float32(p*u) + tail8
	p = float32(p*u) + tail9
	q := float32(float32(p*u) * e)
	if negative(x) {
		return q, e
	}
	return 1 - q, e
}

func gelu32(x float32) float32 {
	phi, _ := normal32(x)
	return x * phi
}

func geluGrad32(x, dy float32) float32 {
	phi, e := normal32(x)
	if x > tailMax {
		x = tailMax
	}
	x = max0(x, -tailMax)
	return dy * (float32(float32(x*e)*0.3989423) + phi)
}

// In float64 the functions are those of package math.

func sigmoid64(x float64) float64 {
	e := math.Exp(-math.Abs(x))
	if x < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

func silu64(x float64) float64 { return x * sigmoid64(x) }

func siluGrad64(x, dy float64) float64 {
	s := sigmoid64(x)
	return dy * s * (1 + x*(1-s))
}

func gelu64(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }

func geluGrad64(x, dy float64) float64 {
	return dy * (math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi))
}
