package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vec is a vector of 8 float32, or of what their bits are.
type vec = reg.VecVirtual

// Operations on vectors, each to a new register. They are what the portable
// kernels do element by element, in the same order and with the same rounding:
// products and sums are not fused.

func (g *generator) op2(f func(...Op), a vec, b Op) vec {
	v := g.YMM()
	f(b, a, v)
	return v
}

func (g *generator) add(a vec, b Op) vec { return g.op2(g.VADDPS, a, b) }
func (g *generator) sub(a vec, b Op) vec { return g.op2(g.VSUBPS, a, b) }
func (g *generator) mul(a vec, b Op) vec { return g.op2(g.VMULPS, a, b) }
func (g *generator) div(a vec, b Op) vec { return g.op2(g.VDIVPS, a, b) }
func (g *generator) and(a vec, b Op) vec { return g.op2(g.VANDPS, a, b) }
func (g *generator) or(a vec, b Op) vec  { return g.op2(g.VORPS, a, b) }
func (g *generator) xor(a vec, b Op) vec { return g.op2(g.VXORPS, a, b) }

func (g *generator) sqrt(a vec) vec {
	v := g.YMM()
	g.VSQRTPS(a, v)
	return v
}

// without is a where mask is not set, else 0.
func (g *generator) without(mask vec, a Op) vec { return g.op2(g.VANDNPS, mask, a) }

// lesser is the smaller of both, x if one is NaN.
func (g *generator) lesser(x vec, bound float32) vec {
	v := g.load(g.constant(bound))
	g.VMINPS(x, v, v)
	return v
}

// greater is the larger of both, x if one is NaN.
func (g *generator) greater(x vec, bound float32) vec {
	v := g.load(g.constant(bound))
	g.VMAXPS(x, v, v)
	return v
}

// Predicates of compare: false if one is NaN.
const (
	less      = 0x11
	lessEqual = 0x12
	above     = 0x1e
)

func (g *generator) compare(predicate uint64, a vec, b Op) vec {
	v := g.YMM()
	g.VCMPPS(Imm(predicate), b, a, v)
	return v
}

// choose is a where mask is set, else b.
func (g *generator) choose(mask vec, a Op, b vec) vec {
	v := g.YMM()
	g.VBLENDVPS(mask, a, b, v)
	return v
}

func (g *generator) load(m Op) vec {
	v := g.YMM()
	g.VMOVUPS(m, v)
	return v
}

// constant is 8 times x, in memory.
func (g *generator) constant(x float32) Mem { return g.bits(math.Float32bits(x)) }

func (g *generator) bits(x uint32) Mem {
	if m, ok := g.constants[x]; ok {
		return m
	}
	m := g.StaticGlobal(fmt.Sprintf("k%08x", x))
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 {
		g.AddDatum(4*i, U32(x))
	}
	g.constants[x] = m
	return m
}

// values are the vectors and numbers of one turn of a loop.
type values struct {
	in      []vec
	scalars []vec
}

