package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemm writes the register tiles of the matrix product, and what packs its
// operands.
//
// A tile of 6×16 (float64: 6×8) keeps 12 vectors of sums, two of b and one of a
// in the 16 registers: 12 multiply-adds a step on 8 loads, where the machine can
// do two of each a cycle.
func gemm(g *generator) {
	for rows := 1; rows <= 6; rows++ {
		tile(g, rows, 4)
	}
	for rows := 1; rows <= 6; rows++ {
		tile(g, rows, 8)
	}
	for _, rows := range []int{1, 2, 4, 8, 12} {
		tileWide(g, rows, 2)
		tileWide(g, rows, 1)
	}
	for _, n := range []int{6, 12, 16, 32} {
		packCopy(g, n)
	}
	packTranspose(g, 4)
	packTranspose(g, 6)
	packTranspose(g, 8)
}

// tileWide is rows × vectors of 16 float32 over k steps, with AVX-512: of
// 12 × 2, 24 sums, two vectors of b and one of a in the 32 registers, 24
// multiply-adds a step on 14 loads.
func tileWide(g *generator, rows, vectors int) {
	name := fmt.Sprintf("wide%dx%d", rows, 16*vectors)
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(k int, a *float32, aRow, aStep int, b *float32, bStep int, c *float32, cRow int, add bool)")
	g.Doc(fmt.Sprintf("%s sets, or adds to, %d rows of %d elements of c; see Table.Tile. Strides are in bytes.", name, rows, 16*vectors))
	k := g.Load(g.Param("k"), g.GP64())
	a := g.Load(g.Param("a"), g.GP64())
	aRow := g.Load(g.Param("aRow"), g.GP64())
	aStep := g.Load(g.Param("aStep"), g.GP64())
	b := g.Load(g.Param("b"), g.GP64())
	bStep := g.Load(g.Param("bStep"), g.GP64())
	bases := []reg.Register{a} // of every third row
	for r := 3; r < rows; r += 3 {
		base := g.GP64()
		g.LEAQ(Mem{Base: bases[len(bases)-1], Index: aRow, Scale: 2}, base)
		g.ADDQ(aRow, base)
		bases = append(bases, base)
	}
	sums := make([][]reg.VecVirtual, rows)
	for r := range sums {
		for range vectors {
			v := g.ZMM()
			g.VPXORD(v, v, v)
			sums[r] = append(sums[r], v)
		}
	}
	step := func() {
		var x []reg.VecVirtual
		for v := range vectors {
			x = append(x, g.ZMM())
			g.VMOVUPS(Mem{Base: b, Disp: 64 * v}, x[v])
		}
		for r := range rows {
			m := Mem{Base: bases[r/3]}
			if r%3 > 0 {
				m.Index, m.Scale = aRow, uint8(r%3)
			}
			y := g.ZMM()
			g.VBROADCASTSS(m, y)
			for v := range vectors {
				g.VFMADD231PS(x[v], y, sums[r][v])
			}
		}
		for _, base := range bases {
			g.ADDQ(aStep, base)
		}
		g.ADDQ(bStep, b)
	}
	g.SHRQ(Imm(1), k)
	g.JCC(LabelRef("even"))
	step()
	g.Label("even")
	g.TESTQ(k, k)
	g.JZ(LabelRef("store"))
	g.Label("two")
	step()
	step()
	g.DECQ(k)
	g.JNZ(LabelRef("two"))
	g.Label("store")
	storeWide(g, sums)
}

// storeWide ends a tile: it adds the sums to c, or sets it.
func storeWide(g *generator, sums [][]reg.VecVirtual) {
	c := g.Load(g.Param("c"), g.GP64())
	cRow := g.Load(g.Param("cRow"), g.GP64())
	add := g.Load(g.Param("add"), g.GP8())
	g.TESTB(add, add)
	g.JZ(LabelRef("set"))
	at := g.GP64()
	g.MOVQ(c, at)
	for _, row := range sums {
		for v, s := range row {
			g.VADDPS(Mem{Base: at, Disp: 64 * v}, s, s)
		}
		g.ADDQ(cRow, at)
	}
	g.Label("set")
	for _, row := range sums {
		for v, s := range row {
			g.VMOVUPS(s, Mem{Base: c, Disp: 64 * v})
		}
		g.ADDQ(cRow, c)
	}
	g.VZEROUPPER()
	g.RET()
}

