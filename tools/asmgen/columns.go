package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columns writes sums over the rows of a matrix, whose columns are cut into
// strips: the sums of a strip stay in registers while its rows pass.
func columns(g *generator) {
	g.strips("sumRowsAVX", "x", nil, func(x []Mem, _ []vec, sum vec) { g.VADDPS(x[0], sum, sum) })
	g.strips("sumNormProductsAVX", "(x - mean)·inv·dy", []string{"mean", "inv"}, func(x []Mem, numbers []vec, sum vec) {
		d := g.mul(g.mul(g.sub(g.load(x[0]), numbers[0]), numbers[1]), x[1])
		g.VADDPS(d, sum, sum)
	})
}

// strips writes a function that sums over rows, one row after the other. numbers
// are one of each a row, side by side; with them there is a second matrix, dy.
func (g *generator) strips(name, doc string, numbers []string, add func(x []Mem, numbers []vec, sum vec)) {
	params := []string{"out", "x"}
	if len(numbers) > 0 {
		params = append(params, "dy", "numbers")
	}
	signature := "func("
	for _, p := range params {
		signature += p + ", "
	}
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(signature[:len(signature)-2] + " *float32, rows, stride, n int)")
	g.Doc(fmt.Sprintf("%s is out = Σ %s over rows that lie stride bytes apart, for n columns, a multiple of 8.", name, doc))
	at := map[string]reg.GPVirtual{}
	for _, p := range append(params, "rows", "stride", "n") {
		at[p] = g.Load(g.Param(p), g.GP64()).(reg.GPVirtual)
	}
	for _, width := range []int{4, 1} { // in vectors
		label := fmt.Sprintf("strip%d", width)
		g.Label(label)
		g.CMPQ(at["n"], Imm(uint64(8*width)))
		g.JL(LabelRef("after" + label))
		g.strip(label, width, at, len(numbers), add)
		for _, p := range []string{"out", "x", "dy"} {
			if r, ok := at[p]; ok {
				g.ADDQ(Imm(uint64(32*width)), r)
			}
		}
		g.SUBQ(Imm(uint64(8*width)), at["n"])
		g.JMP(LabelRef(label))
		g.Label("after" + label)
	}
	g.VZEROUPPER()
	g.RET()
}

// strip sums one strip of width vectors.
func (g *generator) strip(label string, width int, at map[string]reg.GPVirtual, numbers int, add func(x []Mem, numbers []vec, sum vec)) {
	sums := make([]vec, width)
	for i := range sums {
		sums[i] = g.YMM()
		g.VXORPS(sums[i], sums[i], sums[i])
	}
	left, offset := g.GP64(), g.GP64()
	g.MOVQ(at["rows"], left)
	g.XORQ(offset, offset)
	number := g.GP64()
	if numbers > 0 {
		g.MOVQ(at["numbers"], number)
	}
	g.TESTQ(left, left)
	g.JZ(LabelRef(label + "store"))
	g.Label(label + "row")
	var of []vec
	for i := range numbers {
		v := g.YMM()
		g.VBROADCASTSS(Mem{Base: number, Disp: 4 * i}, v)
		of = append(of, v)
	}
	for i, s := range sums {
		x := []Mem{{Base: at["x"], Index: offset, Scale: 1, Disp: 32 * i}}
		if numbers > 0 {
			x = append(x, Mem{Base: at["dy"], Index: offset, Scale: 1, Disp: 32 * i})
		}
		add(x, of, s)
	}
	if numbers > 0 {
		g.ADDQ(Imm(uint64(4*numbers)), number)
	}
	g.ADDQ(at["stride"], offset)
	g.DECQ(left)
	g.JNZ(LabelRef(label + "row"))
	g.Label(label + "store")
	for i, s := range sums {
		g.VMOVUPS(s, Mem{Base: at["out"], Disp: 32 * i})
	}
}
