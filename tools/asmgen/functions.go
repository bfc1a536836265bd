package main

import (
	"math"

	. "github.com/mmcloughlin/avo/operand"
)

// Coefficients are those of compute/native/internal/kernel/math32.go, where it
// is said what they come from.
var (
	expPoly = []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}

	tanhPoly = []float32{-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1}

	logPoly = []float32{
		7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
	}

	logOf1Poly = []float32{0.26851498, 0.28236622, 0.4000756, 0.6666664}

	tailPoly = []float32{-0.0206235535, 0.112436064, -0.228214636, 0.191785902, -0.0794245899, 0.0961574018, 0.0783894584, 0.11023546, 0.119571812, 0.119686693}
)

const (
	expRound  = 0x1.8p23
	ln2High   = 0.693359375
	ln2Low    = -2.12194440e-4
	expMin    = -104
	expMax    = 89
	signBit   = 0x80000000
	otherBits = 0x7fffffff
	rootHalf  = 0x3f3504f3 // the bits of √½
	leastUsed = 0x1p-126   // the least number of all digits
	tailMax   = 14.5
	tailScale = 0.3
)

// polynomial is Horner's scheme, highest power first.
func (g *generator) polynomial(x vec, c []float32) vec {
	p := g.load(g.constant(float64(c[0])))
	for _, k := range c[1:] {
		p = g.add(g.mul(p, x), g.constant(float64(k)))
	}
	return p
}

// exp is exp(x + low), low being tiny or nil, for x in [expMin, expMax].
func (g *generator) exp(x vec, low *vec) vec {
	t := g.add(g.mul(x, g.constant(math.Log2E)), g.constant(expRound))
	n := g.sub(t, g.constant(expRound))
	r := g.sub(x, g.mul(n, g.constant(ln2High)))
	r = g.sub(r, g.mul(n, g.constant(ln2Low)))
	if low != nil {
		r = g.add(r, *low)
	}
	y := g.add(g.mul(g.mul(r, r), g.polynomial(r, expPoly)), r)
	y = g.add(y, g.constant(1))
	// Two factors, since 2ⁿ may be out of range where y·2ⁿ is not.
	k, half, rest := g.YMM(), g.YMM(), g.YMM()
	g.VPSUBD(g.bits(math.Float32bits(expRound)), t, k)
	g.VPSRAD(Imm(1), k, half)
	g.VPSUBD(half, k, rest)
	for _, v := range []vec{half, rest} {
		g.VPADDD(g.bits(127), v, v)
		g.VPSLLD(Imm(23), v, v)
		y = g.mul(y, v)
	}
	return y
}

// expAny is exp(x) for any x.
func (g *generator) expAny(x vec) vec {
	return g.exp(g.greater(g.lesser(x, expMax), expMin), nil)
}

// expBelow is exp(-|x|).
func (g *generator) expBelow(x vec) vec {
	return g.exp(g.greater(g.or(x, g.bits(signBit)), expMin), nil)
}

// log is the natural logarithm of any x.
func (g *generator) log(x vec) vec {
	small := g.compare(less, x, g.constant(leastUsed))
	y := g.choose(small, g.mul(x, g.constant(0x1p23)), x)
	k, m := g.YMM(), g.YMM()
	g.VPSUBD(g.bits(rootHalf), y, k)
	g.VPSRAD(Imm(23), k, k)
	g.VPSLLD(Imm(23), k, m)
	g.VPSUBD(m, y, m)
	n := g.YMM()
	g.VCVTDQ2PS(k, n)
	n = g.sub(n, g.and(small, g.constant(23)))
	f := g.sub(m, g.constant(1))
	z := g.mul(f, f)
	p := g.mul(g.mul(g.polynomial(f, logPoly), f), z)
	p = g.add(p, g.mul(n, g.constant(ln2Low)))
	p = g.sub(p, g.mul(z, g.constant(0.5)))
	p = g.add(g.add(f, p), g.mul(n, g.constant(ln2High)))
	p = g.choose(g.compare(equal, x, g.constant(math.Inf(1))), x, p)
	p = g.choose(g.compare(equal, x, g.constant(0)), g.constant(math.Inf(-1)), p)
	return g.or(p, g.compare(notAtLeast, x, g.constant(0)))
}

