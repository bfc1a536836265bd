package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
)

// carries writes what finds floats that are not finite: a sum that carries into a sign.
func carries(g *generator) {
	const words = 16 // a turn
	g.Function("carriesAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(words *uint64, n int, exponents, lowest uint64) (or uint64)")
	g.Doc("carriesAVX adds lowest to the exponents of every word and ors the sums, of n words, a multiple of 16.")
	at, n := g.Load(g.Param("words"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	mask, one := g.YMM(), g.YMM()
	for i, v := range []vec{mask, one} {
		p, err := g.Param([]string{"exponents", "lowest"}[i]).Resolve()
		if err != nil {
			panic(err)
		}
		g.VPBROADCASTQ(p.Addr, v)
	}
	var or [4]vec
	for i := range or {
		or[i] = g.YMM()
		g.VPXOR(or[i], or[i], or[i])
	}
	g.Label("turn")
	g.CMPQ(n, Imm(words))
	g.JLT(LabelRef("done"))
	for i := range or {
		v := g.YMM()
		g.VPAND(Mem{Base: at, Disp: 32 * i}, mask, v)
		g.VPADDQ(one, v, v)
		g.VPOR(v, or[i], or[i])
	}
	g.ADDQ(Imm(8*words), at)
	g.SUBQ(Imm(words), n)
	g.JMP(LabelRef("turn"))
	g.Label("done")
	g.VPOR(or[1], or[0], or[0])
	g.VPOR(or[3], or[2], or[2])
	g.VPOR(or[2], or[0], or[0])
	low, high := or[0].AsX(), g.XMM()
	g.VEXTRACTI128(Imm(1), or[0], high)
	g.VPOR(high, low, low)
	g.VPSRLDQ(Imm(8), low, high)
	g.VPOR(high, low, low)
	sum := g.GP64()
	g.VMOVQ(low, sum)
	g.VZEROUPPER()
	g.Store(sum, g.Return("or"))
	g.RET()
}
