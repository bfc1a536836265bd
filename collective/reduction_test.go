package collective_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/reduce"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// messages are streams of messages of at most most bytes for rank g[i].
func messages(w *mem.Network, g []int, i, most int) collective.Party {
	return collective.Party{Streams: transport.NewMessageStreams(w.Endpoint(g[i]), g[i], g, 5, most), Group: g, Index: i}
}

// small fills b with numbers whose sums and products are exact in every type, in
// any order.
func small(rng *rand.Rand, d tensor.DType, b []byte) {
	words := map[tensor.DType][]uint64{
		tensor.F32:  {0x3f800000, 0xbf800000, 0x40000000, 0x3f000000},
		tensor.F64:  {0x3ff0000000000000, 0xbff0000000000000, 0x4000000000000000, 0x3fe0000000000000},
		tensor.BF16: {0x3f80, 0xbf80, 0x4000, 0x3f00},
		tensor.F16:  {0x3c00, 0xbc00, 0x4000, 0x3800},
		tensor.I32:  {1, 0xffffffff, 2, 3},
		tensor.I64:  {1, 0xffffffffffffffff, 2, 3},
	}[d]
	for i := range b {
		if i%d.Size() == 0 {
			w := words[rng.IntN(4)]
			for k := range d.Size() {
				b[i+k] = byte(w >> (8 * k))
			}
		}
	}
}

// Every reduction of every type, through every way of summing up: all ranks end with
// what the kernel makes of the operands one after the other, to the bit.
func TestReductions(t *testing.T) {
	ways := map[string]func(int) *collective.Schedule{
		"ring": collective.RingAllReduce, "halving": collective.HalvingAllReduce, "doubling": collective.DoublingAllReduce,
		"tree": collective.TreeAllReduce, "hosts": func(n int) *collective.Schedule { return onHosts(n, 2) },
		"scatter": collective.RingReduceScatter, "reduce": collective.BinomialReduce,
	}
	for name, gen := range ways {
		for n := 1; n <= 5; n++ {
			for _, d := range []tensor.DType{tensor.F32, tensor.F64, tensor.BF16, tensor.F16, tensor.I32, tensor.I64} {
				for _, op := range []reduce.Op{reduce.Sum, reduce.Min, reduce.Max, reduce.Prod, reduce.Mean} {
					if op == reduce.Mean && (d == tensor.I32 || d == tensor.I64) {
						continue
					}
					synctest.Test(t, func(t *testing.T) { checkReduction(t, gen(n), n, d, op) })
					if t.Failed() {
						t.Fatalf("%s of %d", name, n)
					}
				}
			}
		}
	}
}

func checkReduction(t *testing.T, s *collective.Schedule, n int, d tensor.DType, op reduce.Op) {
	const elems = 203
	w := world(mem.Options{Link: uneven})
	defer closeAll(w)
	g := group(n)
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	bufs := make([]*tensor.Tensor, n)
	for i := range bufs {
		bufs[i] = tensor.New(d, elems)
		small(rng, d, bufs[i].Bytes())
	}
	k, err := reduce.For(op, d, n)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(bufs[0].Bytes())
	for _, b := range bufs[1:] {
		k.Combine(want, want, b.Bytes())
	}
	k.Scale(want)
	must(t, each(n, func(i int) error {
		p := messages(w, g, i, 133)
		run, err := collective.NewRunner(p, s, d, elems, collective.Options{Reduction: op})
		if err != nil {
			return err
		}
		return errors.Join(run.Run(t.Context(), bufs[i]), p.Streams.Close())
	}))
	for i, b := range bufs {
		lo, hi := 0, elems*d.Size()
		switch {
		case s.Goal == collective.ReduceScatter:
			lo, hi = collective.Bound(i, n, elems)*d.Size(), collective.Bound(i+1, n, elems)*d.Size()
		case s.Goal == collective.Reduce && i > 0:
			continue
		}
		if !bytes.Equal(b.Bytes()[lo:hi], want[lo:hi]) {
			t.Errorf("%v of %v over %d: rank %d differs", op, d, n, i)
		}
	}
}

