package compressed_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// obvious is the collective in one process, in the words of its comment. first and second are
// residuals, of all ranks and of all sums, nil without feedback.
func obvious(c compress.Codec, in [][]float32, first [][]float32, second []float32) []float32 {
	n, elems := len(in), len(in[0])
	out := make([]float32, elems)
	lossy := func(v []float32) []float32 {
		b, d := make([]byte, c.Bytes(len(v))), make([]float32, len(v))
		c.Encode(b, v)
		if err := c.Decode(d, b); err != nil {
			panic(err)
		}
		return d
	}
	for j := range n {
		lo, hi := collective.Bound(j, n, elems), collective.Bound(j+1, n, elems)
		total := make([]float32, hi-lo)
		for i := range n {
			part := slices.Clone(in[i][lo:hi])
			for k := range part {
				if first != nil {
					part[k] += first[i][lo+k]
				}
			}
			given := part
			if i != j {
				given = lossy(part)
			}
			for k := range part {
				if i == 0 {
					total[k] = given[k]
				} else {
					total[k] += given[k]
				}
				if first != nil {
					first[i][lo+k] = part[k] - given[k]
				}
			}
		}
		for k := range total {
			if second != nil {
				total[k] += second[lo+k]
			}
		}
		given := total
		if n > 1 {
			given = lossy(total)
		}
		for k := range total {
			out[lo+k] = given[k]
			if second != nil {
				second[lo+k] = total[k] - given[k]
			}
		}
	}
	return out
}

// Every codec, with feedback and without, gives all ranks the bits of the obvious sum, run
// after run, in the bytes of the formula; the residuals are those too.
func TestAllReduceAgainstTheObvious(t *testing.T) {
	for _, name := range names() {
		for n := 1; n <= 5; n++ {
			for _, elems := range []int{0, 1, 3, 17, 1000} {
				for _, feedback := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) { checkAllReduce(t, name, n, elems, feedback) })
				}
			}
		}
	}
}

func checkAllReduce(t *testing.T, name string, n, elems int, feedback bool) {
	const rounds = 3
	w := newWorld(n, uneven())
	defer w.close()
	got := make([][rounds][]float32, n)
	states := make([]compress.State, n)
	must(t, w.each(func(i int) error {
		a, err := compressed.NewAllReduce(w.party(i), codec(t, name), elems, feedback)
		for r := 0; err == nil && r < rounds; r++ {
			got[i][r] = vector(i, r, elems)
			err = a.Run(t.Context(), tensor.From(got[i][r], elems))
		}
		if err != nil {
			return err
		}
		states[i] = a.State()
		return checkBytes(w, codec(t, name), i, elems, rounds, a)
	}))
	var first [][]float32
	var second []float32
	if feedback {
		second = make([]float32, elems)
		for range n {
			first = append(first, make([]float32, elems))
		}
	}
	for r := range rounds {
		var in [][]float32
		for i := range n {
			in = append(in, vector(i, r, elems))
		}
		want := obvious(codec(t, name), in, first, second)
		for i := range n {
			if !slices.Equal(got[i][r], want) {
				t.Fatalf("%s over %d, %d elements, feedback %v: round %d: index %d has %v, want %v", name, n, elems, feedback, r, i, got[i][r], want)
			}
		}
	}
	for i, s := range states {
		if feedback && (!slices.Equal(s.First, first[i]) || !slices.Equal(s.Second, second[s.Lo:s.Lo+len(s.Second)])) {
			t.Fatalf("%s over %d, %d elements: index %d has other residuals", name, n, elems, i)
		}
	}
}

// checkBytes compares what the transport counted with the formulas: sent E - E_i + (n-1) E_i,
// received the same of the others' view.
func checkBytes(w *world, c compress.Codec, i, elems, rounds int, a sum) error {
	n := len(w.group)
	size := func(j int) int64 {
		return int64(c.Bytes(collective.Bound(j+1, n, elems) - collective.Bound(j, n, elems)))
	}
	var all int64
	for j := range n {
		all += size(j)
	}
	each := all + int64(n-2)*size(i)
	if n == 1 {
		each = 0
	}
	st := w.net.Endpoint(w.group[i]).Stats()
	if st.BytesSent != int64(rounds)*each || st.BytesReceived != int64(rounds)*each || a.Bytes() != 2*each {
		return fmt.Errorf("%v of %d elements: moved %d/%d in %d runs, says %d, want %d each way a run",
			c, elems, st.BytesSent, st.BytesReceived, rounds, a.Bytes(), each)
	}
	if r := a.Report(); r.Bytes != int64(rounds)*a.Bytes() || r.Runs != int64(rounds) {
		return fmt.Errorf("report of %d runs: %+v", rounds, r)
	}
	return nil
}

