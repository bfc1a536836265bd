package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// element is a type of arrays that are combined: how its sums and so on are computed of
// 32 bytes in memory.
type element struct {
	name     string
	double   bool
	of       func(g *generator, f func(a, b vec) vec, a, b Mem) vec
	sum      func(g *generator) func(a, b vec) vec
	product  func(g *generator) func(a, b vec) vec
	least    func(g *generator) func(a, b vec) vec
	greatest func(g *generator) func(a, b vec) vec
}

// combines writes the kernels of collective/reduce.
func combines(g *generator) {
	for _, e := range []element{
		floats("F32", false, whole), floats("F64", true, whole), floats("BF16", false, bfloats), floats("F16", false, halves),
		integers32(), integers64(),
	} {
		g.double = e.double
		for _, op := range []struct {
			name, doc string
			f         func(a, b vec) vec
		}{
			{"sum", "a + b", e.sum(g)},
			{"prod", "a·b", e.product(g)},
			{"min", "the lesser of a and b", e.least(g)},
			{"max", "the greater of a and b", e.greatest(g)},
		} {
			g.combine(op.name+e.name+"AVX", op.doc, func(a, b Mem) vec { return e.of(g, op.f, a, b) })
		}
		if e.name[0] != 'I' {
			g.scaling(e)
		}
	}
}

// combine writes a function that sets dst, of n bytes, a multiple of 32 that is not 0.
func (g *generator) combine(name, doc string, f func(a, b Mem) vec) {
	g.begin(name, "dst, a, b *byte, n int", "sets dst = "+doc+", for n bytes, a multiple of 32 above 0.")
	at := g.pointers([]string{"dst", "a", "b"})
	n := g.Load(g.Param("n"), g.GP64())
	g.blocks(n, func(i reg.Register, disp int) {
		v := f(Mem{Base: at[1], Index: i, Scale: 1, Disp: disp}, Mem{Base: at[2], Index: i, Scale: 1, Disp: disp})
		g.VMOVUPS(v, Mem{Base: at[0], Index: i, Scale: 1, Disp: disp})
	})
	g.end()
}

