package collective_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// group is ranks 10, 9, 8, ... so that an index is never taken for a rank.
func group(n int) []int {
	g := make([]int, n)
	for i := range g {
		g[i] = 10 - i
	}
	return g
}

// world opens a network wide enough for group.
func world(o ...mem.Options) *mem.Network { return mem.NewNetwork(11, o...) }

// uneven gives each pair of ranks a delay of its own, so that ranks run apart.
func uneven(from, to int) mem.Link {
	return mem.Link{Delay: time.Duration(1+(from*7+to*3)%5) * time.Millisecond}
}

// closeAll closes every endpoint.
func closeAll(w *mem.Network) {
	for _, e := range w.Endpoints() {
		_ = e.Close()
	}
}

// each runs f for every rank of a group at the same time and returns the errors.
func each(n int, f func(i int) error) []error {
	errs := make([]error, n)
	done := make(chan int)
	for i := range n {
		go func() {
			errs[i] = f(i)
			done <- i
		}()
	}
	for range n {
		<-done
	}
	return errs
}

func must(t *testing.T, errs []error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("index %d: %v", i, err)
		}
	}
}

// fill gives small whole numbers, whose sums are exact in any order.
func fill(t *tensor.Tensor, i, round int) {
	for k := range t.Elems() {
		v := float64((i*31+k*7+round*13)%101 - 50)
		if t.DType() == tensor.F32 {
			t.F32()[k] = float32(v)
		} else {
			t.F64()[k] = v
		}
	}
}

func at(t *tensor.Tensor, k int) float64 {
	if t.DType() == tensor.F32 {
		return float64(t.F32()[k])
	}
	return t.F64()[k]
}

// want is element k after a run; known is false where it is undefined.
func want(g collective.Goal, inputs []*tensor.Tensor, i, k, n, elems int) (v float64, known bool) {
	chunk := 0
	for collective.Bound(chunk+1, n, elems) <= k {
		chunk++
	}
	switch g {
	case collective.AllReduce, collective.ReduceScatter:
		for _, in := range inputs {
			v += at(in, k)
		}
		return v, g == collective.AllReduce || chunk == i
	case collective.AllGather:
		return at(inputs[chunk], k), true
	case collective.Broadcast:
		return at(inputs[0], k), true
	case collective.Reduce:
		for _, in := range inputs {
			v += at(in, k)
		}
		return v, i == 0
	case collective.Gather:
		return at(inputs[chunk], k), i == 0
	case collective.Scatter:
		return at(inputs[0], k), chunk == i
	case collective.AllToAll, collective.Barrier:
	}
	return 0, false
}

// Every schedule gives what it promises on real buffers, over links that let
// ranks run apart, twice with the same runner; the bytes on the wire are those
// of the formulas. Sizes include fewer elements than ranks and several segments, and
// messages that end within an element.
func TestRunner(t *testing.T) {
	sizes := []int{0, 1, 2, 3, 17, 1000}
	for name, gen := range generators() {
		for n := 1; n <= 6; n++ {
			for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
				for _, elems := range sizes {
					synctest.Test(t, func(t *testing.T) {
						checkRunner(t, gen(n), n, d, elems, 0)
						if n < 5 && elems < 100 {
							checkRunner(t, gen(n), n, d, elems, 131)
						}
					})
				}
			}
		}
		synctest.Test(t, func(t *testing.T) { checkRunner(t, gen(3), 3, tensor.F64, 400_001, 0) })
		synctest.Test(t, func(t *testing.T) { checkRunner(t, gen(4), 4, tensor.F32, 400_001, 0) })
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// openings are the bytes of openings that a rank sends and receives in one run: one a
// partner that anything goes to, or comes from.
func openings(s *collective.Schedule, i, elems int) (sent, received int64) {
	to, from := map[int]bool{}, map[int]bool{}
	some := func(r collective.Range) bool {
		return collective.Bound(r.Lo, s.Chunks, elems) < collective.Bound(r.Hi, s.Chunks, elems)
	}
	for _, st := range s.Ranks[i] {
		if st.To != collective.Nobody && some(st.Send) {
			to[st.To] = true
		}
		if st.From != collective.Nobody && some(st.Recv) {
			from[st.From] = true
		}
	}
	return int64(128 * len(to)), int64(128 * len(from))
}

func checkRunner(t *testing.T, s *collective.Schedule, n int, d tensor.DType, elems, most int) {
	w := world(mem.Options{Link: uneven})
	defer closeAll(w)
	const rounds = 2
	inputs := make([][]*tensor.Tensor, rounds)
	outputs := make([][]*tensor.Tensor, rounds)
	for r := range rounds {
		for i := range n {
			in := tensor.New(d, elems)
			fill(in, i, r)
			inputs[r] = append(inputs[r], in)
			outputs[r] = append(outputs[r], in.Clone())
		}
	}
	g := group(n)
	must(t, each(n, func(i int) error {
		streams := transport.NewMessageStreams(w.Endpoint(g[i]), g[i], g, 5, most)
		run, err := collective.NewRunner(collective.Party{Streams: streams, Group: g, Index: i}, s, d, elems)
		if err != nil {
			return err
		}
		for r := range rounds {
			if err := run.Run(t.Context(), outputs[r][i]); err != nil {
				return err
			}
		}
		if err := streams.Close(); err != nil {
			return err
		}
		sent, received := s.Traffic(i, elems, d.Size())
		toOpen, fromOpen := openings(s, i, elems)
		st := streams.Stats()
		if st.BytesSent != rounds*(sent+toOpen) || st.BytesReceived != rounds*(received+fromOpen) || run.Bytes() != sent+received {
			return fmt.Errorf("moved %d/%d bytes, want %d/%d twice, and openings of %d/%d", st.BytesSent, st.BytesReceived,
				sent, received, toOpen, fromOpen)
		}
		return nil
	}))
	for r := range rounds {
		for i := range n {
			for k := 0; k < elems; k += 1 + elems/5000 {
				v, known := want(s.Goal, inputs[r], i, k, n, elems)
				if got := at(outputs[r][i], k); known && got != v {
					t.Fatalf("%v n=%d %v elems=%d round %d: rank %d element %d is %v, want %v", s.Goal, n, d, elems, r, i, k, got, v)
				}
			}
		}
	}
}

// Rounding must not differ between ranks: the sum of numbers that do not add
// exactly has the same bits everywhere.
func TestAllReduceSameBits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, elems = 5, 501
		w := world(mem.Options{Link: uneven})
		defer closeAll(w)
		bufs := make([]*tensor.Tensor, n)
		g := group(n)
		must(t, each(n, func(i int) error {
			bufs[i] = tensor.New(tensor.F32, elems)
			for k := range elems {
				bufs[i].F32()[k] = 1 / float32(1+i*k+k%7)
			}
			r, err := collective.NewRunner(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, collective.RingAllReduce(n), tensor.F32, elems)
			if err != nil {
				return err
			}
			return r.Run(t.Context(), bufs[i])
		}))
		for i := 1; i < n; i++ {
			if string(bufs[i].Bytes()) != string(bufs[0].Bytes()) {
				t.Errorf("index %d differs from index 0", i)
			}
		}
	})
}

