package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vec is a vector of 8 float32 or 4 float64, or of what their bits are.
type vec = reg.VecVirtual

// Operations on vectors, each to a new register. They are what the portable
// kernels do element by element, in the same order and with the same rounding:
// products and sums are not fused.

func (g *generator) op2(single, double func(...Op), a vec, b Op) vec {
	v := g.YMM()
	g.pick(single, double)(b, a, v)
	return v
}

// pick is the instruction for the elements that vectors hold.
func (g *generator) pick(single, double func(...Op)) func(...Op) {
	if g.double {
		return double
	}
	return single
}

func (g *generator) add(a vec, b Op) vec { return g.op2(g.VADDPS, g.VADDPD, a, b) }
func (g *generator) sub(a vec, b Op) vec { return g.op2(g.VSUBPS, g.VSUBPD, a, b) }
func (g *generator) mul(a vec, b Op) vec { return g.op2(g.VMULPS, g.VMULPD, a, b) }
func (g *generator) div(a vec, b Op) vec { return g.op2(g.VDIVPS, g.VDIVPD, a, b) }
func (g *generator) and(a vec, b Op) vec { return g.op2(g.VANDPS, g.VANDPS, a, b) }
func (g *generator) or(a vec, b Op) vec  { return g.op2(g.VORPS, g.VORPS, a, b) }

// top is the larger of both and low the smaller, b if one is NaN or both are 0.
func (g *generator) top(a vec, b Op) vec { return g.op2(g.VMAXPS, g.VMAXPD, a, b) }
func (g *generator) low(a vec, b Op) vec { return g.op2(g.VMINPS, g.VMINPD, a, b) }

// maximum and minimum are those of Go: NaN if one is NaN, and -0 is below 0.

func (g *generator) maximum(a, b vec) vec {
	return g.or(g.and(g.top(a, b), g.top(b, a)), g.compare(unordered, a, b))
}

func (g *generator) minimum(a, b vec) vec {
	return g.or(g.or(g.low(a, b), g.low(b, a)), g.compare(unordered, a, b))
}

func (g *generator) sqrt(a vec) vec {
	v := g.YMM()
	g.pick(g.VSQRTPS, g.VSQRTPD)(a, v)
	return v
}

// without is a where mask is not set, else 0.
func (g *generator) without(mask vec, a Op) vec { return g.op2(g.VANDNPS, g.VANDNPS, mask, a) }

// lesser is the smaller of both, x if one is NaN.
func (g *generator) lesser(x vec, bound float64) vec { return g.low(g.load(g.constant(bound)), x) }

// greater is the larger of both, x if one is NaN.
func (g *generator) greater(x vec, bound float64) vec { return g.top(g.load(g.constant(bound)), x) }

func (g *generator) relu(x vec) vec { return g.without(g.compare(lessEqual, x, g.constant(0)), x) }

// Predicates of compare: false if one is NaN, but for those that say so.
const (
	equal      = 0x00
	less       = 0x11
	lessEqual  = 0x12
	above      = 0x1e
	unordered  = 0x03 // one is NaN
	ordered    = 0x07 // none is NaN
	different  = 0x04 // true if one is NaN
	notAtLeast = 0x19 // not >=: true if one is NaN
	notAtMost  = 0x16 // not <=: true if one is NaN
)

func (g *generator) compare(predicate uint64, a vec, b Op) vec {
	v := g.YMM()
	g.pick(g.VCMPPS, g.VCMPPD)(Imm(predicate), b, a, v)
	return v
}

// choose is a where mask is set, else b. Of a mask of float32 the sign counts.
func (g *generator) choose(mask vec, a Op, b vec) vec {
	v := g.YMM()
	g.VBLENDVPS(mask, a, b, v)
	return v
}

func (g *generator) load(m Op) vec {
	v := g.YMM()
	g.VMOVUPS(m, v)
	return v
}

// constant is a vector of x, in memory.
func (g *generator) constant(x float64) Mem {
	if !g.double {
		return g.bits(math.Float32bits(float32(x)))
	}
	b := math.Float64bits(x)
	return g.words(fmt.Sprintf("d%016x", b), 8, U64(b), U64(b), U64(b), U64(b))
}

// bits is 8 times x, in memory.
func (g *generator) bits(x uint32) Mem {
	k := U32(x)
	return g.words(fmt.Sprintf("k%08x", x), 4, k, k, k, k, k, k, k, k)
}

// words is what the assembly has in memory by a name.
func (g *generator) words(name string, size int, words ...Constant) Mem {
	if m, ok := g.constants[name]; ok {
		return m
	}
	m := g.StaticGlobal(name)
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, w := range words {
		g.AddDatum(size*i, w)
	}
	g.constants[name] = m
	return m
}

// wide returns 8 float32 as two vectors of 4 float64.
func (g *generator) wide(v vec) [2]vec {
	low, high, top := g.YMM(), g.YMM(), g.XMM()
	g.VCVTPS2PD(v.AsX(), low)
	g.VEXTRACTF128(Imm(1), v, top)
	g.VCVTPS2PD(top, high)
	return [2]vec{low, high}
}