// Any schedule that a global order of messages makes does what doing them one after the
// other does, whatever overlaps what, and wherever messages end: no byte is sent
// before it is there, and none is overwritten before it is sent.
func TestAnySchedule(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(rt, "ranks")
		chunks := rapid.IntRange(1, 4).Draw(rt, "chunks")
		elems := rapid.IntRange(chunks, 400).Draw(rt, "elements")
		most := rapid.IntRange(128, 400).Draw(rt, "message")
		bufs := make([][]int64, n)
		for i := range bufs {
			for k := range elems {
				bufs[i] = append(bufs[i], int64(i*1000+k))
			}
		}
		want := make([][]int64, n)
		for i := range want {
			want[i] = append(want[i], bufs[i]...)
		}
		s := &collective.Schedule{Goal: collective.AllReduce, N: n, Chunks: chunks, Ranks: make([][]collective.Step, n)}
		for range rapid.IntRange(1, 14).Draw(rt, "messages") {
			draw(rt, s, want)
		}
		synctest.Test(t, func(t *testing.T) {
			w := world(mem.Options{Link: uneven})
			defer closeAll(w)
			g := group(n)
			for _, err := range each(n, func(i int) error {
				p := messages(w, g, i, most)
				r, err := collective.NewRunner(p, s, tensor.I64, elems)
				if err != nil {
					return err
				}
				return errors.Join(r.Run(t.Context(), tensor.From(bufs[i], elems)), p.Streams.Close())
			}) {
				if err != nil {
					rt.Fatal(err)
				}
			}
		})
		for i := range n {
			for k := range elems {
				if bufs[i][k] != want[i][k] {
					rt.Fatalf("rank %d element %d is %d, want %d", i, k, bufs[i][k], want[i][k])
				}
			}
		}
	})
}

// draw appends a message, or an exchange of two, and does it to want.
func draw(rt *rapid.T, s *collective.Schedule, want [][]int64) {
	a := rapid.IntRange(0, s.N-1).Draw(rt, "from")
	b := (a + rapid.IntRange(1, s.N-1).Draw(rt, "distance")) % s.N
	span := func(what string) collective.Range {
		lo := rapid.IntRange(0, s.Chunks-1).Draw(rt, what)
		return collective.Range{Lo: lo, Hi: rapid.IntRange(lo+1, s.Chunks).Draw(rt, what+" end")}
	}
	action := collective.Action(rapid.IntRange(0, 1).Draw(rt, "action"))
	there, back := span("there"), span("back")
	do := func(src []int64, to int, r collective.Range) {
		elems := len(want[to])
		for k := collective.Bound(r.Lo, s.Chunks, elems); k < collective.Bound(r.Hi, s.Chunks, elems); k++ {
			if action == collective.Add {
				want[to][k] += src[k]
			} else {
				want[to][k] = src[k]
			}
		}
	}
	kind := rapid.IntRange(0, 2).Draw(rt, "kind")
	if kind == 1 {
		back, action = there, collective.Add // of a range that both add to
	}
	apart := there.Hi <= back.Lo || back.Hi <= there.Lo
	before := append([]int64(nil), want[b]...)
	do(want[a], b, there)
	if kind == 0 || kind == 2 && !apart {
		s.Ranks[a] = append(s.Ranks[a], collective.Step{To: b, Send: there, From: collective.Nobody})
		s.Ranks[b] = append(s.Ranks[b], collective.Step{To: collective.Nobody, From: a, Recv: there, Action: action})
		return
	}
	do(before, a, back)
	s.Ranks[a] = append(s.Ranks[a], collective.Step{To: b, Send: there, From: b, Recv: back, Action: action})
	s.Ranks[b] = append(s.Ranks[b], collective.Step{To: a, Send: back, From: a, Recv: there, Action: action})
}

// An all-to-all of uneven sizes, some of them 0, gives each rank what each gave to it, and
// moves no more than that and an opening for each that is not empty.
func TestAllToAll(t *testing.T) {
	for n := 1; n <= 5; n++ {
		synctest.Test(t, func(t *testing.T) {
			w := world(mem.Options{Link: uneven})
			defer closeAll(w)
			g := group(n)
			elems := func(from, to int) int { return (from*5 + to*3) % 7 * 11 }
			must(t, each(n, func(i int) error {
				var give, take []int
				var in, want []int64
				var sent, received int64
				for c := range n {
					give, take = append(give, elems(i, c)), append(take, elems(c, i))
					for k := range elems(i, c) {
						in = append(in, int64(i*10000+c*1000+k))
					}
					for k := range elems(c, i) {
						want = append(want, int64(c*10000+i*1000+k))
					}
					if c != i {
						sent += int64(8*elems(i, c) + 128*min(1, elems(i, c)))
						received += int64(8*elems(c, i) + 128*min(1, elems(c, i)))
					}
				}
				p := messages(w, g, i, 150)
				run, err := collective.NewAllToAll(p, tensor.I64, give, take)
				if err != nil {
					return err
				}
				out := tensor.New(tensor.I64, len(want))
				for range 2 {
					clear(out.Bytes())
					if err := run.Run(t.Context(), tensor.From(in, len(in)), out); err != nil {
						return err
					}
					for k, v := range want {
						if out.I64()[k] != v {
							return fmt.Errorf("element %d is %d, want %d", k, out.I64()[k], v)
						}
					}
				}
				if err := p.Streams.Close(); err != nil {
					return err
				}
				if st := p.Streams.Stats(); st.BytesSent != 2*sent || st.BytesReceived != 2*received {
					return fmt.Errorf("moved %d/%d bytes, want %d/%d", st.BytesSent, st.BytesReceived, 2*sent, 2*received)
				}
				return nil
			}))
		})
	}
}

