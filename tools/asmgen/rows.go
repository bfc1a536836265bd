package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
)

// ahead is how many rows before its turn a row is fetched.
const ahead = 12

// rows writes what reads rows at random places of a large table: each is a wait
// for memory unless it is fetched ahead.
func rows(g *generator) {
	g.Function("gatherAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(out, rows *float32, ids *int64, n, dim int)")
	g.Doc("gatherAVX copies the n rows that ids name; dim, the length of a row, is a multiple of 8.")
	out, table := g.Load(g.Param("out"), g.GP64()), g.Load(g.Param("rows"), g.GP64())
	ids, n := g.Load(g.Param("ids"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	dim := g.Load(g.Param("dim"), g.GP64())
	size, at, left, next := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.LEAQ(Mem{Disp: 0, Base: dim, Index: dim, Scale: 1}, size)
	g.ADDQ(size, size) // bytes
	g.TESTQ(n, n)
	g.JZ(LabelRef("done"))
	g.Label("row")
	g.CMPQ(n, Imm(ahead))
	g.JLE(LabelRef("copy"))
	g.MOVQ(Mem{Base: ids, Disp: 8 * ahead}, next)
	g.IMULQ(size, next)
	g.PREFETCHT0(Mem{Base: table, Index: next, Scale: 1})
	g.Label("copy")
	g.MOVQ(Mem{Base: ids}, at)
	g.IMULQ(size, at)
	g.ADDQ(table, at)
	g.MOVQ(dim, left)
	g.Label("vector")
	v := g.YMM()
	g.VMOVUPS(Mem{Base: at}, v)
	g.VMOVUPS(v, Mem{Base: out})
	g.ADDQ(Imm(32), at)
	g.ADDQ(Imm(32), out)
	g.SUBQ(Imm(8), left)
	g.JG(LabelRef("vector"))
	g.ADDQ(Imm(8), ids)
	g.DECQ(n)
	g.JNZ(LabelRef("row"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()

	g.Function("fetchAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(rows *float32, ids *int64, n, size int)")
	g.Doc("fetchAVX has the first cache line of each of n rows, size bytes long, fetched.")
	table, ids = g.Load(g.Param("rows"), g.GP64()), g.Load(g.Param("ids"), g.GP64())
	n, size2 := g.Load(g.Param("n"), g.GP64()), g.Load(g.Param("size"), g.GP64())
	at = g.GP64()
	g.TESTQ(n, n)
	g.JZ(LabelRef("done"))
	g.Label("row")
	g.MOVQ(Mem{Base: ids}, at)
	g.IMULQ(size2, at)
	g.PREFETCHT0(Mem{Base: table, Index: at, Scale: 1})
	g.ADDQ(Imm(8), ids)
	g.DECQ(n)
	g.JNZ(LabelRef("row"))
	g.Label("done")
	g.RET()
}