// A rank that does not come is named by who waits for it, and the runner is
// used up; a rank that dies is named with ErrPeerLost.
func TestMissingRankIsNamed(t *testing.T) {
	for _, kill := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := world()
			defer closeAll(w)
			const n, missing = 4, 2
			g := group(n)
			cause := errors.New("out of patience")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
			defer cancel()
			errs := each(n, func(i int) error {
				if i == missing {
					if kill {
						time.Sleep(time.Millisecond)
						w.Kill(g[i])
					}
					return nil
				}
				r, err := collective.NewRunner(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i, Tag: 3}, collective.RingAllReduce(n), tensor.F64, 9)
				if err != nil {
					return err
				}
				buf := tensor.New(tensor.F64, 9)
				err = r.Run(ctx, buf)
				if again := r.Run(ctx, buf); !errors.Is(again, collective.ErrUsedUp) {
					t.Errorf("second run: %v", again)
				}
				return err
			})
			cause2 := cause
			if kill {
				cause2 = transport.ErrPeerLost
			}
			for _, i := range []int{1, 3} { // the neighbours
				named := missing
				if i == 1 && !kill {
					named = 0 // what it sends waits on its way, but what index 0 owes it does not come
				}
				var pe *transport.PeerError
				if !errors.As(errs[i], &pe) || pe.Peer != g[named] || pe.Rank != g[i] || !errors.Is(errs[i], cause2) {
					t.Errorf("kill=%v index %d: %v", kill, i, errs[i])
				}
			}
		})
	}
}

// Two ranks that disagree on the size find out, rather than read half a message.
func TestSizesThatDisagree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world()
		defer closeAll(w)
		g := group(2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := each(2, func(i int) error {
			elems := 10 + 4*i
			r, err := collective.NewRunner(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, collective.RingAllReduce(2), tensor.F64, elems)
			if err != nil {
				return err
			}
			return r.Run(ctx, tensor.New(tensor.F64, elems))
		})
		for i, err := range errs {
			var me *collective.MismatchError
			if !errors.As(err, &me) || me.Rank != g[i] || me.Peer != g[1-i] || me.Mine.Elems != 10+4*i || me.Theirs.Elems != 14-4*i {
				t.Errorf("index %d: %v", i, err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := world()
		defer closeAll(w)
		g := group(2)
		errs := each(2, func(i int) error {
			r, err := collective.NewRunner(collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i}, collective.BinomialBroadcast(2), tensor.F64, 10+4*i)
			if err != nil {
				return err
			}
			return r.Run(t.Context(), tensor.New(tensor.F64, 10+4*i))
		})
		var me *collective.MismatchError
		if errs[0] != nil || !errors.As(errs[1], &me) {
			t.Fatalf("another size: %v", errs)
		}
	})
}

