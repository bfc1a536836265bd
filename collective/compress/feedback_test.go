package compress_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/collective/compress"
)

// Over many steps, what was decoded and what is left are what went in, within the rounding of
// each step, for vectors that are encoded in ranges.
func TestFeedbackLosesNothing(t *testing.T) {
	for _, c := range codecs(t) {
		rapid.Check(t, func(rt *rapid.T) {
			n := rapid.IntRange(1, 5000).Draw(rt, "n")
			cut := rapid.IntRange(0, n).Draw(rt, "cut")
			r := source(rapid.Uint64().Draw(rt, "seed"))
			steps := rapid.IntRange(1, 30).Draw(rt, "steps")
			f := compress.NewFeedback(c, n)
			in, out, size := make([]float64, n), make([]float64, n), make([]float64, n)
			for range steps {
				v := normal(r, n)
				for _, b := range [][2]int{{0, cut}, {cut, n}} {
					part := v[b[0]:b[1]]
					enc, dec := make([]byte, c.Bytes(len(part))), make([]float32, len(part))
					if got := f.Encode(enc, b[0], part); got != len(enc) {
						rt.Fatalf("%v: %d bytes, want %d", c, got, len(enc))
					}
					if err := c.Decode(dec, enc); err != nil {
						rt.Fatal(err)
					}
					for i, x := range part {
						in[b[0]+i] += float64(x)
						out[b[0]+i] += float64(dec[i])
						size[b[0]+i] += math.Abs(float64(x)) + math.Abs(float64(dec[i])) + math.Abs(float64(f.Residual()[b[0]+i]))
					}
				}
				if got, want := f.Input(), compress.Norm(v); math.Abs(got-want) > 1e-9*want {
					rt.Fatalf("%v: input %v, want %v", c, got, want)
				}
				f.Keep()
			}
			for i, x := range f.Residual() {
				if d := math.Abs(in[i] - out[i] - float64(x)); d > size[i]*0x1p-23 {
					rt.Fatalf("%v: element %d: in %v, out %v, left %v: %v is lost", c, i, in[i], out[i], x, d)
				}
			}
		})
	}
}

// Encoding in pieces that stay in the cache gives the bytes of the whole.
func TestFeedbackBytesAreThoseOfTheWhole(t *testing.T) {
	for _, c := range codecs(t) {
		const n = 9999
		f := compress.NewFeedback(c, n)
		last := make([]float32, n)
		for round := range 3 {
			v := normal(source(uint64(round)), n)
			e := slices.Clone(v)
			for i, x := range last {
				e[i] += x
			}
			want, got := make([]byte, c.Bytes(n)), make([]byte, c.Bytes(n))
			c.EncodeRest(want, e)
			f.Encode(got, 0, v)
			f.Keep()
			if string(got) != string(want) || !slices.Equal(f.Residual(), e) {
				t.Fatalf("%v: round %d differs", c, round)
			}
			last = e
		}
	}
}

// A step that is not kept leaves no trace, nor does one that is reverted.
func TestFeedbackKeepsAndReverts(t *testing.T) {
	c := codecs(t)[3]
	const n = 200
	f := compress.NewFeedback(c, n)
	enc := make([]byte, c.Bytes(n))
	step := func(seed uint64) { f.Encode(enc, 0, normal(source(seed), n)) }
	step(1)
	f.Keep()
	one := slices.Clone(f.Residual())
	if compress.Norm(one) == 0 {
		t.Fatal("nothing was lost: the test shows nothing")
	}
	same := func(what string, want bool) {
		t.Helper()
		if got := slices.Equal(f.Residual(), one); got != want {
			t.Errorf("%s: residual as before: %v", what, got)
		}
	}
	v := normal(source(2), n)
	v[7] = float32(math.NaN())
	f.Encode(enc, 0, v)
	f.Drop()
	same("dropped", true)
	if f.Revert() {
		t.Error("there was something to revert after a drop")
	}
	same("reverted what was dropped", true)
	step(3)
	f.Keep()
	same("kept", false)
	if !f.Revert() {
		t.Error("there was nothing to revert")
	}
	same("reverted", true)
	if f.Revert() {
		t.Error("reverted twice")
	}
	same("reverted twice", true)
	step(4)
	f.Keep()
	step(5)
	if f.Revert() {
		t.Error("reverted the step before the one in work")
	}
	f.Drop()
	step(6)
	f.Keep()
	f.Drop() // as after a Restore: what was kept is of another life
	if f.Revert() {
		t.Error("reverted what was kept before a drop")
	}
	whole := make([]float32, n)
	copy(one, f.Residual())
	f.Add(whole, 0)
	f.Keep()
	if !slices.Equal(whole, one) || compress.Norm(f.Residual()) != 0 {
		t.Error("a range that is not encoded has not taken the residual with it")
	}
}