// tile is rows × 2 vectors of sums over k steps. size is that of an element.
func tile(g *generator, rows, size int) {
	name, typ := fmt.Sprintf("tile%dx16F32", rows), "float32"
	fma, broadcast, load, zero, plus := g.VFMADD231PS, g.VBROADCASTSS, g.VMOVUPS, g.VXORPS, g.VADDPS
	if size == 8 {
		name, typ = fmt.Sprintf("tile%dx8F64", rows), "float64"
		fma, broadcast, load, zero, plus = g.VFMADD231PD, g.VBROADCASTSD, g.VMOVUPD, g.VXORPD, g.VADDPD
	}
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(fmt.Sprintf("func(k int, a *%s, aRow, aStep int, b *%s, bStep int, c *%s, cRow int, add bool)", typ, typ, typ))
	g.Doc(fmt.Sprintf("%s sets, or adds to, %d rows of c; see Table.Tile. Strides are in bytes.", name, rows))

	k := g.Load(g.Param("k"), g.GP64())
	a := g.Load(g.Param("a"), g.GP64())
	aRow := g.Load(g.Param("aRow"), g.GP64())
	aStep := g.Load(g.Param("aStep"), g.GP64())
	b := g.Load(g.Param("b"), g.GP64())
	bStep := g.Load(g.Param("bStep"), g.GP64())

	var sums [6][2]reg.VecVirtual
	for r := range rows {
		for v := range 2 {
			sums[r][v] = g.YMM()
			zero(sums[r][v], sums[r][v], sums[r][v])
		}
	}
	low := g.GP64() // of rows 3 to 5
	if rows > 3 {
		g.LEAQ(Mem{Base: a, Index: aRow, Scale: 2}, low)
		g.ADDQ(aRow, low)
	}
	element := func(r int) Mem {
		m := Mem{Base: a}
		if r >= 3 {
			m.Base = low
		}
		if r%3 > 0 {
			m.Index, m.Scale = aRow, uint8(r%3)
		}
		return m
	}
	step := func() {
		b0, b1 := g.YMM(), g.YMM()
		load(Mem{Base: b}, b0)
		load(Mem{Base: b, Disp: 32}, b1)
		for r := range rows {
			x := g.YMM()
			broadcast(element(r), x)
			fma(b0, x, sums[r][0])
			fma(b1, x, sums[r][1])
		}
		g.ADDQ(aStep, a)
		if rows > 3 {
			g.ADDQ(aStep, low)
		}
		g.ADDQ(bStep, b)
	}
	g.SUBQ(Imm(4), k)
	g.JL(LabelRef("rest"))
	g.Label("four")
	for range 4 {
		step()
	}
	g.SUBQ(Imm(4), k)
	g.JGE(LabelRef("four"))
	g.Label("rest")
	g.ADDQ(Imm(4), k)
	g.JZ(LabelRef("store"))
	g.Label("one")
	step()
	g.DECQ(k)
	g.JNZ(LabelRef("one"))

	g.Label("store")
	c := g.Load(g.Param("c"), g.GP64())
	cRow := g.Load(g.Param("cRow"), g.GP64())
	add := g.Load(g.Param("add"), g.GP8())
	g.TESTB(add, add)
	g.JZ(LabelRef("set"))
	at := g.GP64()
	g.MOVQ(c, at)
	for r := range rows {
		for v := range 2 {
			plus(Mem{Base: at, Disp: 32 * v}, sums[r][v], sums[r][v])
		}
		g.ADDQ(cRow, at)
	}
	g.Label("set")
	for r := range rows {
		for v := range 2 {
			load(sums[r][v], Mem{Base: c, Disp: 32 * v})
		}
		g.ADDQ(cRow, c)
	}
	g.VZEROUPPER()
	g.RET()
}

