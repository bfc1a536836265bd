package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// images writes what takes every second element of a line, and dropout.
func images(g *generator) {
	pairs := func(name, doc string, turn func(out, x, i reg.Register)) {
		g.function(name, "out, x *float32, n int", doc+", for n elements, a multiple of 8.")
		at := g.pointers([]string{"out", "x"})
		n, i := g.Load(g.Param("n"), g.GP64()), g.GP64()
		g.XORQ(i, i)
		g.Label("loop")
		turn(at[0], at[1], i)
		g.ADDQ(Imm(8), i)
		g.CMPQ(i, n)
		g.JNE(LabelRef("loop"))
		g.end()
	}
	single := func(base, i reg.Register) Mem { return Mem{Base: base, Index: i, Scale: 4} }
	double := func(base, i reg.Register, half int) Mem { return Mem{Base: base, Index: i, Scale: 8, Disp: 32 * half} }
	pairs("secondAVX", "is out[i] = x[2i], which reads x[2i+1] as well", func(out, x, i reg.Register) {
		v := g.load(double(x, i, 0))
		g.VSHUFPS(Imm(0x88), double(x, i, 1), v, v)
		g.VPERMPD(Imm(0xd8), v, v)
		g.VMOVUPS(v, single(out, i))
	})
	pairs("addSecondAVX", "is out[2i] = out[2i] + x[i], which writes out[2i+1] as it was", func(out, x, i reg.Register) {
		v, zero := g.YMM(), g.YMM()
		g.VXORPS(zero, zero, zero)
		g.VPERMPD(Imm(0xd8), single(x, i), v)
		for half, spread := range []func(...Op){g.VUNPCKLPS, g.VUNPCKHPS} {
			old, w := g.load(double(out, i, half)), g.YMM()
			spread(zero, v, w)
			w = g.add(w, old)
			g.VBLENDPS(Imm(0xaa), old, w, w)
			g.VMOVUPS(w, double(out, i, half))
		}
	})
	g.drop()
}

// drop writes compute.Mask.Keeps for a run of elements.
func (g *generator) drop() {
	const golden = 0x9e3779b9
	g.function("dropAVX", "out, x *float32, n int, k0, k1, least uint32, scale float32",
		"is out = x·scale where compute.Mask keeps element i, else 0, for n elements.")
	at := g.pointers([]string{"out", "x"})
	n := g.Load(g.Param("n"), g.GP64())
	k0, k1, least, scale := g.broadcast("k0", false), g.broadcast("k1", false), g.broadcast("least", false), g.broadcast("scale", false)
	var first []Constant
	for i := range uint32(8) {
		first = append(first, U32(i*golden))
	}
	counter, step := g.YMM(), uint32(golden)
	g.VPADDD(g.words("counters", 4, first...), k0, counter)
	integer := func(f func(...Op), a vec, b Op) vec {
		v := g.YMM()
		f(b, a, v)
		return v
	}
	shift := func(v vec, by uint64) vec {
		w := g.YMM()
		g.VPSRLD(Imm(by), v, w)
		return w
	}
	g.spans("", n, 8, func(s *span) {
		h := integer(g.VXORPS, counter, shift(counter, 16))
		h = integer(g.VPMULLD, h, g.bits(0x85ebca6b))
		h = integer(g.VXORPS, integer(g.VXORPS, h, shift(h, 13)), k1)
		h = integer(g.VPMULLD, h, g.bits(0xc2b2ae35))
		h = integer(g.VXORPS, h, shift(h, 16))
		keeps := integer(g.VPMAXUD, h, least)
		g.VPCMPEQD(keeps, h, keeps)
		s.set(at[0], g.and(g.mul(s.get(at[1]), scale), keeps))
		g.VPADDD(g.bits(8*step), counter, counter)
	})
	g.end()
}
