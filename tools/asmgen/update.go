package main

import (
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The order of coefficients in memory, 8 of each: that of vector.Coefs.
var coefficients = []string{
	"total", "clip", "minusClip", "l2", "rate", "decay", "mu", "damp", "eps", "blend1", "beta2", "blend2", "root2",
	"unbias", "l1", "ridge", "beta",
}

// rule is one turn of an update rule's loop.
type rule struct {
	*span
	at    map[string]reg.Register
	coefs reg.Register
	w     vec // the parameters
}

// c is a coefficient.
func (r *rule) c(name string) Mem {
	for i, n := range coefficients {
		if n == name {
			return Mem{Base: r.coefs, Disp: 32 * i}
		}
	}
	panic("no coefficient " + name)
}

func (r *rule) slot(name string) vec { return r.get(r.at[name]) }

func (r *rule) keep(name string, v vec) { r.set(r.at[name], v) }

// mean is what a rule follows: the clipped mean of the gradient with weight decay.
func (r *rule) mean() vec {
	m := r.div(r.slot("grad"), r.c("total"))
	m = r.low(r.load(r.c("clip")), m)      // m if it is NaN
	m = r.top(r.load(r.c("minusClip")), m) // as well
	return r.add(m, r.times("l2", r.w))
}

// times is a coefficient times a vector.
func (r *rule) times(name string, v vec) vec { return r.mul(v, r.c(name)) }

// move takes the rate times v off the parameters.
func (r *rule) move(v vec) { r.keep("p", r.sub(r.w, r.times("rate", v))) }

// decay takes the decoupled decay off the parameters.
func (r *rule) decay() { r.w = r.sub(r.w, r.times("decay", r.w)) }

// moments moves those of adam and returns them.
func (r *rule) moments() (a, v vec) {
	m, old := r.mean(), r.slot("m1")
	a = r.add(old, r.times("blend1", r.sub(m, old)))
	v = r.add(r.times("beta2", r.slot("m2")), r.times("blend2", r.mul(m, m)))
	r.keep("m1", a)
	r.keep("m2", v)
	return a, v
}

// spreadOf is √v/√(1-β₂ᵗ) + ε.
func (r *rule) spreadOf(v vec) vec { return r.add(r.div(r.sqrt(v), r.c("root2")), r.c("eps")) }

// direction is that of lamb.
func (r *rule) direction(a, v vec) vec {
	return r.add(r.div(r.times("unbias", a), r.spreadOf(v)), r.times("decay", r.w))
}

func (g *generator) update(name, doc string, arrays []string, body func(r *rule)) {
	g.function(name, strings.Join(arrays, ", ")+" *float32, n int, c *float32", "is the rule "+doc+" for n elements.")
	at := map[string]reg.Register{}
	for i, p := range g.pointers(arrays) {
		at[arrays[i]] = p
	}
	n, coefs := g.Load(g.Param("n"), g.GP64()), g.Load(g.Param("c"), g.GP64())
	g.spans("", n, 8, func(s *span) {
		body(&rule{s, at, coefs, s.get(at["p"])})
	})
	g.end()
}

// updates writes the update rules, each operation of optim in its order.
func updates(g *generator) {
	g.update("sgdAVX", "sgd", []string{"p", "grad"}, func(r *rule) { r.move(r.mean()) })
	momentum := func(nesterov bool) func(r *rule) {
		return func(r *rule) {
			m := r.mean()
			v := r.add(r.times("mu", r.slot("u")), r.times("damp", m))
			r.keep("u", v)
			if nesterov {
				v = r.add(m, r.times("mu", v))
			}
			r.decay()
			r.move(v)
		}
	}
	g.update("momentumAVX", "momentum", []string{"p", "grad", "u"}, momentum(false))
	g.update("nesterovAVX", "momentum with Nesterov's look ahead", []string{"p", "grad", "u"}, momentum(true))
	g.update("adagradAVX", "adagrad", []string{"p", "grad", "a"}, func(r *rule) {
		m := r.mean()
		s := r.add(r.slot("a"), r.mul(m, m))
		r.keep("a", s)
		r.move(r.div(m, r.add(r.sqrt(s), r.c("eps"))))
	})
	rmsprops(g)
	g.update("adamAVX", "adam or adamw", []string{"p", "grad", "m1", "m2"}, func(r *rule) {
		a, v := r.moments()
		r.decay()
		r.move(r.div(a, r.spreadOf(v)))
	})
	g.update("amsgradAVX", "adam or adamw with AMSGrad", []string{"p", "grad", "m1", "m2", "top"}, func(r *rule) {
		a, v := r.moments()
		v = r.maximum(v, r.slot("top"))
		r.keep("top", v)
		r.decay()
		r.move(r.div(a, r.spreadOf(v)))
	})
	g.update("ftrlAVX", "ftrl with the square root", []string{"p", "grad", "z", "sum"}, func(r *rule) {
		m, n := r.mean(), r.slot("sum")
		square := r.mul(m, m)
		s := r.add(n, square)
		r.keep("sum", s)
		now := r.sqrt(s)
		gain := r.and(r.div(square, r.add(now, r.sqrt(n))), r.compare(above, now, r.constant(0)))
		z := r.sub(r.add(r.slot("z"), m), r.mul(r.div(gain, r.c("rate")), r.w))
		r.keep("z", z)
		over := r.add(r.greater(r.sub(z, r.c("l1")), 0), r.lesser(r.add(z, r.c("l1")), 0))
		r.keep("p", r.div(r.sub(r.load(r.constant(0)), over), r.add(r.div(r.add(now, r.c("beta")), r.c("rate")), r.c("ridge"))))
	})
	lamb(g)
}

// rmsprops writes rmsprop with each of its flags or without.
func rmsprops(g *generator) {
	for flags := range 4 {
		centered, momentum := flags&1 == 1, flags&2 == 2
		name, doc, arrays := "rmsprop", "rmsprop", []string{"p", "grad", "s"}
		if centered {
			name, doc, arrays = name+"Centered", doc+", centered,", append(arrays, "mean")
		}
		if momentum {
			name, doc, arrays = name+"Momentum", doc+" with momentum", append(arrays, "u")
		}
		g.update(name+"AVX", doc, arrays, func(r *rule) {
			m := r.mean()
			v := r.add(r.times("beta2", r.slot("s")), r.times("blend1", r.mul(m, m)))
			r.keep("s", v)
			if centered {
				old := r.slot("mean")
				a := r.add(old, r.times("blend1", r.sub(m, old)))
				r.keep("mean", a)
				v = r.greater(r.sub(v, r.mul(a, a)), 0)
			}
			d := r.div(m, r.add(r.sqrt(v), r.c("eps")))
			if momentum {
				d = r.add(d, r.times("mu", r.slot("u")))
				r.keep("u", d)
			}
			r.move(d)
		})
	}
}

// lamb writes its two passes, and the sum of squares.
func lamb(g *generator) {
	g.update("lambAVX", "lamb, its second pass,", []string{"p", "m1", "m2"}, func(r *rule) {
		r.move(r.direction(r.slot("m1"), r.slot("m2")))
	})
	arrays := []string{"p", "grad", "m1", "m2"}
	g.function("lambMomentsAVX", strings.Join(arrays, ", ")+" *float32, n int, c *float32) (total float64",
		"is the rule lamb, its first pass, for n elements: it moves the moments and returns the squared norm of the directions.")
	at := map[string]reg.Register{}
	for i, p := range g.pointers(arrays) {
		at[arrays[i]] = p
	}
	n, coefs := g.Load(g.Param("n"), g.GP64()), g.Load(g.Param("c"), g.GP64())
	g.total(n, func(s *span) [2]vec {
		r := &rule{s, at, coefs, s.get(at["p"])}
		d := g.wide(r.direction(r.moments()))
		for h := range d {
			g.VMULPD(d[h], d[h], d[h])
		}
		return d
	})
	g.reduce("squaresAVX", "x²", []string{"x"}, nil, func(s *span, at []reg.Register, _ []vec) [2]vec {
		x := s.doubles(at[0])
		for h := range x {
			g.VMULPD(x[h], x[h], x[h])
		}
		return x
	})
	fetch(g)
}

// fetch writes what has rows near before they are used.
func fetch(g *generator) {
	g.Function("fetchAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(rows *float32, at *int, n, size int)")
	g.Doc("fetchAVX has the first cache line of each of n rows, size bytes long, fetched.")
	table, rows := g.Load(g.Param("rows"), g.GP64()), g.Load(g.Param("at"), g.GP64())
	n, size := g.Load(g.Param("n"), g.GP64()), g.Load(g.Param("size"), g.GP64())
	at := g.GP64()
	g.TESTQ(n, n)
	g.JZ(LabelRef("done"))
	g.Label("row")
	g.MOVQ(Mem{Base: rows}, at)
	g.IMULQ(size, at)
	g.PREFETCHT0(Mem{Base: table, Index: at, Scale: 1})
	g.ADDQ(Imm(8), rows)
	g.DECQ(n)
	g.JNZ(LabelRef("row"))
	g.Label("done")
	g.RET()
}