// packCopy copies steps of n neighbours.
func packCopy(g *generator, n int) {
	name := fmt.Sprintf("packCopy%d", n)
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(dst, src *float32, step, k int)")
	g.Doc(fmt.Sprintf("%s copies k runs of %d elements, step bytes apart, to one after the other.", name, n))
	dst, src := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("src"), g.GP64())
	step, k := g.Load(g.Param("step"), g.GP64()), g.Load(g.Param("k"), g.GP64())
	g.TESTQ(k, k)
	g.JZ(LabelRef("done"))
	g.Label("loop")
	g.PREFETCHT1(Mem{Base: src, Disp: 4 * n}) // the next panel's
	copyRun(g, dst, src, n)
	g.ADDQ(step, src)
	g.ADDQ(U32(4*n), dst)
	g.DECQ(k)
	g.JNZ(LabelRef("loop"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}

// copyRun copies n elements, in the largest vectors that fit.
func copyRun(g *generator, dst, src reg.Register, n int) {
	for at := 0; at < 4*n; {
		from, to := Mem{Base: src, Disp: at}, Mem{Base: dst, Disp: at}
		switch left := 4*n - at; {
		case left >= 32:
			v := g.YMM()
			g.VMOVUPS(from, v)
			g.VMOVUPS(v, to)
			at += 32
		case left >= 16:
			v := g.XMM()
			g.VMOVUPS(from, v)
			g.VMOVUPS(v, to)
			at += 16
		default:
			v := g.XMM()
			g.VMOVSD(from, v)
			g.VMOVSD(v, to)
			at += 8
		}
	}
}

// packTranspose reads rows in blocks of 8 columns and writes them as columns.
// With 6 rows the vectors written overlap, in ascending order, the last one by
// two elements past its place.
func packTranspose(g *generator, rows int) {
	name := fmt.Sprintf("packTranspose%d", rows)
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(dst *float32, dstStep int, src *float32, srcRow, blocks, ahead int)")
	g.Doc(
		fmt.Sprintf("%s writes columns of %d rows, srcRow bytes apart, as runs dstStep bytes apart:", name, rows),
		"8·blocks columns, each written as 8 elements. It fetches what lies ahead bytes ahead.")
	dst, dstStep := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("dstStep"), g.GP64())
	src, srcRow := g.Load(g.Param("src"), g.GP64()), g.Load(g.Param("srcRow"), g.GP64())
	blocks := g.Load(g.Param("blocks"), g.GP64())
	ahead := g.Load(g.Param("ahead"), g.GP64())
	mid := g.GP64()
	g.LEAQ(Mem{Base: src, Index: srcRow, Scale: 2}, mid)
	g.ADDQ(srcRow, mid) // row 3
	last := g.GP64()
	g.LEAQ(Mem{Base: mid, Index: srcRow, Scale: 2}, last)
	g.ADDQ(srcRow, last) // row 6
	g.TESTQ(blocks, blocks)
	g.JZ(LabelRef("done"))
	g.Label("loop")
	bases := []reg.Register{src, mid, last}
	// Pairs of rows i and i+4 in the halves of one vector.
	var x [8]reg.VecVirtual
	row := func(r, disp int) Mem {
		m := Mem{Base: bases[r/3], Disp: disp}
		if r%3 > 0 {
			m.Index, m.Scale = srcRow, uint8(r%3)
		}
		return m
	}
	for r := range rows {
		m := row(r, 0)
		next := g.GP64()
		g.LEAQ(m, next)
		g.PREFETCHT1(Mem{Base: next, Index: ahead, Scale: 1})
	}
	for half := range 2 {
		for r := range 4 {
			v := g.YMM()
			g.VMOVUPS(row(r, 16*half), v.AsX())
			if r+4 < rows {
				g.VINSERTF128(Imm(1), row(r+4, 16*half), v, v)
			}
			x[4*half+r] = v
		}
	}
	for half := range 2 {
		y := x[4*half : 4*half+4]
		lo01, hi01, lo23, hi23 := g.YMM(), g.YMM(), g.YMM(), g.YMM()
		g.VUNPCKLPS(y[1], y[0], lo01)
		g.VUNPCKHPS(y[1], y[0], hi01)
		g.VUNPCKLPS(y[3], y[2], lo23)
		g.VUNPCKHPS(y[3], y[2], hi23)
		for c := range 4 {
			out := g.YMM()
			first, second, pick := lo01, lo23, uint8(0x44)
			if c >= 2 {
				first, second = hi01, hi23
			}
			if c%2 == 1 {
				pick = 0xee
			}
			g.VSHUFPS(Imm(uint64(pick)), second, first, out)
			g.VMOVUPS(out, Mem{Base: dst})
			g.ADDQ(dstStep, dst)
		}
	}
	g.ADDQ(Imm(32), src)
	g.ADDQ(Imm(32), mid)
	g.ADDQ(Imm(32), last)
	g.DECQ(blocks)
	g.JNZ(LabelRef("loop"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}