// tiles is the state of n ranks that hold whole numbers, so that their sums are exact.
func tiles(n, elems int) []compress.State {
	out := make([]compress.State, n)
	for i := range out {
		lo, hi := i*elems/n, (i+1)*elems/n
		s := &out[i]
		s.First, s.Second, s.Lo = make([]float32, elems), make([]float32, hi-lo), lo
		for k := range s.First {
			s.First[k] = float32((i*31+k*7)%23 - 11)
		}
		for k := range s.Second {
			s.Second[k] = float32((lo+k)%19 - 9)
		}
	}
	return out
}

// total is the sum of all residuals, by element.
func total(states []compress.State, elems int) []float32 {
	sum := make([]float32, elems)
	for _, s := range states {
		for k, x := range s.First {
			sum[k] += x
		}
		for k, x := range s.Second {
			sum[s.Lo+k] += x
		}
	}
	return sum
}

// Whatever the sizes of the groups, what was left to be made up for is the same after.
func TestRestoreKeepsTheTotal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before, after := rapid.IntRange(1, 9).Draw(rt, "before"), rapid.IntRange(1, 9).Draw(rt, "after")
		elems := rapid.IntRange(0, 40).Draw(rt, "elems")
		old := tiles(before, elems)
		fresh := make([]compress.State, after)
		for i := range fresh {
			lo, hi := i*elems/after, (i+1)*elems/after
			s := compress.State{First: make([]float32, elems), Second: make([]float32, hi-lo), Lo: lo}
			for k := range s.First {
				s.First[k] = 77 // of another life
			}
			// Only what falls to this rank has to be read.
			mine := slices.Clone(old)
			for j := range mine {
				if compress.Heir(j, after) != i {
					mine[j].First = nil
				}
				if mine[j].Lo >= hi || mine[j].Lo+len(mine[j].Second) <= lo {
					mine[j].Second = nil
				}
			}
			if err := compress.Restore(s.First, s.Second, lo, i, after, mine); err != nil {
				rt.Fatal(err)
			}
			fresh[i] = s
		}
		if d := cmp.Diff(total(old, elems), total(fresh, elems)); d != "" {
			rt.Fatalf("%d ranks to %d: %s", before, after, d)
		}
		if before == after {
			if d := cmp.Diff(old, fresh); d != "" {
				rt.Fatalf("the same group has another state: %s", d)
			}
		}
	})
}

func TestRestoreRefuses(t *testing.T) {
	const elems = 10
	for name, spoil := range map[string]func(s []compress.State){
		"residual of another length": func(s []compress.State) { s[0].First = s[0].First[:9] },
		"missing residual":           func(s []compress.State) { s[1].First = nil },
		"gap":                        func(s []compress.State) { s[1].Second = s[1].Second[:2] },
		"overlap":                    func(s []compress.State) { s[1].Lo-- },
	} {
		old := tiles(2, elems)
		first, second := make([]float32, elems), make([]float32, elems)
		first[3], second[3] = 5, 6
		spoil(old)
		if err := compress.Restore(first, second, 0, 0, 1, old); !errors.Is(err, compress.ErrState) {
			t.Errorf("%s: %v", name, err)
		}
		if first[3] != 5 || second[3] != 6 {
			t.Errorf("%s: changed all the same", name)
		}
	}
	first, second := []float32{1}, []float32{2}
	if err := compress.Restore(first, second, 0, 0, 1, nil); err != nil || first[0] != 0 || second[0] != 0 {
		t.Errorf("of no states: %v %v %v", err, first, second)
	}
}

func TestReport(t *testing.T) {
	r := compress.Report{Bytes: 25, Plain: 100, Input: 2, First: 3}
	if r.Saved() != .75 || r.Relative() != 1.5 {
		t.Errorf("saved %v, relative %v", r.Saved(), r.Relative())
	}
	r = compress.Report{}
	if r.Saved() != 0 || r.Relative() != 0 {
		t.Errorf("nothing has been done: %v %v", r.Saved(), r.Relative())
	}
}