// Memory is received into only where it has been sent: in this schedule the chunk must
// reach the slow rank 2, and what is under way to it is less than the chunk, before
// rank 1's copy lands on it.
func TestEarlyReceiveWaitsForItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world()
		defer closeAll(w)
		r := collective.Range{Lo: 0, Hi: 1}
		s := &collective.Schedule{Goal: collective.Broadcast, N: 3, Chunks: 1, Ranks: [][]collective.Step{
			{{To: 2, Send: r, From: collective.Nobody}, {To: collective.Nobody, From: 1, Recv: r}},
			{{To: 0, Send: r, From: collective.Nobody}},
			{{To: collective.Nobody, From: 0, Recv: r}},
		}}
		g := group(3)
		const elems = 500
		var bufs [3]*tensor.Tensor
		must(t, each(3, func(i int) error {
			bufs[i] = tensor.New(tensor.F64, elems)
			for k := range elems {
				bufs[i].F64()[k] = float64(i)
			}
			run, err := collective.NewRunner(messages(w, g, i, 128), s, tensor.F64, elems)
			if err != nil {
				return err
			}
			if i == 2 {
				time.Sleep(time.Second)
			}
			return run.Run(t.Context(), bufs[i])
		}))
		for k := range elems {
			if bufs[0].F64()[k] != 1 || bufs[2].F64()[k] != 0 {
				t.Fatalf("element %d: rank 0 has %v, rank 2 has %v", k, bufs[0].F64()[k], bufs[2].F64()[k])
			}
		}
	})
}

func TestNewRunnerRefuses(t *testing.T) {
	w := world()
	defer closeAll(w)
	ring := collective.RingAllReduce(2)
	for _, c := range []struct {
		name  string
		party collective.Party
		d     tensor.DType
		elems int
		want  string
	}{
		{"index", collective.Party{Endpoint: w.Endpoint(0), Group: []int{0, 1}, Index: 2}, tensor.F32, 1, "index"},
		{"twice", collective.Party{Endpoint: w.Endpoint(0), Group: []int{1, 1}}, tensor.F32, 1, "twice"},
		{"size", collective.Party{Endpoint: w.Endpoint(0), Group: []int{0, 1, 2}}, tensor.F32, 1, "group of 3"},
		{"type", collective.Party{Endpoint: w.Endpoint(0), Group: []int{0, 1}}, tensor.Invalid, 4, "must be known"},
		{"dynamic", collective.Party{Endpoint: w.Endpoint(0), Group: []int{0, 1}}, tensor.F32, tensor.Dynamic, "must be known"},
		{"endpoint", collective.Party{Group: []int{0, 1}}, tensor.F32, 1, "no endpoint"},
	} {
		if _, err := collective.NewRunner(c.party, ring, c.d, c.elems); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	r, err := collective.NewRunner(collective.Party{Endpoint: w.Endpoint(0), Group: []int{0}}, collective.RingAllReduce(1), tensor.F32, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), tensor.New(tensor.F64, 3)); err == nil {
		t.Error("a buffer of another type was taken")
	}
}

// allocsOf runs op on n ranks in step and returns the allocations a run, over
// all ranks, once warm.
func allocsOf(t *testing.T, n int, op func(i int) func() error) float64 {
	t.Helper()
	starts, ends := make([]chan bool, n), make(chan error, n)
	for i := range n {
		starts[i] = make(chan bool)
		run := op(i)
		go func() {
			for range starts[i] {
				ends <- run()
			}
			ends <- nil
		}()
	}
	round := func() {
		for _, s := range starts {
			s <- true
		}
		for range n {
			if err := <-ends; err != nil {
				t.Error(err)
			}
		}
	}
	for range 20 {
		round()
	}
	a := testing.AllocsPerRun(100, round)
	for _, s := range starts {
		close(s)
	}
	for range n {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	return a
}

func TestWarmRunsAllocateNothing(t *testing.T) {
	const n = 3
	g := group(n)
	w := world()
	defer closeAll(w)
	party := func(i int, tag uint32) collective.Party {
		return collective.Party{Endpoint: w.Endpoint(g[i]), Group: g, Index: i, Tag: tag}
	}
	ops := map[string]func(i int) func() error{
		"all-reduce": func(i int) func() error {
			r, err := collective.NewRunner(party(i, 1), collective.RingAllReduce(n), tensor.F32, 1000)
			buf := tensor.New(tensor.F32, 1000)
			return func() error { return errors.Join(err, r.Run(t.Context(), buf)) }
		},
		"exchange": func(i int) func() error {
			x, err := collective.NewExchange(party(i, 2), 8)
			mine := make([]byte, 8)
			return func() error {
				_, err2 := x.Run(t.Context(), mine)
				return errors.Join(err, err2)
			}
		},
		"rows": func(i int) func() error {
			r, err := collective.NewRows(party(i, 3), tensor.F32, 4)
			keys, rows := tensor.From([]int64{1, int64(2 + i), 9}, 3), tensor.New(tensor.F32, 3, 4)
			outKeys, outRows := tensor.New(tensor.I64, 0), tensor.New(tensor.F32, 0, 4)
			return func() error { return errors.Join(err, r.Run(t.Context(), keys, rows, outKeys, outRows)) }
		},
	}
	for name, op := range ops {
		if a := allocsOf(t, n, op); a != 0 {
			t.Errorf("%s: %v allocations a run", name, a)
		}
	}
}
