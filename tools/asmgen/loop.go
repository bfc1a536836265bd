package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// size is that of an element, in bytes.
func (g *generator) size() int {
	if g.double {
		return 8
	}
	return 4
}

func (g *generator) lanes() int { return 32 / g.size() }

// typ is the type of an element.
func (g *generator) typ() string { return fmt.Sprintf("float%d", 8*g.size()) }

// name is that of a function, which float64 has beside float32.
func (g *generator) name(name string) string {
	if g.double {
		return name + "64"
	}
	return name
}

// function begins one. Its name is that of float32.
func (g *generator) function(name, signature, doc string) {
	name = g.name(name)
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(" + signature + ")")
	g.Doc(name + " " + doc)
}

// pointers loads parameters that are pointers or whole numbers.
func (g *generator) pointers(names []string) []reg.Register {
	var at []reg.Register
	for _, p := range names {
		at = append(at, g.Load(g.Param(p), g.GP64()))
	}
	return at
}

// broadcast returns a vector of a number among the parameters.
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

func (g *generator) end() {
	g.VZEROUPPER()
	g.RET()
}

// span is one turn of a loop: a vector of elements, or as many as are left
// over at the end, which mask says.
type span struct {
	*generator
	i    reg.Register
	mask *vec
	// How many are left over, and minus that; nil if none are.
	count, left reg.Register
}

func (s *span) place(base reg.Register) Mem {
	return Mem{Base: base, Index: s.i, Scale: uint8(s.size())}
}

// get reads the elements of this turn, 0 where there are none.
func (s *span) get(base reg.Register) vec {
	if s.mask == nil {
		return s.load(s.place(base))
	}
	v := s.YMM()
	if s.double {
		s.VMASKMOVPD(s.place(base), *s.mask, v)
	} else {
		s.VMASKMOVPS(s.place(base), *s.mask, v)
	}
	return v
}

// set writes the elements of this turn. Those left over go in parts of 4, 2 and 1:
// stores by a mask cost many times as much on some machines.
func (s *span) set(base reg.Register, v vec) {
	if s.mask == nil {
		s.VMOVUPS(v, s.place(base))
		return
	}
	s.labels++
	at, rest, low := s.GP64(), s.YMM(), s.XMM()
	s.LEAQ(s.place(base), at)
	s.VMOVAPS(v, rest)
	s.VMOVAPS(v.AsX(), low)
	part := func(n int, store, next func()) {
		skip := fmt.Sprintf("skip%d_%d", s.labels, n)
		s.TESTB(Imm(uint64(n)), s.count.(reg.GP).As8())
		s.JZ(LabelRef(skip))
		store()
		if next != nil {
			next()
			s.ADDQ(Imm(uint64(n*s.size())), at)
		}
		s.Label(skip)
	}
	half := func() { s.VMOVUPS(low, Mem{Base: at}) }
	second := func() { s.VEXTRACTF128(Imm(1), rest, low) }
	if s.double {
		part(2, half, second)
		part(1, func() { s.VMOVSD(low, Mem{Base: at}) }, nil)
		return
	}
	part(4, half, second)
	part(2, func() { s.VMOVLPS(low, Mem{Base: at}) }, func() { s.VSHUFPS(Imm(0xee), low, low, low) })
	part(1, func() { s.VMOVSS(low, Mem{Base: at}) }, nil)
}

// spans writes a loop over n elements, some at a turn, and a turn for what is
// left over. tag tells the loops of a function apart. It uses n up.
func (g *generator) spans(tag string, n reg.Register, some int, turn func(s *span)) {
	i, end := g.GP64(), g.GP64()
	g.XORQ(i, i)
	g.MOVQ(n, end)
	g.ANDQ(I8(-some), end)
	g.JZ(LabelRef("tail" + tag))
	g.Label("loop" + tag)
	turn(&span{generator: g, i: i})
	g.ADDQ(Imm(uint64(some)), i)
	g.CMPQ(i, end)
	g.JNE(LabelRef("loop" + tag))
	g.Label("tail" + tag)
	g.SUBQ(i, n)
	g.JZ(LabelRef("done" + tag))
	left := g.GP64()
	g.MOVQ(n, left)
	g.NEGQ(left)
	mask := g.masks(left, g.size(), 0)
	turn(&span{generator: g, i: i, mask: &mask, count: n, left: left})
	g.Label("done" + tag)
}

// masks is the vector at word skip of those that are set in the first of 8
// words, and not in the others: as many as left is below 0.
func (g *generator) masks(left reg.Register, size, skip int) vec {
	on, off := U64(^uint64(0)), U64(0)
	table := g.words("masks8", 8, on, on, on, on, on, on, on, on, off, off, off, off, off, off, off, off)
	if size == 4 {
		table = g.words("masks4", 8, on, on, on, on, off, off, off, off)
	}
	at := g.GP64()
	g.LEAQ(table, at)
	return g.load(Mem{Base: at, Index: left, Scale: uint8(size), Disp: (8 + skip) * size})
}

// values are the vectors and numbers of one turn of a loop.
type values struct {
	in      []vec
	scalars []vec
}

// loop writes a function that computes out from inputs and numbers.
func (g *generator) loop(name, doc string, inputs, scalars []string, body func(v values) vec) {
	params := append([]string{"out"}, inputs...)
	signature := strings.Join(params, ", ") + " *" + g.typ() + ", n int"
	for _, s := range scalars {
		signature += ", " + s + " " + g.typ()
	}
	g.function(name, signature, "is out = "+doc+", for n elements.")
	at := g.pointers(params)
	n := g.Load(g.Param("n"), g.GP64())
	var v values
	for _, s := range scalars {
		v.scalars = append(v.scalars, g.broadcast(s, g.double))
	}
	g.spans("", n, g.lanes(), func(s *span) {
		v.in = nil
		for _, a := range at[1:] {
			v.in = append(v.in, s.get(a))
		}
		s.set(at[0], body(v))
	})
	g.end()
}

// repeating writes a function like loop, of which some inputs may be one
// element that is repeated: those whose bits are set in single, which may be
// each of forms.
func (g *generator) repeating(name, doc string, inputs []string, forms []int, body func(v values) vec) {
	params := append([]string{"out"}, inputs...)
	g.function(name, strings.Join(params, ", ")+" *"+g.typ()+", n, single int",
		"is out = "+doc+", for n elements. Of inputs whose bit in single is set there is one.")
	at := g.pointers(params)
	n, single := g.Load(g.Param("n"), g.GP64()), g.Load(g.Param("single"), g.GP64())
	for _, form := range forms[1:] {
		g.CMPQ(single, Imm(uint64(form)))
		g.JE(LabelRef(fmt.Sprint("form", form)))
	}
	for _, form := range forms {
		if form > 0 {
			g.Label(fmt.Sprint("form", form))
		}
		once := make([]vec, len(inputs))
		for k := range inputs {
			if form>>k&1 == 1 {
				once[k] = g.YMM()
				if g.double {
					g.VBROADCASTSD(Mem{Base: at[k+1]}, once[k])
				} else {
					g.VBROADCASTSS(Mem{Base: at[k+1]}, once[k])
				}
			}
		}
		left := g.GP64()
		g.MOVQ(n, left)
		g.spans(fmt.Sprint(form), left, g.lanes(), func(s *span) {
			var v values
			for k, a := range at[1:] {
				if once[k] != nil {
					v.in = append(v.in, once[k])
				} else {
					v.in = append(v.in, s.get(a))
				}
			}
			s.set(at[0], body(v))
		})
		g.end()
	}
}
