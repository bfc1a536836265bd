package optim

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/optim/internal/vector"
)

// Dense applies one step of the rule to the parameters p in place, given the
// sum g of the gradient over all examples of the step and their total weight.
// With m = clip(g/total) + L2·p, where clip bounds to ±ClipValue, and lr the
// Rate of the step, the rules are, element by element:
//
//	sgd        p ← p - lr·m
//	momentum   p ← p - lr·wd·p;  u ← μ·u + (1-dampening)·m
//	           p ← p - lr·u, or p - lr·(m + μ·u) with Nesterov
//	adagrad    a ← a + m²;  p ← p - lr/(1+LRDecay·step) · m/(√a + ε)
//	rmsprop    s ← ρ·s + (1-ρ)·m²;  r = m/(√s + ε)
//	           centered: c ← c + (1-ρ)(m - c);  r = m/(√max(s - c², 0) + ε)
//	           p ← p - lr·r, or with momentum u ← μ·u + r;  p ← p - lr·u
//	adam       m̄ ← m̄ + (1-β₁)(m - m̄);  v ← β₂·v + (1-β₂)·m²
//	           p ← p - lr/(1-β₁ᵗ) · m̄/(√v/√(1-β₂ᵗ) + ε),  t = step+1
//	           AMSGrad: x ← max(x, v), which stands for v in the line above
//	adamw      p ← p - lr·wd·p, then adam without L2
//	ftrl       m without L2;  n' = n + m²;  σ = (n'^q - n^q)/lr,  q = -LRPower
//	           z ← z + m - σ·p;  n ← n'
//	           p ← 0 if |z| ≤ L1, else -(z - sgn(z)·L1)/((β + n^q)/lr + L2)
//	lamb       m̄ and v of adam without L2
//	           r = m̄·(1/(1-β₁ᵗ))/(√v/√(1-β₂ᵗ) + ε) + wd·p
//	           p ← p - lr·φ·r,  φ = |p|/|r| over all of p, 1 if either is 0
//
// Sources: Polyak 1964 and Sutskever et al., "On the importance of
// initialization and momentum in deep learning", 2013 (momentum in the form of
// PyTorch, where the learning rate multiplies the velocity; but the first
// gradient is dampened like all others); Duchi, Hazan, Singer, "Adaptive
// Subgradient Methods", 2011; Tieleman, Hinton, "Lecture 6.5: RMSProp", 2012,
// and Graves, "Generating Sequences With Recurrent Neural Networks", 2013
// (centered); Kingma, Ba, "Adam: A Method for Stochastic Optimization", 2015;
// Reddi, Kale, Kumar, "On the Convergence of Adam and Beyond", 2018 (AMSGrad);
// Loshchilov, Hutter, "Decoupled Weight Decay Regularization", 2019; McMahan et
// al., "Ad Click Prediction: a View from the Trenches", 2013 (FTRL-proximal);
// You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76
// minutes", 2020 (LAMB, φ without bounds). ε stands outside the root, as in
// PyTorch.
//
// In ftrl parameters follow from z and n alone; it is for those that start from
// 0, others come near 0 at their first update.
//
// step is the 0-based step of the run. total 0 means that the step had no
// examples: everything stays as it was. slots are those of Rule.Slots, each as
// long as p. Zero settings take their defaults; the rule must be valid.
//
// Every element depends on its own past only, so applying Dense to ranges of
// an array gives the bits that applying it to the whole gives; but for lamb,
// which must be given all of a parameter. Arithmetic is in T, in the order
// written, without fused multiply-add: machines agree (with an LRPower other
// than -.5, as far as their math.Pow does). It allocates nothing; one pass over
// p, g and the slots, two for lamb. Slices whose lengths differ are a
// programmer error and panic.
func Dense[T Float](r Rule, step int64, total float64, p, g []T, slots [][]T) {
	if total == 0 {
		return
	}
	k := newKernel[T](r, step, total)
	k.check(len(p), len(g), slots)
	if k.kind == LAMB {
		var n norms
		k.lambMoments(p, g, slots[0], slots[1], &n)
		k.trust(&n)
	}
	k.apply(p, g, slots, 0, len(p))
}

// Rows is Dense for the rows of a table that a step touched: row i of g, of
// dim elements, belongs to row at[i] of p and of the slots, which are shaped
// like p. The entries of at must be distinct. Rows that at does not name keep
// their values and their slots (lazy update). The touched rows get the bits
// that Dense would give them; but in lamb the norms are those of the touched
// rows together, added row by row in the order of at.
func Rows[T Float](r Rule, step int64, total float64, p []T, at []int, dim int, g []T, slots [][]T) {
	if total == 0 {
		return
	}
	k := newKernel[T](r, step, total)
	k.check(len(p), len(p), slots)
	if len(g) != len(at)*dim {
		panic(fmt.Sprintf("optim: %d gradient elements for %d rows of %d", len(g), len(at), dim))
	}
	if k.kind == LAMB {
		var n norms
		for i, row := range at {
			lo, hi := row*dim, (row+1)*dim
			k.lambMoments(p[lo:hi], g[i*dim:(i+1)*dim], slots[0][lo:hi], slots[1][lo:hi], &n)
		}
		k.trust(&n)
	}
	if dim < packedDim && r.Custom == nil && k.kind != LAMB {
		k.packed(p, at, dim, g, slots)
		return
	}
	k.rows(p, at, dim, g, slots)
}

// Rows of a large table lie at random places, each a wait for memory unless it is
// fetched before its turn: fetchBlock at a time, as many as a core waits for at
// once, and fetchAhead early.
const (
	fetchBlock = 8
	fetchAhead = 32
)

