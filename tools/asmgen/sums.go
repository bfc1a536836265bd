package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// reduce writes a function that returns a sum of terms, in float64: those of
// elements i to i+3 and i+4 to i+7 are added to 8 sums, lane by lane, and these
// as a tree.
func (g *generator) reduce(name, doc string, inputs, scalars []string, body func(s *span, at []reg.Register, scalars []vec) [2]vec) {
	signature := strings.Join(inputs, ", ") + " *" + g.typ() + ", n int"
	typ := " float64"
	for _, s := range scalars {
		if s == "shift" {
			typ = " float32"
		}
		signature += ", " + s + typ
	}
	g.function(name, signature+") (total float64", "is the sum of "+doc+", of n elements.")
	at, n := g.pointers(inputs), g.Load(g.Param("n"), g.GP64())
	var numbers []vec
	for _, s := range scalars {
		numbers = append(numbers, g.broadcast(s, typ == " float64"))
	}
	g.total(n, func(s *span) [2]vec { return body(s, at, numbers) })
}

// total is the rest of a function that returns a sum, in the order of reduce.
func (g *generator) total(n reg.Register, terms func(s *span) [2]vec) {
	sums := [2]vec{g.YMM(), g.YMM()}
	for _, s := range sums {
		g.VXORPD(s, s, s)
	}
	g.spans("", n, 8, func(s *span) {
		for h, term := range terms(s) {
			if s.left != nil {
				g.VANDPD(g.masks(s.left, 8, 4*h), term, term)
			}
			g.VADDPD(term, sums[h], sums[h])
		}
	})
	total, top := sums[0].AsX(), g.XMM()
	g.VADDPD(sums[1], sums[0], sums[0])
	g.VEXTRACTF128(Imm(1), sums[0], top)
	g.VADDPD(top, total, total)
	g.VSHUFPD(Imm(1), total, total, top)
	g.VADDSD(top, total, total)
	g.VZEROUPPER()
	g.Store(total, g.Return("total"))
	g.RET()
}

// doubles are the 8 elements of a turn in float64.
func (s *span) doubles(base reg.Register) [2]vec {
	if s.mask != nil && !s.double {
		return s.wide(s.get(base))
	}
	v := [2]vec{s.YMM(), s.YMM()}
	for h := range v {
		m := s.place(base)
		m.Disp = 4 * h * s.size()
		switch {
		case !s.double:
			s.VCVTPS2PD(m, v[h])
		case s.mask != nil:
			s.VMASKMOVPD(m, s.masks(s.left, 8, 4*h), v[h])
		default:
			s.VMOVUPD(m, v[h])
		}
	}
	return v
}

// sums writes the reductions.
func sums(g *generator) {
	for _, g.double = range []bool{false, true} {
		g.reduce("sumAVX", "x", []string{"x"}, nil, func(s *span, at []reg.Register, _ []vec) [2]vec { return s.doubles(at[0]) })
		g.reduce("dotAVX", "x·y", []string{"x", "y"}, nil, func(s *span, at []reg.Register, _ []vec) [2]vec {
			x, y := s.doubles(at[0]), s.doubles(at[1])
			for h := range x {
				g.VMULPD(y[h], x[h], x[h])
			}
			return x
		})
		g.reduce("squaresAVX", "(x - mean)²", []string{"x"}, []string{"mean"}, func(s *span, at []reg.Register, scalars []vec) [2]vec {
			x := s.doubles(at[0])
			for h := range x {
				g.VSUBPD(scalars[0], x[h], x[h])
				g.VMULPD(x[h], x[h], x[h])
			}
			return x
		})
		g.reduce("squaredLossAVX", "(p - y)²", []string{"p", "y"}, nil, func(s *span, at []reg.Register, _ []vec) [2]vec {
			x, y := s.doubles(at[0]), s.doubles(at[1])
			for h := range x {
				g.VSUBPD(y[h], x[h], x[h])
				g.VMULPD(x[h], x[h], x[h])
			}
			return x
		})
	}
	g.double = false
	g.reduce("expSumAVX", "what it sets, out = exp(x - shift)", []string{"out", "x"}, []string{"shift"}, func(s *span, at []reg.Register, scalars []vec) [2]vec {
		e := g.expAny(g.sub(s.get(at[1]), scalars[0]))
		s.set(at[0], e)
		return g.wide(e)
	})
	g.reduce("logisticLossAVX", "|z|·t + log(1+exp(-|z|)), t being y where z < 0 and 1-y elsewhere", []string{"z", "y"}, nil, func(s *span, at []reg.Register, _ []vec) [2]vec {
		z, y := s.get(at[0]), s.get(at[1])
		t := g.choose(z, y, g.sub(g.load(g.constant(1)), y)) // the mask is the sign of z
		e := g.expBelow(z)
		return g.wide(g.add(g.mul(g.and(z, g.bits(otherBits)), t), g.logOf1And(e)))
	})
}