// For chunks of 64 KiB and up, one bit an element moves at most 1/25 of the bytes of float32
// in a ring, as the transport counts them.
func TestOneBitBytes(t *testing.T) {
	one, err := compress.NewOneBit(512)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 4} {
		for _, elems := range []int{n * 16 << 10, n*16<<10 + 777, n * 100_000} {
			w := newWorld(n, mem.Options{})
			must(t, w.each(func(i int) error {
				a, err := compressed.NewAllReduce(w.party(i), one, elems, true)
				if err != nil {
					return err
				}
				if err := a.Run(t.Context(), tensor.From(vector(i, 0, elems), elems)); err != nil {
					return err
				}
				st := w.net.Endpoint(w.group[i]).Stats()
				r := a.Report()
				if moved := st.BytesSent + st.BytesReceived; moved*25 > r.Plain || moved != r.Bytes || r.Saved() < .96 {
					return fmt.Errorf("%d elements over %d: moved %d of %d bytes; report %+v", elems, n, moved, r.Plain, r)
				}
				if r.Input == 0 || r.First == 0 || r.Second == 0 || r.Relative() > 2 {
					return fmt.Errorf("report: %+v", r)
				}
				return nil
			}))
			w.close()
		}
	}
}

// PowerSGD moves the bytes of two ring all-reduces of its factors.
func TestPowerSGDBytes(t *testing.T) {
	const elems = 3 + 20*30 + 5
	for n := 1; n <= 4; n++ {
		w := newWorld(n, mem.Options{})
		m := []compress.Matrix{{Lo: 3, Rows: 30, Cols: 20}}
		outs := make([][]float32, n)
		must(t, w.each(func(i int) error {
			s, err := compressed.NewPowerSGD(w.party(i), elems, 2, m)
			if err != nil {
				return err
			}
			for r := range 2 {
				outs[i] = vector(i, r, elems)
				if err := s.Run(t.Context(), tensor.From(outs[i], elems)); err != nil {
					return err
				}
			}
			var want, in int64
			if n > 1 {
				for _, e := range []int{2*30 + 8, 2 * 20} {
					sent, received := collective.RingAllReduce(n).Traffic(i, e, 4)
					want, in = want+sent+received, in+received+128 // an opening
				}
			}
			st := w.net.Endpoint(w.group[i]).Stats()
			// What it has sent may be under way yet.
			if st.BytesReceived != 2*in || s.Bytes() != want || s.Report().Bytes != 2*want {
				return fmt.Errorf("moved %d/%d in two runs, says %d, want %d a run", st.BytesSent, st.BytesReceived, s.Bytes(), want)
			}
			return nil
		}))
		for i := range outs {
			if !slices.Equal(outs[i], outs[0]) {
				t.Errorf("index %d has other bits", i)
			}
		}
		w.close()
	}
}

// Without a matrix that gains from it PowerSGD is the ring, to the bit.
func TestPowerSGDWithoutMatrices(t *testing.T) {
	const n = 3
	w := newWorld(n, mem.Options{})
	defer w.close()
	must(t, w.each(func(i int) error {
		s, err := compressed.NewPowerSGD(w.party(i), elems, 2, []compress.Matrix{{Rows: 3, Cols: 3}})
		if err != nil {
			return err
		}
		p := w.party(i)
		p.Tag++ // what one sum has posted is not the other's
		r, err := collective.NewRunner(p, collective.RingAllReduce(n), tensor.F32, elems)
		if err != nil {
			return err
		}
		got, want := vector(i, 0, elems), vector(i, 0, elems)
		if err := errors.Join(s.Run(t.Context(), tensor.From(got, elems)), r.Run(t.Context(), tensor.From(want, elems))); err != nil {
			return err
		}
		if !slices.Equal(got, want) || s.Bytes() != r.Bytes() {
			return fmt.Errorf("another sum, or %d bytes where the ring moves %d", s.Bytes(), r.Bytes())
		}
		return nil
	}))
}
