package compressed_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/transport/mem"
)

// A value of one rank that is not finite is seen by all, and the step leaves no trace; so does
// one that is reverted: the steps after are those of a run that never had it.
func TestSkippedStepsLeaveNoTrace(t *testing.T) {
	const n = 3
	for _, kind := range kinds() {
		w, undisturbed := newWorld(n, mem.Options{}), newWorld(n, mem.Options{})
		got, want := sums(t, w, kind, elems), sums(t, undisturbed, kind, elems)
		step(t, w, got, 1, nil)
		step(t, undisturbed, want, 1, nil)
		before := snapshot(got)
		for at := 0; at < elems; at += 50 {
			for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
				out := step(t, w, got, 2, func(i int, v []float32) {
					if i == at%n {
						v[at] = float32(bad)
					}
				})
				for i := range out {
					if compress.Finite(out[i]) {
						t.Fatalf("%s: index %d does not see %v at %d", kind, i, bad, at)
					}
				}
				if !equal(snapshot(got), before) {
					t.Fatalf("%s: %v at %d has left a trace", kind, bad, at)
				}
			}
		}
		step(t, w, got, 3, nil)
		if equal(snapshot(got), before) {
			t.Fatalf("%s: a step changes no residual", kind)
		}
		for range 2 {
			for i := range got {
				got[i].Revert()
			}
		}
		if !equal(snapshot(got), before) {
			t.Fatalf("%s: a reverted step has left a trace", kind)
		}
		a, b := step(t, w, got, 4, nil), step(t, undisturbed, want, 4, nil)
		if !slices.EqualFunc(a, b, slices.Equal) {
			t.Errorf("%s: the step after is another one", kind)
		}
		if r := got[0].Report(); r.Runs != 21 || r.Skipped != 19 {
			t.Errorf("%s: report %+v", kind, r)
		}
		w.close()
		undisturbed.close()
	}
}

// What is left to be made up for goes on to a group of another size, and a rank alone gives
// it all out. A group of the same size goes on as if nothing had happened.
func TestRestore(t *testing.T) {
	for _, kind := range kinds() {
		for _, before := range []int{1, 2, 4} {
			for _, after := range []int{1, 2, 3, 4, 5} {
				old := newWorld(before, mem.Options{})
				was := sums(t, old, kind, elems)
				for round := range 3 {
					step(t, old, was, round, nil)
				}
				states := snapshot(was)
				w := newWorld(after, mem.Options{})
				now := sums(t, w, kind, elems)
				step(t, w, now, 9, nil) // of another life
				for i := range now {
					if err := now[i].Restore(states); err != nil {
						t.Fatal(err)
					}
					now[i].Revert() // nothing to undo
				}
				off := compare(totals(states), totals(snapshot(now)))
				if off > 1e-5 {
					t.Errorf("%s: %d ranks to %d: the total residual is off by %v", kind, before, after, off)
				}
				switch after {
				case before:
					if a, b := step(t, old, was, 4, nil), step(t, w, now, 4, nil); !slices.EqualFunc(a, b, slices.Equal) {
						t.Errorf("%s over %d: goes on otherwise", kind, after)
					}
				case 1:
					out := step(t, w, now, 4, func(_ int, v []float32) { clear(v) })[0]
					var left []float64
					for _, x := range out {
						left = append(left, float64(x))
					}
					if d := compare(left, totals(states)); d > 1e-5 {
						t.Errorf("%s: %d ranks to one: gives out what is off by %v", kind, before, d)
					}
					if compress.Norm(now[0].State().First) != 0 || compress.Norm(now[0].State().Second) != 0 {
						t.Errorf("%s: keeps residuals though alone", kind)
					}
				}
				old.close()
				w.close()
			}
		}
	}
}

// Over many steps all ranks together get the sum of all vectors, less the last residuals.
func TestNothingIsLost(t *testing.T) {
	const n, rounds = 4, 40
	for _, kind := range kinds() {
		w := newWorld(n, mem.Options{})
		s := sums(t, w, kind, elems)
		in, out := make([]float64, elems), make([]float64, elems)
		for round := range rounds {
			for i := range n {
				for k, x := range vector(i, round, elems) {
					in[k] += float64(x)
				}
			}
			for k, x := range step(t, w, s, round, nil)[n-1] {
				out[k] += float64(x)
			}
		}
		for k, x := range totals(snapshot(s)) {
			out[k] += x
		}
		if d := compare(in, out); d > 1e-4 {
			t.Errorf("%s: %v is lost of an element", kind, d)
		}
		w.close()
	}
}
