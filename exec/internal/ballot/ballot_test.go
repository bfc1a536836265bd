package ballot_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/exec/internal/ballot"
)

// said is what one rank says.
type said struct {
	numbers []float64 // weight, loss, weight, ...
	fault   ballot.Fault
	squares float64
}

// count has ranks 4, 5, ... say something, and counts.
func count(pairs int, squared bool, squares float64, ranks ...said) ballot.Verdict {
	var b *ballot.Ballot
	var all []byte
	var group []int
	for i, s := range ranks {
		b = ballot.New(pairs, squared)
		for k, x := range s.numbers {
			b.Set(k, x)
		}
		b.Close(s.fault, s.squares)
		all, group = append(all, b.Bytes()...), append(group, 4+i)
	}
	return b.Count(all, group, squares)
}

func TestCount(t *testing.T) {
	inf := math.Inf(1)
	good := func(numbers ...float64) said { return said{numbers, ballot.None, 0} }
	for name, c := range map[string]struct {
		got, want ballot.Verdict
	}{
		"sums": {
			count(1, false, 2, good(3, 10), good(4, 20)),
			ballot.Verdict{Weight: 7, Loss: 30, Squares: 2},
		},
		"in the order of the group and the slices": { // 1e16 swallows the 1, but not the 3
			count(2, false, 0, good(1, 1e16, 1, 1), good(1, -1e16, 1, 3)),
			ballot.Verdict{Weight: 4, Loss: 3},
		},
		"fewer slices than others": {
			count(2, true, 0, good(1, 2, 3, 4), good(5, 6)),
			ballot.Verdict{Weight: 9, Loss: 12},
		},
		"no rows": {
			count(1, false, 0, good(0, 0), good(0, 0)),
			ballot.Verdict{Skipped: true},
		},
		"own loss": { // of the others' gradients, which it spoiled, nobody is accused
			count(1, false, 0, said{[]float64{3, 1}, ballot.Grad, 0}, said{[]float64{4, inf}, ballot.Own, 0}),
			ballot.Verdict{Loss: 1, Skipped: true, Faulty: []int{5}},
		},
		"own weight": {
			count(1, false, 0, said{[]float64{math.NaN(), 1}, ballot.Own, 0}, good(4, 2)),
			ballot.Verdict{Loss: 2, Skipped: true, Faulty: []int{4}},
		},
		"gradient": {
			count(1, false, 0, good(3, 1), said{[]float64{4, 2}, ballot.Grad, 0}),
			ballot.Verdict{Loss: 3, Skipped: true, Overflow: true, Faulty: []int{5}},
		},
		"squares": { // those that ranks say are summed first
			count(1, true, 1e16, said{[]float64{3, 1}, ballot.None, 1}, said{[]float64{4, 2}, ballot.None, 1}),
			ballot.Verdict{Weight: 7, Loss: 3, Squares: 1e16 + 2},
		},
		"squares that no float64 holds": {
			count(1, true, 0, said{[]float64{3, 1}, ballot.None, 1e308}, said{[]float64{4, 2}, ballot.None, 1e308}),
			ballot.Verdict{Loss: 3, Squares: inf, Skipped: true, Faulty: []int{4, 5}},
		},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
