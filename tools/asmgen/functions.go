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
	tailMax   = 14.5
	tailScale = 0.3
)

// polynomial is Horner's scheme, highest power first.
func (g *generator) polynomial(x vec, c []float32) vec {
	p := g.load(g.constant(c[0]))
	for _, k := range c[1:] {
		p = g.add(g.mul(p, x), g.constant(k))
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

// sigmoid is 1/(1+exp(-x)).
func (g *generator) sigmoid(x vec) vec {
	e := g.exp(g.greater(g.or(x, g.bits(signBit)), expMin), nil)
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
