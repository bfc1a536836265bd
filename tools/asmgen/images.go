package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// images writes what takes every second element of a line, and dropout.
func images(g *generator) {
	line := func(name, doc string, turn func(out, x, i reg.Register, vec func() reg.VecVirtual)) {
		g.function(name, "out, x *float32, n int", doc+", for n elements, a multiple of 4.")
		at := g.pointers([]string{"out", "x"})
		n, i, end := g.Load(g.Param("n"), g.GP64()), g.GP64(), g.GP64()
		g.XORQ(i, i)
		g.MOVQ(n, end)
		g.ANDQ(I8(-8), end)
		g.JZ(LabelRef("tail"))
		g.Label("loop")
		turn(at[0], at[1], i, g.YMM)
		g.ADDQ(Imm(8), i)
		g.CMPQ(i, end)
		g.JNE(LabelRef("loop"))
		g.Label("tail")
		g.CMPQ(i, n)
		g.JE(LabelRef("done"))
		turn(at[0], at[1], i, g.XMM)
		g.Label("done")
		g.end()
	}
	single := func(base, i reg.Register) Mem { return Mem{Base: base, Index: i, Scale: 4} }
	double := func(base, i reg.Register, half int, v reg.VecVirtual) Mem {
		return Mem{Base: base, Index: i, Scale: 8, Disp: half * int(v.Size())}
	}
	line("secondAVX", "is out[i] = x[2i], which reads x[2i+1] as well", func(out, x, i reg.Register, vec func() reg.VecVirtual) {
		v := vec()
		g.VMOVUPS(double(x, i, 0, v), v)
		g.VSHUFPS(Imm(0x88), double(x, i, 1, v), v, v)
		if v.Size() == 32 {
			g.VPERMPD(Imm(0xd8), v, v)
		}
		g.VMOVUPS(v, single(out, i))
	})
	line("addSecondAVX", "is out[2i] = out[2i] + x[i], which writes out[2i+1] as it was", func(out, x, i reg.Register, vec func() reg.VecVirtual) {
		v, zero := vec(), vec()
		g.VXORPS(zero, zero, zero)
		if v.Size() == 32 {
			g.VPERMPD(Imm(0xd8), single(x, i), v)
		} else {
			g.VMOVUPS(single(x, i), v)
		}
		for half, spread := range []func(...Op){g.VUNPCKLPS, g.VUNPCKHPS} {
			old, w := vec(), vec()
			g.VMOVUPS(double(out, i, half, v), old)
			spread(zero, v, w)
			g.VADDPS(old, w, w)
			g.VBLENDPS(Imm(0xaa&(1<<(v.Size()/4)-1)), old, w, w)
			g.VMOVUPS(w, double(out, i, half, v))
		}
	})
	for _, g.double = range []bool{false, true} {
		g.drop()
	}
}

// drop writes compute.Mask.Keeps for a run of elements.
func (g *generator) drop() {
	const golden = 0x9e3779b9
	g.function("dropAVX", "out, x *"+g.typ()+", n int, k0, k1, least uint32, scale "+g.typ(),
		"is out = x·scale where compute.Mask keeps element i, else 0, for n elements.")
	at := g.pointers([]string{"out", "x"})
	n := g.Load(g.Param("n"), g.GP64())
	k0, k1, least, scale := g.broadcast("k0", false), g.broadcast("k1", false), g.broadcast("least", false), g.broadcast("scale", g.double)
	var first []Constant
	for i := range uint32(8) {
		first = append(first, U32(i*golden))
	}
	counter, step := g.YMM(), uint32(g.lanes())*uint32(golden&(1<<32-1))
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
	g.spans("", n, g.lanes(), func(s *span) {
		h := integer(g.VXORPS, counter, shift(counter, 16))
		h = integer(g.VPMULLD, h, g.bits(0x85ebca6b))
		h = integer(g.VXORPS, integer(g.VXORPS, h, shift(h, 13)), k1)
		h = integer(g.VPMULLD, h, g.bits(0xc2b2ae35))
		h = integer(g.VXORPS, h, shift(h, 16))
		keeps := integer(g.VPMAXUD, h, least)
		g.VPCMPEQD(keeps, h, keeps)
		if g.double { // of the first 4 hashes
			g.VPMOVSXDQ(keeps.AsX(), keeps)
		}
		s.set(at[0], g.and(g.mul(s.get(at[1]), scale), keeps))
		g.VPADDD(g.bits(step), counter, counter)
	})
	g.end()
}
