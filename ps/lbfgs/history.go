package lbfgs

import (
	"fmt"

	"github.com/gangline/gangline/ps/vector"
)

// guard is how small s.y may be against y.y (Byrd et al. 1995, equation 3.9).
const guard = 0x1p-52

// history holds the names of the pairs and the dot products among them and g.
type history struct {
	pairs []int // slots of the pairs that count, the oldest first
	slots int   // one more than pairs that count: a new one may turn out to be bad
	gram  map[vector.Pair]float64
}

func newHistory(memory int) history {
	return history{slots: memory + 1, gram: map[vector.Pair]float64{}}
}

// Names have one length, so that the size of a command does not depend on which
// slots it happens to name.
func sName(slot int) string { return fmt.Sprintf("s%02d", slot) }
func yName(slot int) string { return fmt.Sprintf("y%02d", slot) }

// spare returns a slot that no pair uses.
func (h *history) spare() int {
	used := make([]bool, h.slots)
	for _, p := range h.pairs {
		used[p] = true
	}
	for i, u := range used {
		if !u {
			return i
		}
	}
	panic("lbfgs: no spare slot")
}

// basis returns the vectors that a direction is made of: s and y of each pair, g.
func (h *history) basis() []string {
	var names []string
	for _, p := range h.pairs {
		names = append(names, sName(p))
	}
	for _, p := range h.pairs {
		names = append(names, yName(p))
	}
	return append(names, "g")
}

// asked returns the dot products that a new pair makes necessary: those of its s
// and y and of the new g with everything, 6k+6 with k older pairs.
func (h *history) asked(slot int) []vector.Pair {
	fresh := []string{sName(slot), yName(slot), "g"}
	var pairs []vector.Pair
	for i, f := range fresh {
		for _, old := range h.basis()[:2*len(h.pairs)] {
			pairs = append(pairs, vector.Pair{f, old})
		}
		for _, g := range fresh[i:] {
			pairs = append(pairs, vector.Pair{f, g})
		}
	}
	return pairs
}

// learn takes the answers.
func (h *history) learn(pairs []vector.Pair, dots []float64) {
	for i, p := range pairs {
		h.gram[p], h.gram[vector.Pair{p[1], p[0]}] = dots[i], dots[i]
	}
}

// admit makes the pair of a slot count, instead of the oldest if there are enough,
// unless it has no curvature.
func (h *history) admit(slot int) bool {
	if !(h.dot(sName(slot), yName(slot)) > guard*h.dot(yName(slot), yName(slot))) {
		return false
	}
	if len(h.pairs) == h.slots-1 {
		h.pairs = append(h.pairs[:0], h.pairs[1:]...)
	}
	h.pairs = append(h.pairs, slot)
	return true
}

func (h *history) drop() { h.pairs = h.pairs[:0] }

func (h *history) dot(a, b string) float64 { return h.gram[vector.Pair{a, b}] }

// direction returns -H g as a combination of the basis: the two-loop recursion on
// coefficients (Chen et al. 2014, algorithm 3). It costs O(m^2).
func (h *history) direction() []vector.Term {
	names := h.basis()
	k := len(h.pairs)
	delta := make([]float64, len(names))
	delta[2*k] = -1
	along := func(name string) (sum float64) { // the vector so far, times that one
		for l, n := range names {
			sum += delta[l] * h.dot(n, name)
		}
		return sum
	}
	alpha := make([]float64, k)
	for i := k - 1; i >= 0; i-- {
		alpha[i] = along(names[i]) / h.dot(names[i], names[k+i])
		delta[k+i] -= alpha[i]
	}
	if k > 0 {
		s, y := names[k-1], names[2*k-1]
		scale := h.dot(s, y) / h.dot(y, y)
		for l := range delta {
			delta[l] *= scale
		}
	}
	for i := range k {
		beta := along(names[k+i]) / h.dot(names[i], names[k+i])
		delta[i] += alpha[i] - beta
	}
	terms := make([]vector.Term, len(names))
	for l, n := range names {
		terms[l] = vector.Term{A: delta[l], V: n}
	}
	return terms
}