func (k *kernel[T]) rows(p []T, at []int, dim int, g []T, slots [][]T) {
	for from := 0; from < len(at); from += fetchBlock {
		next := at[min(len(at), from+fetchAhead):min(len(at), from+fetchAhead+fetchBlock)]
		vector.Fetch(singles(p), next, dim)
		for _, s := range slots {
			vector.Fetch(singles(s), next, dim)
		}
		for i := from; i < min(len(at), from+fetchBlock); i++ {
			k.apply(p, g[i*dim:(i+1)*dim], slots, at[i]*dim, (at[i]+1)*dim)
		}
	}
}

// Rows shorter than packedDim are no work for vectors: many are gathered,
// updated as one, and put back.
const (
	packedDim = 8
	packed    = 128 // elements at a time
)

func (k *kernel[T]) packed(p []T, at []int, dim int, g []T, slots [][]T) {
	var work [1 + slotsOfRules][packed]T
	var s [slotsOfRules][]T
	for len(at) > 0 && dim > 0 {
		rows := min(len(at), packed/dim)
		n := rows * dim
		gather(work[0][:n], p, at[:rows], dim)
		for j, slot := range slots {
			s[j] = work[1+j][:n]
			gather(s[j], slot, at[:rows], dim)
		}
		k.update(work[0][:n], g[:n], &s)
		scatter(p, work[0][:n], at[:rows], dim)
		for j, slot := range slots {
			scatter(slot, s[j], at[:rows], dim)
		}
		at, g = at[rows:], g[n:]
	}
}

// gather copies short rows of a table to one after the other; scatter back.

func gather[T Float](to, table []T, at []int, dim int) {
	if dim == 1 {
		for i, row := range at {
			to[i] = table[row]
		}
		return
	}
	for i, row := range at {
		from := table[row*dim : (row+1)*dim]
		for j, v := range from {
			to[i*dim+j] = v
		}
	}
}

func scatter[T Float](table, from []T, at []int, dim int) {
	if dim == 1 {
		for i, row := range at {
			table[row] = from[i]
		}
		return
	}
	for i, row := range at {
		to := table[row*dim : (row+1)*dim]
		for j := range to {
			to[j] = from[i*dim+j]
		}
	}
}

// kernel is a rule with its scalars worked out for one step, in float64 and
// then rounded to T once. Each of its loops is one rule and touches nothing but
// scalars of the kernel and the slices it is given, so that vector code can
// stand in for it.
type kernel[T Float] struct {
	kind     Kind
	nesterov bool
	centered bool
	slots    int
	mean     mean[T]
	lr       float64 // the rate
	rate     T       // adagrad: lr/(1+LRDecay·step); adam: lr/(1-β₁ᵗ); lamb: lr·φ
	decay    T       // lr·wd; lamb: wd
	mu       T
	damp     T // 1-dampening
	eps      T
	blend1   T // 1-β₁; rmsprop: 1-ρ
	beta2    T // rmsprop: ρ
	blend2   T // 1-β₂
	root2    T // √(1-β₂ᵗ)
	unbias   T // lamb: 1/(1-β₁ᵗ)
	l1, l2   T // ftrl
	beta     T // ftrl
	power    float64
	vec      vector.Coefs // the same, for vector code in float32
	rule     Rule         // of a custom rule, with the step
	step     int64
}

// mean turns a gradient sum into what a rule follows.
type mean[T Float] struct{ total, clip, l2 T }

// of is the clipped mean of the gradient sum g with the weight decay of p.
func (s *mean[T]) of(g, p T) T {
	m := g / s.total
	if s.clip > 0 {
		m = max(min(m, s.clip), -s.clip)
	}
	return m + T(s.l2*p)
}

func newKernel[T Float](r Rule, step int64, total float64) kernel[T] {
	r = r.Defaults()
	lr := r.Rate(step)
	k := kernel[T]{
		kind: r.Kind, nesterov: r.Nesterov, centered: r.Centered,
		mean: mean[T]{total: T(total), clip: T(r.ClipValue), l2: T(r.L2)},
		lr:   lr, rate: T(lr), decay: T(lr * r.WeightDecay), mu: T(r.Momentum), damp: T(1 - r.Dampening), eps: T(r.Eps),
		slots: r.slotCount(),
	}
	if r.Custom != nil {
		k.rule, k.step = r, step
		return k
	}
	t := float64(step + 1)
	switch r.Kind {
	case SGD, Momentum:
	case Adagrad:
		k.rate = T(lr / (1 + float64(r.LRDecay*float64(step))))
	case RMSProp:
		k.beta2, k.blend1, k.blend2 = T(r.Decay), T(1-r.Decay), T(1-r.Decay)
	case Adam, AdamW, LAMB:
		k.blend1, k.beta2, k.blend2 = T(1-r.Beta1), T(r.Beta2), T(1-r.Beta2)
		k.root2 = T(math.Sqrt(1 - math.Pow(r.Beta2, t)))
		k.rate = T(lr / (1 - math.Pow(r.Beta1, t)))
		if r.Kind == LAMB {
			k.unbias, k.decay = T(1/(1-math.Pow(r.Beta1, t))), T(r.WeightDecay)
		}
	case FTRL:
		k.mean.l2 = 0
		k.l1, k.l2, k.beta, k.power = T(r.L1), T(r.L2), T(r.Beta), -r.LRPower
	default:
		panic(fmt.Sprintf("optim: unknown rule %q", r.Kind))
	}
	k.vec = k.spread()
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
