package tree

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs f for n ranks at the same time.
func each(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	for i, err := range collect(n, f) {
		if err != nil {
			t.Fatalf("index %d: %v", i, err)
		}
	}
}

func collect(n int, f func(i int) error) []error {
	errs, done := make([]error, n), make(chan int)
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

// ways are both ways to sum.
func ways() []plan.Algorithm { return []plan.Algorithm{plan.ByRing, plan.ByExchange} }

// Summed on symbols, the order is the same tree on every number of ranks up to 64: each
// sum is a number of its own for its pair of terms. The schedules that bring the branches
// together are proved as all are.
func TestOneTree(t *testing.T) {
	for _, slices := range []int{1, 2, 3, 5, 7, 8, 12, 16, 24, 60, 64, 100, 210, plan.MaxSlices} {
		ids := map[[2]int]int{}
		add := func(a, b int) int {
			key := [2]int{a, b}
			if ids[key] == 0 {
				ids[key] = slices + len(ids)
			}
			return ids[key]
		}
		root := -1
		for n := 1; n <= min(slices, 64); n++ {
			for _, s := range []*collective.Schedule{collective.PairwiseAllToAll(n), collective.RingAllGather(n)} {
				if slices == 64 {
					if err := s.Check(); err != nil {
						t.Fatal(err)
					}
				}
			}
			var pieces []int
			for i := range n {
				part := plan.Part(slices, n, i)
				var stack []plan.Branch
				var terms []int
				for s := part.Lo; s < part.Hi; s++ {
					var joined int
					stack, joined = plan.Fold(slices, stack, plan.Branch{Lo: s, Hi: s + 1})
					terms = append(terms, s)
					for range joined {
						last := len(terms) - 1
						terms[last-1] = add(terms[last-1], terms[last])
						terms = terms[:last]
					}
				}
				pieces = append(pieces, terms...)
			}
			all, branches := joins(slices, n)
			if len(all) != len(pieces)-1 || len(branches) != n {
				t.Fatalf("%d slices on %d ranks: %d sums of %d branches", slices, n, len(all), len(pieces))
			}
			for _, j := range all {
				pieces[j.left] = add(pieces[j.left], pieces[j.right])
			}
			if n == 1 {
				root = pieces[0]
			}
			if pieces[0] != root {
				t.Errorf("%d slices on %d ranks are summed in another order than on one", slices, n)
			}
		}
		if len(ids) != slices-1 {
			t.Errorf("%d slices are summed by %d different sums, want %d: a tree", slices, len(ids), slices-1)
		}
	}
}

// Twelve slices are one branch each on 2 and 4 ranks, and two on 3.
func TestFewBranches(t *testing.T) {
	for n, want := range map[int][]int{1: {1}, 2: {1, 1}, 3: {2, 2, 2}, 4: {1, 1, 1, 1}, 6: {1, 2, 1, 1, 2, 1}, 12: {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
		if _, got := joins(12, n); !slices.Equal(got, want) {
			t.Errorf("12 slices on %d ranks are %v branches, want %v", n, got, want)
		}
	}
}

// wild is values whose sum depends on the order.
func wild(rng *rand.Rand, elems int) *tensor.Tensor {
	x := tensor.New(tensor.F32, elems)
	for i := range x.F32() {
		x.F32()[i] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(7))))
	}
	return x
}

// obvious is the sum of a branch by the definition of the tree.
func obvious(n int, b plan.Branch, leaf func(s int) []float32) []float32 {
	if b.Hi-b.Lo == 1 {
		return leaf(b.Lo)
	}
	for mid := b.Lo + 1; mid < b.Hi; mid++ {
		left, right := plan.Branch{Lo: b.Lo, Hi: mid}, plan.Branch{Lo: mid, Hi: b.Hi}
		if plan.Joins(n, left, right) {
			out := slices.Clone(obvious(n, left, leaf))
			for i, v := range obvious(n, right, leaf) {
				out[i] += v
			}
			return out
		}
	}
	panic(fmt.Sprintf("%v is no branch", b))
}