// scaling writes a function that multiplies by a number.
func (g *generator) scaling(e element) {
	g.begin("scale"+e.name+"AVX", "dst *byte, n int, f float64", "multiplies n bytes, a multiple of 32 above 0, by f.")
	dst := g.Load(g.Param("dst"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	x := g.XMM()
	g.Load(g.Param("f"), x)
	factor := g.YMM()
	if e.double {
		g.VBROADCASTSD(x, factor)
	} else {
		g.VCVTSD2SS(x, x, x)
		g.VBROADCASTSS(x, factor)
	}
	g.blocks(n, func(i reg.Register, disp int) {
		m := Mem{Base: dst, Index: i, Scale: 1, Disp: disp}
		g.VMOVUPS(e.of(g, func(a, _ vec) vec { return g.mul(a, factor) }, m, m), m)
	})
	g.end()
}

// begin begins a function.
func (g *generator) begin(name, signature, doc string) {
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(" + signature + ")")
	g.Doc(name + " " + doc)
}

// blocks writes a loop over n bytes, 128 and then 32 at a time. It uses n up.
func (g *generator) blocks(n reg.Register, turn func(i reg.Register, disp int)) {
	const vector, vectors = 32, 4
	i := g.GP64()
	g.XORQ(i, i)
	g.SUBQ(Imm(vector*vectors), n)
	g.JL(LabelRef("rest"))
	g.Label("loop")
	for k := range vectors {
		turn(i, k*vector)
	}
	g.ADDQ(Imm(vector*vectors), i)
	g.SUBQ(Imm(vector*vectors), n)
	g.JGE(LabelRef("loop"))
	g.Label("rest")
	g.ADDQ(Imm(vector*vectors), n)
	g.JZ(LabelRef("done"))
	g.Label("single")
	turn(i, 0)
	g.ADDQ(Imm(vector), i)
	g.SUBQ(Imm(vector), n)
	g.JNZ(LabelRef("single"))
	g.Label("done")
}

// whole computes with vectors as they lie in memory.
func whole(g *generator, f func(a, b vec) vec, a, b Mem) vec { return f(g.load(a), g.load(b)) }

// floats are types that are added up as float32 or float64.
func floats(name string, double bool, of func(g *generator, f func(a, b vec) vec, a, b Mem) vec) element {
	op := func(f func(g *generator, a, b vec) vec) func(g *generator) func(a, b vec) vec {
		return func(g *generator) func(a, b vec) vec { return func(a, b vec) vec { return f(g, a, b) } }
	}
	return element{
		name: name, double: double, of: of,
		sum:      op(func(g *generator, a, b vec) vec { return g.add(a, b) }),
		product:  op(func(g *generator, a, b vec) vec { return g.mul(a, b) }),
		least:    op(func(g *generator, a, b vec) vec { return g.minimum(a, b) }),
		greatest: op(func(g *generator, a, b vec) vec { return g.maximum(a, b) }),
	}
}

// parts are the two halves of 32 bytes.
func parts(m Mem) [2]Mem {
	high := m
	high.Disp += 16
	return [2]Mem{m, high}
}

// halves computes with binary16 in float32. Conversion rounds to the nearest, ties to
// even.
func halves(g *generator, f func(a, b vec) vec, a, b Mem) vec {
	var out [2]reg.VecVirtual
	as, bs := parts(a), parts(b)
	for h := range out {
		x, y := g.YMM(), g.YMM()
		g.VCVTPH2PS(as[h], x)
		g.VCVTPH2PS(bs[h], y)
		out[h] = g.XMM()
		g.VCVTPS2PH(Imm(0), f(x, y), out[h])
	}
	v := g.YMM()
	g.VINSERTF128(Imm(1), out[1], out[0].AsY(), v)
	return v
}

// bfloats computes with bfloat16 in float32, and rounds by whole numbers: half of the
// last place, less a little if the digit before is even, carries into it.
func bfloats(g *generator, f func(a, b vec) vec, a, b Mem) vec {
	var out [2]vec
	as, bs := parts(a), parts(b)
	wide := func(m Mem) vec {
		v := g.YMM()
		g.VPMOVZXWD(m, v)
		g.VPSLLD(Imm(16), v, v)
		return v
	}
	for h := range out {
		v := f(wide(as[h]), wide(bs[h]))
		upper, odd := g.YMM(), g.YMM()
		g.VPSRLD(Imm(16), v, upper)
		g.VPAND(g.bits(1), upper, odd)
		g.VPADDD(g.bits(0x7fff), odd, odd)
		g.VPADDD(v, odd, odd)
		g.VPSRLD(Imm(16), odd, odd)
		g.VPOR(g.bits(0x40), upper, upper)
		out[h] = g.choose(g.compare(unordered, v, v), upper, odd)
	}
	v := g.YMM()
	g.VPACKUSDW(out[1], out[0], v)
	g.VPERMQ(Imm(0xd8), v, v)
	return v
}

// integers32 wrap.
func integers32() element {
	op := func(f func(g *generator) func(...Op)) func(g *generator) func(a, b vec) vec {
		return func(g *generator) func(a, b vec) vec {
			return func(a, b vec) vec {
				v := g.YMM()
				f(g)(b, a, v)
				return v
			}
		}
	}
	return element{
		name: "I32", of: whole,
		sum:      op(func(g *generator) func(...Op) { return g.VPADDD }),
		product:  op(func(g *generator) func(...Op) { return g.VPMULLD }),
		least:    op(func(g *generator) func(...Op) { return g.VPMINSD }),
		greatest: op(func(g *generator) func(...Op) { return g.VPMAXSD }),
	}
}

// integers64 wrap. A product is made of those of halves, of which that of the upper ones
// does not count.
func integers64() element {
	above := func(g *generator, a, b vec) vec {
		v := g.YMM()
		g.VPCMPGTQ(b, a, v)
		return v
	}
	op := func(f func(g *generator, a, b vec) vec) func(g *generator) func(a, b vec) vec {
		return func(g *generator) func(a, b vec) vec { return func(a, b vec) vec { return f(g, a, b) } }
	}
	return element{
		name: "I64", of: whole,
		sum: op(func(g *generator, a, b vec) vec {
			v := g.YMM()
			g.VPADDQ(b, a, v)
			return v
		}),
		product: op(func(g *generator, a, b vec) vec {
			x, y, low := g.YMM(), g.YMM(), g.YMM()
			g.VPSRLQ(Imm(32), a, x)
			g.VPMULUDQ(b, x, x)
			g.VPSRLQ(Imm(32), b, y)
			g.VPMULUDQ(a, y, y)
			g.VPADDQ(x, y, y)
			g.VPSLLQ(Imm(32), y, y)
			g.VPMULUDQ(a, b, low)
			g.VPADDQ(low, y, y)
			return y
		}),
		least:    op(func(g *generator, a, b vec) vec { return g.choose(above(g, a, b), b, a) }),
		greatest: op(func(g *generator, a, b vec) vec { return g.choose(above(g, a, b), a, b) }),
	}
}