// logOf1And is log(1+e) for e in [0, 1].
func (g *generator) logOf1And(e vec) vec {
	s := g.div(e, g.add(e, g.constant(2)))
	z := g.mul(s, s)
	r := g.sub(e, g.mul(z, g.polynomial(z, logOf1Poly)))
	return g.sub(e, g.mul(s, r))
}

// sigmoid is 1/(1+exp(-x)).
func (g *generator) sigmoid(x vec) vec {
	e := g.expBelow(x)
	one := g.load(g.constant(1))
	return g.div(g.choose(x, e, one), g.add(one, e)) // the mask is the sign of x
}

func (g *generator) tanh(x vec) vec {
	a := g.or(x, g.bits(signBit)) // -|x|
	e := g.exp(g.greater(g.add(a, a), expMin), nil)
	one := g.load(g.constant(1))
	large := g.div(g.sub(one, e), g.add(one, e))
	large = g.or(large, g.and(x, g.bits(signBit)))
	z := g.mul(x, x)
	small := g.add(g.mul(g.mul(g.polynomial(z, tanhPoly), z), x), x)
	return g.choose(g.compare(above, a, g.constant(-0.625)), small, large)
}

// normal is the distribution Φ(x) and exp(-x²/2).
func (g *generator) normal(x vec) (phi, e vec) {
	a := g.lesser(g.and(x, g.bits(otherBits)), tailMax)
	h := g.and(a, g.bits(0xfffff000)) // its square is exact
	half := g.constant(-0.5)
	low := g.mul(g.mul(g.sub(a, h), g.add(a, h)), half)
	e = g.exp(g.mul(g.mul(h, h), half), &low)
	one := g.load(g.constant(1))
	u := g.div(one, g.add(g.mul(a, g.constant(tailScale)), one))
	q := g.mul(g.mul(g.polynomial(u, tailPoly), u), e)
	return g.choose(x, q, g.sub(one, q)), e // the mask is the sign of x
}

// functions writes the transcendental kernels.
func functions(g *generator) {
	x, xdy := []string{"x"}, []string{"x", "dy"}
	g.loop("expAVX", "exp(x)", x, nil, func(v values) vec { return g.expAny(v.in[0]) })
	g.loop("logAVX", "log(x)", x, nil, func(v values) vec { return g.log(v.in[0]) })
	g.loop("softplusAVX", "log(1+exp(x))", x, nil, func(v values) vec {
		return g.add(g.relu(v.in[0]), g.logOf1And(g.expBelow(v.in[0])))
	})
	g.loop("logisticGradAVX", "(sigmoid(z) - y)·alpha", []string{"z", "y"}, []string{"alpha"}, func(v values) vec {
		z, y := v.in[0], v.in[1]
		e, one := g.expBelow(z), g.load(g.constant(1))
		p := g.sub(g.mul(g.sub(one, y), g.choose(z, e, one)), g.mul(y, g.choose(z, one, e))) // the mask is the sign of z
		return g.mul(g.div(p, g.add(one, e)), v.scalars[0])
	})
	g.loop("sigmoidAVX", "1/(1+exp(-x))", x, nil, func(v values) vec { return g.sigmoid(v.in[0]) })
	g.loop("siluAVX", "x·sigmoid(x)", x, nil, func(v values) vec { return g.mul(v.in[0], g.sigmoid(v.in[0])) })
	g.loop("siluGradAVX", "dy·s·(1+x·(1-s)), s = sigmoid(x)", xdy, nil, func(v values) vec {
		s, one := g.sigmoid(v.in[0]), g.load(g.constant(1))
		return g.mul(g.mul(v.in[1], s), g.add(g.mul(v.in[0], g.sub(one, s)), one))
	})
	g.loop("tanhAVX", "tanh(x)", x, nil, func(v values) vec { return g.tanh(v.in[0]) })
	g.loop("geluAVX", "x·Φ(x)", x, nil, func(v values) vec {
		phi, _ := g.normal(v.in[0])
		return g.mul(v.in[0], phi)
	})
	g.loop("geluGradAVX", "dy·(Φ(x) + x·exp(-x²/2)/√(2π))", xdy, nil, func(v values) vec {
		phi, e := g.normal(v.in[0])
		x := g.greater(g.lesser(v.in[0], tailMax), -tailMax)
		return g.mul(v.in[1], g.add(g.mul(g.mul(x, e), g.constant(0.3989423)), phi))
	})
}
