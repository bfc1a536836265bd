package main

import (
	"math"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// choices writes what looks for the largest element, in both types.
func choices(g *generator) {
	for _, g.double = range []bool{false, true} {
		t := g.typ()
		g.function("maxAVX", "x *"+t+", n int) (top "+t, "is the largest of n elements, passing over NaN: -Inf of none.")
		x, n := g.Load(g.Param("x"), g.GP64()), g.Load(g.Param("n"), g.GP64())
		top, _ := g.largest(x, n)
		g.VZEROUPPER()
		g.Store(top, g.Return("top"))
		g.RET()
		g.first()
		g.raise()
		g.outside()
	}
}

// outside writes a check of bounds.
func (g *generator) outside() {
	t := g.typ()
	g.function("outsideAVX", "x *"+t+", n int, low, high "+t+") (some int", "is not 0 if some of n elements are not in [low, high].")
	x, n := g.Load(g.Param("x"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	low, high := g.broadcast("low", g.double), g.broadcast("high", g.double)
	out, bits := g.YMM(), g.GP32()
	g.VXORPS(out, out, out)
	g.spans("", n, g.lanes(), func(s *span) {
		v := s.get(x)
		if s.mask != nil {
			v = g.choose(*s.mask, v, low)
		}
		g.VORPS(g.or(g.compare(notAtLeast, v, low), g.compare(notAtMost, v, high)), out, out)
	})
	g.pickMask()(out, bits)
	g.VZEROUPPER()
	g.Store(bits.As64(), g.Return("some"))
	g.RET()
}

// largest returns the largest of n elements, and which lanes met NaN.
func (g *generator) largest(x, n reg.Register) (reg.VecVirtual, vec) {
	none := g.constant(math.Inf(-1))
	tops, nan := g.load(none), g.YMM()
	g.VXORPS(nan, nan, nan)
	g.spans("", n, g.lanes(), func(s *span) {
		v := s.get(x)
		if s.mask != nil {
			v = g.choose(*s.mask, v, g.load(none))
		}
		g.pick(g.VMAXPS, g.VMAXPD)(tops, v, tops)
		g.VORPS(g.compare(unordered, v, v), nan, nan)
	})
	top, other := g.XMM(), g.XMM()
	g.VEXTRACTF128(Imm(1), tops, top)
	if g.double {
		g.VMAXPD(tops.AsX(), top, top)
		g.VSHUFPD(Imm(1), top, top, other)
		g.VMAXPD(other, top, top)
		return top, nan
	}
	g.VMAXPS(tops.AsX(), top, top)
	for _, order := range []uint64{0x4e, 0xb1} { // halves, neighbours
		g.VSHUFPS(Imm(order), top, top, other)
		g.VMAXPS(other, top, top)
	}
	return top, nan
}

// first writes the search of the largest element's index.
func (g *generator) first() {
	g.function("firstAVX", "x *"+g.typ()+", n int) (at int", "is the index of the first of the largest of n elements, NaN being larger than any number.")
	x, n := g.Load(g.Param("x"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	left := g.GP64()
	g.MOVQ(n, left)
	low, nan := g.largest(x, left)
	top, bits := g.YMM(), g.GP32()
	if g.double {
		g.VBROADCASTSD(low, top)
	} else {
		g.VBROADCASTSS(low, top)
	}
	g.pickMask()(nan, bits)
	g.TESTL(bits, bits)
	g.JNZ(LabelRef("nan"))
	look := func(tag string, found func(v vec) vec) {
		left := g.GP64()
		g.MOVQ(n, left)
		g.spans(tag, left, g.lanes(), func(s *span) {
			v := s.get(x)
			hit, next, at := found(v), "next"+tag, g.GP32()
			if s.mask != nil {
				hit, next = g.and(hit, *s.mask), "last"+tag
			}
			g.pickMask()(hit, at)
			g.TESTL(at, at)
			g.JZ(LabelRef(next))
			g.BSFL(at, at)
			g.ADDQ(s.i, at.As64())
			g.Store(at.As64(), g.Return("at"))
			g.end()
			g.Label(next)
		})
	}
	look("number", func(v vec) vec { return g.compare(equal, v, top) })
	g.Label("nan")
	look("NaN", func(v vec) vec { return g.compare(unordered, v, v) })
	g.end() // not reached: one is the largest
}

func (g *generator) pickMask() func(a, b Op) {
	if g.double {
		return g.VMOVMSKPD
	}
	return g.VMOVMSKPS
}

// raise writes one step of a search in many columns at once.
func (g *generator) raise() {
	t := g.typ()
	g.function("raiseAVX", "top, at, x *"+t+", n int, i "+t, "is top = x and at = i where x > top, NaN being larger than any number, for n elements.")
	at := g.pointers([]string{"top", "at", "x"})
	n, i := g.Load(g.Param("n"), g.GP64()), g.broadcast("i", g.double)
	g.spans("", n, g.lanes(), func(s *span) {
		top, x := s.get(at[0]), s.get(at[2])
		higher := g.and(g.compare(notAtMost, x, top), g.compare(ordered, top, top))
		s.set(at[0], g.choose(higher, x, top))
		s.set(at[1], g.choose(higher, i, s.get(at[1])))
	})
	g.end()
}
