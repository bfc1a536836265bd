package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wide returns 8 float32 as two vectors of 4 float64.
func (g *generator) wide(v vec) (low, high vec) {
	low, high = g.YMM(), g.YMM()
	top := g.XMM()
	g.VCVTPS2PD(v.AsX(), low)
	g.VEXTRACTF128(Imm(1), v, top)
	g.VCVTPS2PD(top, high)
	return low, high
}

// reduce writes a function that adds to 8 sums in float64, lane by lane.
func (g *generator) reduce(name, doc string, signature string, pointers []string, body func(at []reg.Register, i reg.Register, low, high vec)) {
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(signature)
	g.Doc(name + " adds to 8 lanes " + doc + ", for n elements, a multiple of 8.")
	lanes := g.Load(g.Param("lanes"), g.GP64())
	var at []reg.Register
	for _, p := range pointers {
		at = append(at, g.Load(g.Param(p), g.GP64()))
	}
	n := g.Load(g.Param("n"), g.GP64())
	low, high := g.YMM(), g.YMM()
	g.VMOVUPD(Mem{Base: lanes}, low)
	g.VMOVUPD(Mem{Base: lanes, Disp: 32}, high)
	i := g.GP64()
	g.XORQ(i, i)
	g.SHRQ(Imm(3), n)
	g.JZ(LabelRef("done"))
	g.Label("loop")
	body(at, i, low, high)
	g.ADDQ(Imm(8), i)
	g.DECQ(n)
	g.JNZ(LabelRef("loop"))
	g.Label("done")
	g.VMOVUPD(low, Mem{Base: lanes})
	g.VMOVUPD(high, Mem{Base: lanes, Disp: 32})
	g.VZEROUPPER()
	g.RET()
}

// broadcast returns 8 times, or in float64 4 times, a number among the parameters.
func (g *generator) broadcast(name string, double bool) vec {
	p, err := g.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v := g.YMM()
	if double {
		g.VBROADCASTSD(p.Addr, v)
	} else {
		g.VBROADCASTSS(p.Addr, v)
	}
	return v
}

// sums writes the reductions.
func sums(g *generator) {
	element := func(base, i reg.Register) Mem { return Mem{Base: base, Index: i, Scale: 4} }
	double := func(base, i reg.Register, high bool) vec {
		v := g.YMM()
		m := element(base, i)
		if high {
			m.Disp = 16
		}
		g.VCVTPS2PD(m, v)
		return v
	}
	g.reduce("sumAVX", "x", "func(lanes *float64, x *float32, n int)", []string{"x"}, func(at []reg.Register, i reg.Register, low, high vec) {
		g.VADDPD(double(at[0], i, false), low, low)
		g.VADDPD(double(at[0], i, true), high, high)
	})
	g.reduce("dotAVX", "x·y", "func(lanes *float64, x, y *float32, n int)", []string{"x", "y"}, func(at []reg.Register, i reg.Register, low, high vec) {
		// The product of two float32 is exact: fusing does not change it.
		g.VFMADD231PD(double(at[0], i, false), double(at[1], i, false), low)
		g.VFMADD231PD(double(at[0], i, true), double(at[1], i, true), high)
	})
	g.reduce("squaresAVX", "(x - mean)²", "func(lanes *float64, x *float32, n int, mean float64)", []string{"x"}, func(at []reg.Register, i reg.Register, low, high vec) {
		mean := g.broadcast("mean", true)
		for h, sum := range []vec{low, high} {
			d := double(at[0], i, h == 1)
			g.VSUBPD(mean, d, d)
			g.VMULPD(d, d, d)
			g.VADDPD(d, sum, sum)
		}
	})
	g.reduce("expSumAVX", "what it sets, out = exp(x - shift)", "func(lanes *float64, out, x *float32, n int, shift float32)", []string{"out", "x"}, func(at []reg.Register, i reg.Register, low, high vec) {
		e := g.expAny(g.sub(g.load(element(at[1], i)), g.broadcast("shift", false)))
		g.VMOVUPS(e, element(at[0], i))
		l, h := g.wide(e)
		g.VADDPD(l, low, low)
		g.VADDPD(h, high, high)
	})
	maxima(g)
}

// maxima writes the largest element, of numbers that are not NaN.
func maxima(g *generator) {
	g.Function("maxAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(lanes, x *float32, n int)")
	g.Doc("maxAVX raises 8 lanes to the elements of x, passing over NaN, for n elements, a multiple of 8.")
	lanes := g.Load(g.Param("lanes"), g.GP64())
	x := g.Load(g.Param("x"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	top := g.load(Mem{Base: lanes})
	g.SHRQ(Imm(3), n)
	g.JZ(LabelRef("done"))
	g.Label("loop")
	v := g.load(Mem{Base: x})
	g.VMAXPS(top, v, top)
	g.ADDQ(Imm(32), x)
	g.DECQ(n)
	g.JNZ(LabelRef("loop"))
	g.Label("done")
	g.VMOVUPS(top, Mem{Base: lanes})
	g.VZEROUPPER()
	g.RET()
}
