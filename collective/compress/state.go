package compress

import (
	"errors"
	"fmt"
)

// ErrState says that the state of a group cannot be what a rank had or needs.
var ErrState = errors.New("compress: state does not fit")

// State is what one rank of a compressed collective remembers from step to step, and a
// checkpoint must keep.
//
// A group of another size takes it over so that the total residual stays what it was: of
// First each old rank's goes to one new rank (Heir), which adds up what it is given;
// Second is cut anew by range; Warm is the same on all ranks.
type State struct {
	// First is the residual of this rank's own vectors, of all elements.
	First []float32
	// Second is the residual of sums, of the elements from Lo on that this rank sums. Those
	// of all ranks tile the vector. Empty where nothing is encoded twice.
	Second []float32
	Lo     int
	// Warm is what the next step begins with (LowRank). It is the same on all ranks.
	Warm []float32
}

// Heir is the rank of a group of n that takes over the First of rank old.
func Heir(old, n int) int { return old % n }

// Restore sets a residual to the share of rank index of n in what the ranks of another
// group, of any size, had. first is as long as the vector, second are the elements from lo
// on. Of the states, given in the order of the old ranks, only what falls to this rank
// is read: the others may be empty. No states at all are zeros.
//
// Where several residuals are added up the total is that of before within rounding,
// otherwise exactly. On an error nothing has changed.
func Restore(first, second []float32, lo, index, n int, old []State) error {
	if err := restorable(first, second, lo, index, n, old); err != nil {
		return err
	}
	clear(first)
	clear(second)
	for i := range old {
		s := &old[i]
		switch {
		case i == index: // the first that is added: as it is, also where it is -0
			copy(first, s.First)
		case Heir(i, n) == index:
			for k, x := range s.First {
				first[k] += x
			}
		}
		from, to := overlap(s, lo, len(second))
		if from < to {
			copy(second[from-lo:to-lo], s.Second[from-s.Lo:])
		}
	}
	return nil
}

// overlap is the elements of a state's Second that fall to n elements from lo on.
func overlap(s *State, lo, n int) (from, to int) {
	return max(lo, s.Lo), min(lo+n, s.Lo+len(s.Second))
}

// restorable checks that what this rank needs is there.
func restorable(first, second []float32, lo, index, n int, old []State) error {
	covered, at := 0, 0
	for i := range old {
		s := &old[i]
		if Heir(i, n) == index && len(s.First) != len(first) {
			return fmt.Errorf("%w: old rank %d has a residual of %d elements, want %d", ErrState, i, len(s.First), len(first))
		}
		from, to := overlap(s, lo, len(second))
		if from >= to {
			continue
		}
		if from < at {
			return fmt.Errorf("%w: old rank %d and one before it both have element %d of the sum", ErrState, i, from)
		}
		at = to
		covered += to - from
	}
	if len(old) > 0 && covered != len(second) {
		return fmt.Errorf("%w: the old ranks have residuals of %d of the %d elements that this rank sums", ErrState, covered, len(second))
	}
	return nil
}

// Report says what compression saved so far, and what it lost.
type Report struct {
	// Runs are the runs of the collective; Skipped those whose sum was not finite, or that
	// were reverted.
	Runs, Skipped int64
	// Bytes is what this rank sent and received, Plain what it would have in a ring
	// all-reduce of float32.
	Bytes, Plain int64
	// Input is the norm of this rank's vector in the last run whose sum was finite; First and
	// Second are those of the residuals (see State), or without feedback of what was lost in
	// that run.
	Input, First, Second float64
}

// Saved is the part of the bytes that were not moved.
func (r *Report) Saved() float64 {
	if r.Plain == 0 {
		return 0
	}
	return 1 - float64(r.Bytes)/float64(r.Plain)
}

// Relative is the norm of this rank's residual as a multiple of that of its last vector:
// about how many steps what was lost waits.
func (r *Report) Relative() float64 {
	if r.Input == 0 {
		return 0
	}
	return r.First / r.Input
}