// loop writes a function that computes out, 8 elements a turn, from inputs and
// numbers. The length, after the slices, must be a multiple of 8.
func (g *generator) loop(name, doc string, inputs, scalars []string, body func(v values) vec) {
	params := append([]string{"out"}, inputs...)
	signature := "func(" + strings.Join(params, ", ") + " *float32, n int"
	for _, s := range scalars {
		signature += ", " + s + " float32"
	}
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(signature + ")")
	g.Doc(name + " is out = " + doc + ", for n elements, a multiple of 8.")
	var at []reg.Register
	for _, p := range params {
		at = append(at, g.Load(g.Param(p), g.GP64()))
	}
	n := g.Load(g.Param("n"), g.GP64())
	var numbers []vec
	for _, s := range scalars {
		v := g.YMM()
		addr, err := g.Param(s).Resolve()
		if err != nil {
			panic(err)
		}
		g.VBROADCASTSS(addr.Addr, v)
		numbers = append(numbers, v)
	}
	i := g.GP64()
	g.XORQ(i, i)
	g.SHRQ(Imm(3), n)
	g.JZ(LabelRef("done"))
	g.Label("loop")
	v := values{scalars: numbers}
	for k := range inputs {
		v.in = append(v.in, g.load(Mem{Base: at[k+1], Index: i, Scale: 4}))
	}
	g.VMOVUPS(body(v), Mem{Base: at[0], Index: i, Scale: 4})
	g.ADDQ(Imm(8), i)
	g.DECQ(n)
	g.JNZ(LabelRef("loop"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}

// arithmetic writes what needs no polynomial.
func arithmetic(g *generator) {
	ab, x, ydy, xdy := []string{"a", "b"}, []string{"x"}, []string{"y", "dy"}, []string{"x", "dy"}
	alpha := []string{"alpha"}
	g.loop("addAVX", "a + b", ab, nil, func(v values) vec { return g.add(v.in[0], v.in[1]) })
	g.loop("subAVX", "a - b", ab, nil, func(v values) vec { return g.sub(v.in[0], v.in[1]) })
	g.loop("mulAVX", "a·b", ab, nil, func(v values) vec { return g.mul(v.in[0], v.in[1]) })
	g.loop("divAVX", "a/b", ab, nil, func(v values) vec { return g.div(v.in[0], v.in[1]) })
	g.loop("addScalarAVX", "x + alpha", x, alpha, func(v values) vec { return g.add(v.in[0], v.scalars[0]) })
	g.loop("scaleAVX", "alpha·x", x, alpha, func(v values) vec { return g.mul(v.in[0], v.scalars[0]) })
	g.loop("addScaledAVX", "a + alpha·x", []string{"a", "x"}, alpha, func(v values) vec {
		return g.add(v.in[0], g.mul(v.in[1], v.scalars[0]))
	})
	g.loop("squareAVX", "x²", x, nil, func(v values) vec { return g.mul(v.in[0], v.in[0]) })
	g.loop("sqrtAVX", "√x", x, nil, func(v values) vec { return g.sqrt(v.in[0]) })
	g.loop("rsqrtAVX", "1/√x", x, nil, func(v values) vec { return g.div(g.load(g.constant(1)), g.sqrt(v.in[0])) })
	g.loop("reluAVX", "x, but 0 where x <= 0", x, nil, func(v values) vec { return g.relu(v.in[0]) })
	g.loop("addReluAVX", "a + b, but 0 where that is <= 0", ab, nil, func(v values) vec {
		return g.relu(g.add(v.in[0], v.in[1]))
	})
	g.loop("leakyReluAVX", "x where x > 0, else alpha·x", x, alpha, func(v values) vec {
		x := v.in[0]
		return g.choose(g.compare(above, x, g.constant(0)), x, g.mul(x, v.scalars[0]))
	})
	g.loop("reluGradAVX", "dy where y > 0, else 0", ydy, nil, func(v values) vec {
		return g.and(v.in[1], g.compare(above, v.in[0], g.constant(0)))
	})
	g.loop("leakyReluGradAVX", "dy where x > 0, else alpha·dy", xdy, alpha, func(v values) vec {
		return g.choose(g.compare(above, v.in[0], g.constant(0)), v.in[1], g.mul(v.in[1], v.scalars[0]))
	})
	g.loop("sigmoidGradAVX", "dy·y·(1-y)", ydy, nil, func(v values) vec {
		return g.mul(g.mul(v.in[1], v.in[0]), g.sub(g.load(g.constant(1)), v.in[0]))
	})
	g.loop("tanhGradAVX", "dy·(1-y²)", ydy, nil, func(v values) vec {
		return g.mul(v.in[1], g.sub(g.load(g.constant(1)), g.mul(v.in[0], v.in[0])))
	})
	g.loop("squareGradAVX", "2·x·dy", xdy, nil, func(v values) vec {
		return g.mul(g.add(v.in[0], v.in[0]), v.in[1])
	})
	g.loop("normalizeAVX", "(x - mean)·inv·gain + bias", []string{"x", "gain", "bias"}, []string{"mean", "inv"}, func(v values) vec {
		return g.add(g.mul(g.mul(g.sub(v.in[0], v.scalars[0]), v.scalars[1]), v.in[1]), v.in[2])
	})
	g.loop("scaleMulAVX", "alpha·x·gain", []string{"x", "gain"}, alpha, func(v values) vec {
		return g.mul(g.mul(v.in[0], v.scalars[0]), v.in[1])
	})
	g.loop("normGradAVX", "(t - shift - (x - mean)·slope)·inv", []string{"t", "x"}, []string{"mean", "inv", "shift", "slope"}, func(v values) vec {
		d := g.mul(g.sub(v.in[1], v.scalars[0]), v.scalars[3])
		return g.mul(g.sub(g.sub(v.in[0], v.scalars[2]), d), v.scalars[1])
	})
	g.loop("addNormProductsAVX", "a + (x - mean)·inv·dy", []string{"a", "x", "dy"}, []string{"mean", "inv"}, func(v values) vec {
		return g.add(v.in[0], g.mul(g.mul(g.sub(v.in[1], v.scalars[0]), v.scalars[1]), v.in[2]))
	})
	g.loop("softmaxGradAVX", "y·(dy - alpha)", ydy, alpha, func(v values) vec {
		return g.mul(v.in[0], g.sub(v.in[1], v.scalars[0]))
	})
}

func (g *generator) relu(x vec) vec { return g.without(g.compare(lessEqual, x, g.constant(0)), x) }
