package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// conversions writes the kernels of internal/half.
func conversions(g *generator) {
	for _, t := range []struct {
		name   string
		round  func(v vec) vec
		narrow func(low, high vec) vec
		widen  func(m Mem) vec
	}{
		{"BF16", g.roundBF16, g.packBF16, g.widenBF16},
		{"F16", g.roundF16, g.packF16, g.widenF16},
	} {
		g.convert("round"+t.name+"AVX", "dst, src *float32", "rounds src to 16 bits", 4, func(src, dst Mem) {
			g.VMOVUPS(t.round(g.load(src)), dst)
		})
		g.convert("narrow"+t.name+"AVX", "dst *uint16, src *float32", "makes src 16 bits", 2, func(src, dst Mem) {
			src.Scale *= 2
			src.Disp *= 2
			high := src
			high.Disp += 32
			g.VMOVUPS(t.narrow(g.load(src), g.load(high)), dst)
		})
		g.convert("widen"+t.name+"AVX", "dst *float32, src *uint16", "makes floats of src", 2, func(src, dst Mem) {
			dst.Scale *= 2
			dst.Disp *= 2
			for h, m := range parts(src) {
				to := dst
				to.Disp += 32 * h
				g.VMOVUPS(t.widen(m), to)
			}
		})
	}
}

// convert writes a function over n elements, which has its turn for each 32 bytes of
// those of a size.
func (g *generator) convert(name, signature, doc string, size int, turn func(src, dst Mem)) {
	g.begin(name, signature+", n int", doc+", n elements, a multiple of 16 above 0.")
	at := g.pointers([]string{"dst", "src"})
	n := g.Load(g.Param("n"), g.GP64())
	g.SHLQ(Imm(uint64(size/2)), n) // 2 or 4
	g.blocks(n, func(i reg.Register, disp int) {
		turn(Mem{Base: at[1], Index: i, Scale: 1, Disp: disp}, Mem{Base: at[0], Index: i, Scale: 1, Disp: disp})
	})
	g.end()
}

// carried is 8 floats with the digits that bfloat16 lacks carried into those it has;
// the lower 16 bits count no more. NaN is made quiet, so that it stays NaN.
func (g *generator) carried(v vec) vec {
	odd, quiet := g.YMM(), g.YMM()
	g.VPSRLD(Imm(16), v, odd)
	g.VPAND(g.bits(1), odd, odd)
	g.VPADDD(g.bits(0x7fff), odd, odd)
	g.VPADDD(v, odd, odd)
	g.VPOR(g.bits(0x400000), v, quiet)
	return g.choose(g.compare(unordered, v, v), quiet, odd)
}

func (g *generator) roundBF16(v vec) vec {
	out := g.YMM()
	g.VPAND(g.bits(0xffff0000), g.carried(v), out)
	return out
}

func (g *generator) packBF16(low, high vec) vec {
	a, b, out := g.YMM(), g.YMM(), g.YMM()
	g.VPSRLD(Imm(16), g.carried(low), a)
	g.VPSRLD(Imm(16), g.carried(high), b)
	g.VPACKUSDW(b, a, out)
	g.VPERMQ(Imm(0xd8), out, out)
	return out
}

func (g *generator) widenBF16(m Mem) vec {
	v := g.YMM()
	g.VPMOVZXWD(m, v)
	g.VPSLLD(Imm(16), v, v)
	return v
}

func (g *generator) roundF16(v vec) vec {
	x, out := g.XMM(), g.YMM()
	g.VCVTPS2PH(Imm(0), v, x)
	g.VCVTPH2PS(x, out)
	return out
}

func (g *generator) packF16(low, high vec) vec {
	a, b, out := g.XMM(), g.XMM(), g.YMM()
	g.VCVTPS2PH(Imm(0), low, a)
	g.VCVTPS2PH(Imm(0), high, b)
	g.VINSERTF128(Imm(1), b, a.AsY(), out)
	return out
}

func (g *generator) widenF16(m Mem) vec {
	v := g.YMM()
	g.VCVTPH2PS(m, v)
	return v
}