// The sums have the bits of the definition on any number of ranks, by both ways, and the
// wire counts what the formulas say.
func TestAllReduce(t *testing.T) {
	for _, count := range []int{5, 12, 16} {
		for _, elems := range []int{1, 3, 1000, 20011} {
			rng := rand.New(rand.NewPCG(uint64(count), uint64(elems)))
			leaves := make([][]float32, count)
			for s := range leaves {
				leaves[s] = wild(rng, elems).F32()
			}
			leaf := func(s int) []float32 { return leaves[s] }
			want := obvious(count, plan.Branch{Lo: 0, Hi: count}, leaf)
			for n := 1; n <= 5; n++ {
				for _, way := range ways() {
					c := Config{Slices: count, Algorithm: way, DType: tensor.F32, Elems: elems, Name: "w"}
					net := mem.NewNetwork(n)
					each(t, n, func(i int) error { return check(t.Context(), net, c, n, i, leaf, want) })
					for i, e := range net.Endpoints() {
						if err := e.Close(); err != nil {
							t.Errorf("rank %d: %v", i, err)
						}
					}
				}
			}
		}
	}
}

// check runs one rank's part twice.
func check(ctx context.Context, net *mem.Network, c Config, n, i int, leaf func(int) []float32, want []float32) error {
	group := make([]int, n)
	for r := range group {
		group[r] = r
	}
	streams := transport.NewMessageStreams(net.Endpoint(i), i, group, 5, 1<<20)
	a, err := NewAllReduce(collective.Party{Streams: streams, Group: group, Index: i}, c)
	if err != nil {
		return err
	}
	const rounds = 2
	for range rounds {
		var branches []*tensor.Tensor
		for _, b := range plan.Branches(c.Slices, plan.Part(c.Slices, n, i)) {
			x := tensor.New(tensor.F32, c.Elems)
			copy(x.F32(), obvious(c.Slices, b, leaf))
			branches = append(branches, x)
		}
		if err := a.Run(ctx, branches); err != nil {
			return err
		}
		if !slices.Equal(branches[0].F32(), want) {
			return fmt.Errorf("%+v on %d ranks: not the sum of the tree", c, n)
		}
	}
	if err := streams.Close(); err != nil {
		return err
	}
	sent, received := Traffic(c, n, i)
	st := streams.Stats()
	opened := func(bytes, formula int64) bool { // openings are 128 bytes, one or two a partner
		extra := bytes - rounds*formula
		return extra%128 == 0 && extra <= rounds*128*2*int64(n)
	}
	if !opened(st.BytesSent, sent) || !opened(st.BytesReceived, received) || a.Bytes() != sent+received {
		return fmt.Errorf("%+v on %d ranks moved %d/%d bytes in %d runs, %d by its own account: want %d/%d each",
			c, n, st.BytesSent, st.BytesReceived, rounds, a.Bytes(), sent, received)
	}
	return nil
}

// On 2 and 4 ranks, twelve slices move no more bytes than a ring all-reduce.
func TestNoMoreThanARing(t *testing.T) {
	for _, n := range []int{2, 4, 6, 12} {
		for i := range n {
			c := Config{Slices: 12, DType: tensor.F32, Elems: 12000}
			if n == 6 {
				continue // has ranks of two branches
			}
			sent, _ := Traffic(c, n, i)
			ring, _ := collective.RingAllReduce(n).Traffic(i, c.Elems, 4)
			if sent != ring {
				t.Errorf("rank %d of %d sends %d bytes, in a ring %d", i, n, sent, ring)
			}
		}
	}
}

