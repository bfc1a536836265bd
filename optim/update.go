package optim

import (
	"fmt"
	"math"
)

// Dense applies one step of the rule to the parameters p in place, given the
// sum g of the gradient over all examples of the step and their total weight.
// With m = g/total + L2·p the rules are, element by element:
//
//	sgd        p ← p - lr·m
//	momentum   u ← μ·u + m;  p ← p - lr·u, or p - lr·(m + μ·u) with Nesterov
//	adagrad    a ← a + m²;  p ← p - lr·m/(√a + ε)
//	adam       m̄ ← m̄ + (1-β₁)(m - m̄);  v ← β₂·v + (1-β₂)·m²
//	           p ← p - lr/(1-β₁ᵗ) · m̄/(√v/√(1-β₂ᵗ) + ε),  t = step+1
//
// Sources: Polyak 1964 and Sutskever et al., "On the importance of
// initialization and momentum in deep learning", 2013 (momentum in the form of
// PyTorch, where the learning rate multiplies the velocity instead of being
// folded into it); Duchi, Hazan, Singer, "Adaptive Subgradient Methods", 2011;
// Kingma, Ba, "Adam: A Method for Stochastic Optimization", 2015. ε stands
// outside the root, as in PyTorch.
//
// step is the 0-based step of the run. total 0 means that the step had no
// examples: everything stays as it was. slots are those of Rule.Slots, each as
// long as p. Zero settings take their defaults; the rule must be valid.
//
// Every element depends on its own past only, so applying Dense to ranges of
// an array gives the bits that applying it to the whole gives. Arithmetic is
// in T, in the order written, without fused multiply-add: machines agree. It
// allocates nothing; one pass over p, g and the slots. Slices whose lengths
// differ are a programmer error and panic.
func Dense[T Float](r Rule, step int64, total float64, p, g []T, slots [][]T) {
	if total == 0 {
		return
	}
	k := newKernel[T](r, step, total)
	k.check(len(p), len(g), slots)
	k.apply(p, g, slots, 0, len(p))
}

// Rows is Dense for the rows of a table that a step touched: row i of g, of
// dim elements, belongs to row at[i] of p and of the slots, which are shaped
// like p. The entries of at must be distinct. Rows that at does not name keep
// their values and their slots (lazy update). The touched rows get the bits
// that Dense would give them.
func Rows[T Float](r Rule, step int64, total float64, p []T, at []int, dim int, g []T, slots [][]T) {
	if total == 0 {
		return
	}
	k := newKernel[T](r, step, total)
	k.check(len(p), len(p), slots)
	if len(g) != len(at)*dim {
		panic(fmt.Sprintf("optim: %d gradient elements for %d rows of %d", len(g), len(at), dim))
	}
	for i, row := range at {
		k.apply(p, g[i*dim:(i+1)*dim], slots, row*dim, (row+1)*dim)
	}
}

// kernel is a rule with its scalars worked out for one step, in float64 and
// then rounded to T once.
type kernel[T Float] struct {
	kind     Kind
	nesterov bool
	slots    int
	total    T
	l2       T
	lr       T // adam: lr/(1-β₁ᵗ)
	mu       T
	eps      T
	blend1   T // 1-β₁
	beta2    T
	blend2   T // 1-β₂
	root2    T // √(1-β₂ᵗ)
}

func newKernel[T Float](r Rule, step int64, total float64) kernel[T] {
	r = r.Defaults()
	k := kernel[T]{
		kind: r.Kind, nesterov: r.Nesterov, total: T(total), l2: T(r.L2),
		lr: T(r.LR), mu: T(r.Momentum), eps: T(r.Eps),
	}
	switch r.Kind {
	case SGD:
	case Momentum, Adagrad:
		k.slots = 1
	case Adam:
		k.slots = 2
		t := float64(step + 1)
		k.lr = T(r.LR / (1 - math.Pow(r.Beta1, t)))
		k.blend1, k.beta2, k.blend2 = T(1-r.Beta1), T(r.Beta2), T(1-r.Beta2)
		k.root2 = T(math.Sqrt(1 - math.Pow(r.Beta2, t)))
	default:
		panic(fmt.Sprintf("optim: unknown rule %q", r.Kind))
	}
	return k
}

func (k *kernel[T]) check(params, grads int, slots [][]T) {
	if grads != params {
		panic(fmt.Sprintf("optim: %d gradient elements for %d parameters", grads, params))
	}
	if len(slots) != k.slots {
		panic(fmt.Sprintf("optim: rule %s has %d slots, got %d", k.kind, k.slots, len(slots)))
	}
	for i, s := range slots {
		if len(s) != params {
			panic(fmt.Sprintf("optim: slot %d of rule %s has %d elements for %d parameters", i, k.kind, len(s), params))
		}
	}
}

// apply updates elements lo to hi of p and the slots with the gradients g.
func (k *kernel[T]) apply(p, g []T, slots [][]T, lo, hi int) {
	p = p[lo:hi]
	switch k.kind {
	case SGD:
		k.sgd(p, g)
	case Momentum:
		k.momentum(p, g, slots[0][lo:hi])
	case Adagrad:
		k.adagrad(p, g, slots[0][lo:hi])
	case Adam:
		k.adam(p, g, slots[0][lo:hi], slots[1][lo:hi])
	}
}

// The conversions T(x*y) below are not redundant: they forbid the compiler to
// fuse the product into a following sum, which it does on some machines only.

func (k *kernel[T]) sgd(p, g []T) {
	g = g[:len(p)]
	total, l2, lr := k.total, k.l2, k.lr
	for i, w := range p {
		m := g[i]/total + T(l2*w)
		p[i] = w - T(lr*m)
	}
}

func (k *kernel[T]) momentum(p, g, u []T) {
	g, u = g[:len(p)], u[:len(p)]
	total, l2, lr, mu := k.total, k.l2, k.lr, k.mu
	for i, w := range p {
		m := g[i]/total + T(l2*w)
		v := T(mu*u[i]) + m
		u[i] = v
		if k.nesterov {
			v = m + T(mu*v)
		}
		p[i] = w - T(lr*v)
	}
}

func (k *kernel[T]) adagrad(p, g, a []T) {
	g, a = g[:len(p)], a[:len(p)]
	total, l2, lr, eps := k.total, k.l2, k.lr, k.eps
	for i, w := range p {
		m := g[i]/total + T(l2*w)
		s := a[i] + T(m*m)
		a[i] = s
		p[i] = w - T(lr*(m/(T(math.Sqrt(float64(s)))+eps)))
	}
}

func (k *kernel[T]) adam(p, g, m1, m2 []T) {
	g, m1, m2 = g[:len(p)], m1[:len(p)], m2[:len(p)]
	total, l2, lr, eps := k.total, k.l2, k.lr, k.eps
	blend1, beta2, blend2, root2 := k.blend1, k.beta2, k.blend2, k.root2
	for i, w := range p {
		m := g[i]/total + T(l2*w)
		a := m1[i] + T(blend1*(m-m1[i]))
		v := T(beta2*m2[i]) + T(blend2*T(m*m))
		m1[i], m2[i] = a, v
		p[i] = w - T(lr*(a/(T(math.Sqrt(float64(v)))/root2+eps)))
	}
}