// Sizes that two ranks do not agree on are an error that names both.
func TestAllToAllDisagrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world()
		defer closeAll(w)
		g := group(2)
		for i, err := range each(2, func(i int) error {
			sizes := []int{2, 2}
			sizes[1-i] += i
			run, err := collective.NewAllToAll(messages(w, g, i, 0), tensor.I64, sizes, sizes)
			if err != nil {
				return err
			}
			return run.Run(t.Context(), tensor.New(tensor.I64, 4+i), tensor.New(tensor.I64, 4+i))
		}) {
			var me *collective.MismatchError
			if !errors.As(err, &me) || !strings.Contains(err.Error(), "elements") || me.Peer != g[1-i] || me.Rank != g[i] {
				t.Errorf("index %d: %v", i, err)
			}
		}
	})
	p := collective.Party{Group: []int{0}}
	for _, c := range [][2][]int{{{1, 2}, {1}}, {{1}, {2}}, {{-1}, {-1}}} {
		if _, err := collective.NewAllToAll(p, tensor.F32, c[0], c[1]); err == nil {
			t.Errorf("give %v, take %v: taken", c[0], c[1])
		}
	}
}

// No rank leaves a barrier before the last has come.
func TestBarrier(t *testing.T) {
	for n := 1; n <= 7; n++ {
		synctest.Test(t, func(t *testing.T) {
			w := world()
			defer closeAll(w)
			g := group(n)
			var come atomic.Int64
			must(t, each(n, func(i int) error {
				b, err := collective.NewBarrier(messages(w, g, i, 0))
				if err != nil {
					return err
				}
				for round := range int64(3) {
					time.Sleep(time.Duration((i*5+int(round)*3)%7) * time.Second)
					come.Add(1)
					if err := b.Run(t.Context()); err != nil {
						return err
					}
					if c := come.Load(); c < (round+1)*int64(n) {
						return fmt.Errorf("left round %d when %d had come", round, c)
					}
				}
				return nil
			}))
		})
	}
}

// Ranks that begin different collectives say in words how they differ, before they take
// anything; dims that are not known are not compared.
func TestMismatch(t *testing.T) {
	type run struct {
		s *collective.Schedule
		d tensor.DType
		o collective.Options
	}
	base := run{collective.RingAllReduce(2), tensor.F32, collective.Options{Name: "w", Shape: tensor.Shape{2, 3}}}
	for want, edit := range map[string]func(r *run){
		"":                           func(*run) {},
		"name":                       func(r *run) { r.o.Name = "b" },
		"reduction max, not sum":     func(r *run) { r.o.Reduction = reduce.Max },
		"goal all-gather":            func(r *run) { r.s = collective.RingAllGather(2) },
		"type i32, not f32":          func(r *run) { r.d = tensor.I32 },
		"algorithm doubling":         func(r *run) { r.s = collective.DoublingAllReduce(2) },
		"shape [3 2], not [2 3]":     func(r *run) { r.o.Shape = tensor.Shape{3, 2} },
		"another schedule of the sa": func(r *run) { r.s = collective.DoublingAllReduce(2); r.s.Name = "ring" },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := world()
			defer closeAll(w)
			g := group(2)
			other := base
			edit(&other)
			if want == "" {
				other.o.Shape = tensor.Shape{tensor.Dynamic, 3}
			}
			var bufs [2]*tensor.Tensor
			errs := each(2, func(i int) error {
				r := [2]run{base, other}[i]
				run, err := collective.NewRunner(messages(w, g, i, 0), r.s, r.d, 6, r.o)
				if err != nil {
					return err
				}
				bufs[i] = tensor.New(r.d, 6)
				return run.Run(t.Context(), bufs[i])
			})
			if want == "" {
				must(t, errs)
				return
			}
			var me *collective.MismatchError
			if !errors.As(errs[0], &me) || !strings.Contains(errs[0].Error(), want) || errs[1] == nil {
				t.Errorf("%q: %v", want, errs)
			}
		})
	}
}