// Rows are summed in the order of the slices, whoever has them: of an odd number of
// float32 too, and of slices without any.
func TestRows(t *testing.T) {
	const count, dim = 7, 3
	rng := rand.New(rand.NewPCG(1, 2))
	in := make([]*tensor.Tensor, 0, 2*count)
	sums := map[int64][]float32{}
	for s := range count {
		var keys []int64
		for k := range int64(20) {
			if s != 4 && rng.IntN(3) > 0 {
				keys = append(keys, k)
			}
		}
		rows := wild(rng, len(keys)*dim).F32()
		in = append(in, tensor.From(keys, len(keys)), tensor.From(rows, len(keys), dim))
		for i, k := range keys {
			if sums[k] == nil {
				sums[k] = make([]float32, dim)
			}
			for j := range dim {
				sums[k][j] += rows[i*dim+j]
			}
		}
	}
	for n := 1; n <= 7; n++ {
		net := mem.NewNetwork(n)
		group := make([]int, n)
		for r := range group {
			group[r] = r
		}
		each(t, n, func(i int) error {
			r, err := NewRows(collective.Party{Endpoint: net.Endpoint(i), Group: group, Index: i, Tag: 3}, count, tensor.F32, dim)
			if err != nil {
				return err
			}
			part := plan.Part(count, n, i)
			keys, rows := tensor.New(tensor.I64, 0), tensor.New(tensor.F32, 0, dim)
			before := net.Endpoint(i).Stats()
			for round := range int64(2) {
				if err := r.Run(t.Context(), in[2*part.Lo:2*part.Hi], keys, rows); err != nil {
					return err
				}
				if keys.Elems() != len(sums) {
					return fmt.Errorf("%d keys, want %d", keys.Elems(), len(sums))
				}
				for k, key := range keys.I64() {
					if !slices.Equal(rows.F32()[k*dim:(k+1)*dim], sums[key]) {
						return fmt.Errorf("key %d: %v, want %v", key, rows.F32()[k*dim:(k+1)*dim], sums[key])
					}
				}
				st := net.Endpoint(i).Stats()
				if moved := st.BytesSent + st.BytesReceived - before.BytesSent - before.BytesReceived; n > 1 && moved != (round+1)*r.Bytes() {
					return fmt.Errorf("moved %d bytes in %d runs, %d by its own account", moved, round+1, r.Bytes())
				}
			}
			return nil
		})
		for _, e := range net.Endpoints() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A rank that does not come is named, and the runner is used up.
func TestMissing(t *testing.T) {
	for _, way := range ways() {
		net := mem.NewNetwork(2)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("too late"))
		p := collective.Party{Endpoint: net.Endpoint(0), Group: []int{0, 1}, Tag: 1}
		a, err := NewAllReduce(p, Config{Slices: 2, Algorithm: way, DType: tensor.F32, Elems: 10})
		if err != nil {
			t.Fatal(err)
		}
		x := []*tensor.Tensor{tensor.New(tensor.F32, 10)}
		err = a.Run(ctx, x)
		if pe, ok := errors.AsType[*transport.PeerError](err); !ok || pe.Peer != 1 || !strings.Contains(err.Error(), "too late") {
			t.Errorf("%v: %v, want an error that names rank 1", way, err)
		}
		if err := a.Run(t.Context(), x); !errors.Is(err, collective.ErrUsedUp) {
			t.Errorf("%v: a second run: %v", way, err)
		}
		r, err := NewRows(collective.Party{Endpoint: net.Endpoint(1), Group: []int{0, 1}, Index: 1, Tag: 2}, 2, tensor.F32, 1)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Run(ctx, []*tensor.Tensor{tensor.New(tensor.I64, 0), tensor.New(tensor.F32, 0, 1)}, tensor.New(tensor.I64, 0), tensor.New(tensor.F32, 0, 1))
		if pe, ok := errors.AsType[*transport.PeerError](err); !ok || pe.Peer != 0 {
			t.Errorf("rows: %v, want an error that names rank 0", err)
		}
		cancel()
		for _, e := range net.Endpoints() {
			_ = e.Close()
		}
	}
}

// What cannot be bound or run says why.
func TestRefused(t *testing.T) {
	p := collective.Party{Group: []int{0}}
	for want, c := range map[string]Config{
		"0 slices on 1 ranks":           {DType: tensor.F32},
		"sum of 1 elements":             {Slices: 1, Elems: 1},
		"257 slices on 1 ranks":         {Slices: 257, DType: tensor.F32},
		"sum of -1 elements of type":    {Slices: 1, DType: tensor.F32, Elems: -1},
		"tree: doubling is no way to s": {Slices: 2, DType: tensor.F32, Elems: 1, Algorithm: plan.ByDoubling},
	} {
		p := p
		if c.Slices == 2 {
			net := mem.NewNetwork(2)
			p = collective.Party{Group: []int{0, 1}, Endpoint: net.Endpoint(0)}
		}
		if _, err := NewAllReduce(p, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	a, err := NewAllReduce(p, Config{Slices: 3, DType: tensor.F32, Elems: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "0 branches where rank 0 has 1 of 3 slices") {
		t.Error(err)
	}
	if err := a.Run(t.Context(), []*tensor.Tensor{tensor.New(tensor.F64, 4)}); err == nil || !strings.Contains(err.Error(), "4 f32 elements given 4 f64") {
		t.Error(err)
	}
	if _, err := NewRows(p, 0, tensor.F32, 1); err == nil {
		t.Error("rows of no slices were taken")
	}
}
