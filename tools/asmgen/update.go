package main

import (
	"strings"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The order of coefficients in memory, 8 of each: that of vector.Coefs.
var coefficients = []string{"total", "clip", "minusClip", "l2", "rate", "decay", "mu", "damp", "eps", "blend1", "beta2", "blend2", "root2"}

// rule is the state of one update rule's loop.
type rule struct {
	*generator
	at    map[string]reg.Register
	coefs reg.Register
	i     reg.Register
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

func (r *rule) place(name string) Mem { return Mem{Base: r.at[name], Index: r.i, Scale: 4} }

func (r *rule) get(name string) vec { return r.load(r.place(name)) }

func (r *rule) set(name string, v vec) { r.VMOVUPS(v, r.place(name)) }

// mean is what a rule follows: the clipped mean of the gradient with weight decay.
func (r *rule) mean(w vec) vec {
	m := r.div(r.get("grad"), r.c("total"))
	low, high := r.load(r.c("clip")), r.load(r.c("minusClip"))
	r.VMINPS(m, low, m) // m if it is NaN
	r.VMAXPS(m, high, m)
	return r.add(m, r.mul(w, r.c("l2")))
}

// times is a coefficient times a vector.
func (r *rule) times(name string, v vec) vec { return r.mul(v, r.c(name)) }

func (g *generator) update(name, doc string, slots []string, body func(r *rule, w vec)) {
	params := append([]string{"p", "grad"}, slots...)
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(" + strings.Join(params, ", ") + " *float32, n int, c *float32)")
	g.Doc(name + " is the rule " + doc + " for n elements, a multiple of 8.")
	r := &rule{generator: g, at: map[string]reg.Register{}}
	for _, p := range params {
		r.at[p] = g.Load(g.Param(p), g.GP64())
	}
	n := g.Load(g.Param("n"), g.GP64())
	r.coefs = g.Load(g.Param("c"), g.GP64())
	r.i = g.GP64()
	g.XORQ(r.i, r.i)
	g.SHRQ(Imm(3), n)
	g.JZ(LabelRef("done"))
	g.Label("loop")
	body(r, r.get("p"))
	g.ADDQ(Imm(8), r.i)
	g.DECQ(n)
	g.JNZ(LabelRef("loop"))
	g.Label("done")
	g.VZEROUPPER()
	g.RET()
}

// updates writes the update rules, each operation of optim in its order.
func updates(g *generator) {
	g.update("sgdAVX", "sgd", nil, func(r *rule, w vec) {
		r.set("p", r.sub(w, r.times("rate", r.mean(w))))
	})
	momentum := func(nesterov bool) func(r *rule, w vec) {
		return func(r *rule, w vec) {
			m := r.mean(w)
			v := r.add(r.times("mu", r.get("u")), r.times("damp", m))
			r.set("u", v)
			if nesterov {
				v = r.add(m, r.times("mu", v))
			}
			w = r.sub(w, r.times("decay", w))
			r.set("p", r.sub(w, r.times("rate", v)))
		}
	}
	g.update("momentumAVX", "momentum", []string{"u"}, momentum(false))
	g.update("nesterovAVX", "momentum with Nesterov's look ahead", []string{"u"}, momentum(true))
	g.update("adagradAVX", "adagrad", []string{"a"}, func(r *rule, w vec) {
		m := r.mean(w)
		s := r.add(r.get("a"), r.mul(m, m))
		r.set("a", s)
		r.set("p", r.sub(w, r.times("rate", r.div(m, r.add(r.sqrt(s), r.c("eps"))))))
	})
	g.update("adamAVX", "adam or adamw", []string{"m1", "m2"}, func(r *rule, w vec) {
		m := r.mean(w)
		old := r.get("m1")
		a := r.add(old, r.times("blend1", r.sub(m, old)))
		v := r.add(r.times("beta2", r.get("m2")), r.times("blend2", r.mul(m, m)))
		r.set("m1", a)
		r.set("m2", v)
		w = r.sub(w, r.times("decay", w))
		d := r.add(r.div(r.sqrt(v), r.c("root2")), r.c("eps"))
		r.set("p", r.sub(w, r.times("rate", r.div(a, d))))
	})
}
