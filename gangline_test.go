package gangline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline"
	"github.com/gangline/gangline/launch"
)

// together runs f as every rank of a world in this process, and returns what each one
// returned.
func together(t *testing.T, n int, f func(g *gangline.Group) error) []error {
	t.Helper()
	return togetherWith(t, n, gangline.Config{}, f)
}

func togetherWith(t *testing.T, n int, cfg gangline.Config, f func(g *gangline.Group) error) []error {
	t.Helper()
	place := launch.Place{World: n, Private: filepath.Join(t.TempDir(), "p")}
	errs := make([]error, n)
	var running sync.WaitGroup
	for rank := range n {
		running.Go(func() {
			cfg := cfg
			cfg.Place = place
			cfg.Place.Rank = rank
			g, err := gangline.JoinWith(t.Context(), cfg)
			if err != nil {
				errs[rank] = err
				return
			}
			errs[rank] = f(g)
			errs[rank] = errors.Join(errs[rank], g.Close())
		})
	}
	running.Wait()
	return errs
}

func wantNone(t *testing.T, errs []error) {
	t.Helper()
	for rank, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// differs returns an error unless got is want.
func differs[T comparable](what string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// number is what rank r gives as element i.
func number(r, i int) int { return (r+2)*(i%7+1) - 3*r*(i%2) }

// reduced is what a reduction over n ranks makes of element i.
func reduced(op gangline.Reduction, n, i int) int {
	v := number(0, i)
	for r := 1; r < n; r++ {
		switch x := number(r, i); op {
		case gangline.Min:
			v = min(v, x)
		case gangline.Max:
			v = max(v, x)
		case gangline.Prod:
			v *= x
		case gangline.Sum, gangline.Mean:
			v += x
		}
	}
	return v
}

func fill[T float32 | float64 | int32 | int64](n int, f func(i int) int) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = T(f(i))
	}
	return v
}

// allCalls makes every call on one type and compares with what it should be, computed
// one element at a time.
func allCalls[T float32 | float64 | int32 | int64](ctx context.Context, g *gangline.Group, elems int) error {
	n, me := g.Size(), g.Rank()
	mine := func() []T { return fill[T](elems, func(i int) int { return number(me, i) }) }
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	for _, op := range []gangline.Reduction{gangline.Sum, gangline.Min, gangline.Max, gangline.Prod} {
		v, want := mine(), fill[T](elems, func(i int) int { return reduced(op, n, i) })
		note(g.AllReduce(ctx, v, op))
		note(differs("all-reduce", v, want))
		for root := range n {
			v = mine()
			note(g.Reduce(ctx, v, root, op))
			if me == root {
				note(differs("reduce", v, want))
			}
		}
		v = mine()
		note(g.ReduceScatter(ctx, v, op))
		lo, hi := g.Chunk(elems)
		note(differs("reduce-scatter", v[lo:hi], want[lo:hi]))
	}
	whole := fill[T](elems, func(i int) int { return i + 1 })
	lo, hi := g.Chunk(elems)
	part := func() []T {
		v := make([]T, elems)
		copy(v[lo:hi], whole[lo:hi])
		return v
	}
	v := part()
	note(g.AllGather(ctx, v))
	note(differs("all-gather", v, whole))
	for root := range n {
		v = part()
		note(g.Gather(ctx, v, root))
		if me == root {
			note(differs("gather", v, whole))
		}
		v = make([]T, elems)
		if me == root {
			copy(v, whole)
		}
		w := slices.Clone(v)
		note(g.Scatter(ctx, v, root))
		note(differs("scatter", v[lo:hi], whole[lo:hi]))
		note(g.Broadcast(ctx, w, root))
		note(differs("broadcast", w, whole))
	}
	in := fill[T](n*elems, func(i int) int { return 1000*me + i })
	out := make([]T, n*elems)
	note(g.AllToAll(ctx, in, out))
	note(differs("all-to-all", out, fill[T](n*elems, func(i int) int { return 1000*(i/max(elems, 1)) + me*elems + i%max(elems, 1) })))
	return errors.Join(errs...)
}

// TestCalls is every call on every type, by groups of several sizes, for slices with
// fewer elements than ranks and more than a message.
func TestCalls(t *testing.T) {
	for n := 1; n <= 5; n++ {
		wantNone(t, together(t, n, func(g *gangline.Group) error {
			var errs []error
			for _, elems := range []int{0, 1, 3, 64, 9001} {
				errs = append(errs, allCalls[float32](t.Context(), g, elems), allCalls[float64](t.Context(), g, elems),
					allCalls[int32](t.Context(), g, elems), allCalls[int64](t.Context(), g, elems))
			}
			v := []float32{float32(g.Rank())}
			errs = append(errs, g.AllReduce(t.Context(), v, gangline.Mean))
			if want := float64(n-1) / 2; math.Abs(float64(v[0])-want) > 1e-6 {
				errs = append(errs, fmt.Errorf("mean is %v, want %v", v[0], want))
			}
			return errors.Join(append(errs, g.Barrier(t.Context()))...)
		}))
	}
}

// TestBarrier is that nobody passes before all have come.
func TestBarrier(t *testing.T) {
	var mu sync.Mutex
	came := 0
	wantNone(t, together(t, 4, func(g *gangline.Group) error {
		for round := 1; round <= 20; round++ {
			mu.Lock()
			came++
			mu.Unlock()
			if err := g.Barrier(t.Context()); err != nil {
				return err
			}
			mu.Lock()
			seen := came
			mu.Unlock()
			if seen < 4*round {
				return fmt.Errorf("passed barrier %d when %d had come", round, seen)
			}
		}
		return nil
	}))
}

// TestStart is that started calls end in their order, more than may wait at a time,
// with calls between them that are waited for.
func TestStart(t *testing.T) {
	wantNone(t, together(t, 3, func(g *gangline.Group) error {
		var handles []*gangline.Handle
		values := make([][]int64, 3*gangline.QueueMax)
		for i := range values {
			values[i] = []int64{int64(i), int64(g.Rank())}
			handles = append(handles, g.StartAllReduce(t.Context(), values[i]))
			if i%50 == 0 {
				if err := g.Barrier(t.Context()); err != nil {
					return err
				}
			}
		}
		for i, h := range handles {
			if err := h.Wait(t.Context()); err != nil {
				return err
			}
			if err := differs("sum", values[i], []int64{3 * int64(i), 3}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestGroupsOverlap is that started calls of groups that share ranks do not hold each
// other up, though every rank begins them in another order.
func TestGroupsOverlap(t *testing.T) {
	const n = 4
	wantNone(t, together(t, n, func(g *gangline.Group) error {
		var groups []*gangline.Group
		for _, ranks := range [][]int{{0, 1, 2}, {1, 2, 3}, {3, 2, 1, 0}, {0, 3}} {
			if !slices.Contains(ranks, g.Rank()) {
				continue
			}
			sub, err := g.Group(t.Context(), ranks...)
			if err != nil {
				return err
			}
			groups = append(groups, sub)
		}
		for round := range 10 {
			values := make([][]int32, len(groups))
			handles := make([]*gangline.Handle, len(groups))
			for k := range groups {
				i := (k + g.Rank() + round) % len(groups) // another order on every rank
				values[i] = []int32{int32(g.Rank())}
				handles[i] = groups[i].StartAllReduce(t.Context(), values[i])
			}
			for i, h := range handles {
				want := int32(0)
				for _, r := range groups[i].Ranks() {
					want += int32(r)
				}
				if err := errors.Join(h.Wait(t.Context()), differs("sum", values[i], []int32{want})); err != nil {
					return fmt.Errorf("round %d, group %v: %w", round, groups[i], err)
				}
			}
		}
		// A group of members goes by their new numbers.
		if last := groups[len(groups)-1]; last.Size() == 2 {
			if v := []int32{int32(g.Rank())}; last.Broadcast(t.Context(), v, 1) != nil || v[0] != 3 {
				return fmt.Errorf("broadcast of the second of ranks 0 and 3 gave %d", v[0])
			}
		}
		return groups[0].Close()
	}))
}

// sameVerdict checks that all ranks got one text, and returns it.
func sameVerdict(t *testing.T, errs []error) *gangline.Error {
	t.Helper()
	var first *gangline.Error
	for rank, err := range errs {
		e, ok := errors.AsType[*gangline.Error](err)
		if !ok {
			t.Fatalf("rank %d: got %v, want an Error", rank, err)
		}
		if e.Rank != rank {
			t.Errorf("the error of rank %d says it is of rank %d", rank, e.Rank)
		}
		if first == nil {
			first = e
		}
		if e.Text != first.Text || e.Blamed != first.Blamed || !slices.Equal(e.Missing, first.Missing) || !slices.Equal(e.Differ, first.Differ) {
			t.Errorf("rank %d: %v\nrank 0: %v", rank, e, first)
		}
	}
	t.Log(first)
	return first
}

// TestMismatch is that ranks which do different things all hear who differs and how.
func TestMismatch(t *testing.T) {
	for name, call := range map[string]func(g *gangline.Group) error{
		"length": func(g *gangline.Group) error {
			return g.AllReduce(t.Context(), make([]float32, 8+g.Rank()/3), gangline.Name("grad"))
		},
		"type": func(g *gangline.Group) error {
			if g.Rank() == 3 {
				return g.AllReduce(t.Context(), make([]float64, 8))
			}
			return g.AllReduce(t.Context(), make([]float32, 8))
		},
		"name": func(g *gangline.Group) error {
			return g.AllReduce(t.Context(), make([]float32, 8), gangline.Name(fmt.Sprint("g", g.Rank()/3)))
		},
		"reduction": func(g *gangline.Group) error {
			return g.AllReduce(t.Context(), make([]float32, 8), gangline.Reduction(g.Rank()/3))
		},
		"operation": func(g *gangline.Group) error {
			if g.Rank() == 3 {
				return g.AllGather(t.Context(), make([]float32, 8))
			}
			return g.AllReduce(t.Context(), make([]float32, 8))
		},
		"large": func(g *gangline.Group) error {
			return g.AllReduce(t.Context(), make([]float32, 1<<17+g.Rank()/3), gangline.Name("grad"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			errs := together(t, 4, func(g *gangline.Group) error {
				if err := g.Barrier(t.Context()); err != nil {
					return err
				}
				err := call(g)
				if err == nil { // its part was done before the others came
					err = g.Barrier(t.Context())
				}
				return err
			})
			e := sameVerdict(t, errs)
			if !errors.Is(e, gangline.ErrMismatch) || !slices.Equal(e.Differ, []int{3}) {
				t.Errorf("differ %v: %v", e.Differ, e)
			}
		})
	}
}

// TestAbsent is that one error on all ranks says who did not come, before the deadline.
func TestAbsent(t *testing.T) {
	begin := time.Now()
	stay := make(chan struct{})
	var left sync.WaitGroup
	left.Add(2)
	errs := together(t, 3, func(g *gangline.Group) error {
		if err := g.Barrier(t.Context()); err != nil {
			return err
		}
		if g.Rank() == 1 { // lives, but does not come
			<-stay
			return g.Barrier(t.Context())
		}
		err := g.AllReduce(t.Context(), make([]float32, 8), gangline.Name("grad"), gangline.Within(2*time.Second))
		left.Done()
		if g.Rank() == 0 {
			left.Wait()
			close(stay)
		}
		return err
	})
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	e := sameVerdict(t, errs)
	if !errors.Is(e, gangline.ErrOverdue) || len(e.Missing) != 1 || e.Missing[0].Rank != 1 || e.Missing[0].Silent < time.Second/2 {
		t.Errorf("missing %v: %v", e.Missing, e)
	}
	for _, want := range []string{`call #2 of group all (all-reduce sum "grad" f32[8])`, "rank 1 (host ", "never arrived at #2", "since it ended call #1"} {
		if !strings.Contains(e.Text, want) {
			t.Errorf("%q is not in %q", want, e.Text)
		}
	}
}

// TestOrder is that blocking calls on two groups in two orders end with an error that
// says so.
func TestOrder(t *testing.T) {
	errs := togetherWith(t, 2, gangline.Config{Timeout: 4 * time.Second}, func(g *gangline.Group) error {
		a, err := g.Group(t.Context(), 0, 1)
		if err != nil {
			return err
		}
		b, err := g.Group(t.Context(), 0, 1)
		if err != nil {
			return err
		}
		if g.Rank() == 1 {
			a, b = b, a
		}
		if err := a.Barrier(t.Context()); err != nil {
			return err
		}
		return b.Barrier(t.Context())
	})
	if e := sameVerdict(t, errs); !errors.Is(e, gangline.ErrOverdue) || !strings.Contains(e.Text, "same order") {
		t.Error(e)
	}
}

// TestLeaver is that who waits for a rank that has closed its group hears so at once.
func TestLeaver(t *testing.T) {
	begin := time.Now()
	errs := together(t, 3, func(g *gangline.Group) error {
		if err := g.Barrier(t.Context()); err != nil || g.Rank() == 2 {
			return err
		}
		return g.AllReduce(t.Context(), make([]int32, 4))
	})
	e := sameVerdict(t, errs)
	if e.Blamed != 2 || !strings.Contains(e.Text, "closed its group after call #1") {
		t.Error(e)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// TestFail is that a rank's own error ends all others.
func TestFail(t *testing.T) {
	full := errors.New("the disk is full")
	errs := together(t, 3, func(g *gangline.Group) error {
		if g.Rank() == 1 {
			return g.Fail(full)
		}
		return g.Barrier(t.Context())
	})
	e := sameVerdict(t, errs)
	if e.Blamed != 1 || !strings.Contains(e.Text, "the disk is full") {
		t.Error(e)
	}
	if !errors.Is(errs[1], full) || errors.Is(errs[0], full) {
		t.Errorf("rank 0: %v, rank 1: %v", errs[0], errs[1])
	}
}

// TestArguments is that what this rank alone can see is wrong is no call.
func TestArguments(t *testing.T) {
	wantNone(t, together(t, 2, func(g *gangline.Group) error {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for what, err := range map[string]error{
			"a string":       g.AllReduce(t.Context(), "x"),
			"two lengths":    g.AllToAll(t.Context(), []int32{1, 2}, []int32{1}),
			"odd length":     g.AllToAll(t.Context(), []int32{1}, []int32{1}),
			"a slice of int": g.AllReduce(t.Context(), []int{1}),
			"root":           g.Broadcast(t.Context(), []int32{1}, 2),
			"deadline":       g.Barrier(t.Context(), gangline.Within(-1)),
			"mean of int":    g.AllReduce(t.Context(), []int32{1}, gangline.Mean),
			"ended":          g.AllReduce(ended, []int32{1}),
			"started":        g.StartReduce(t.Context(), []int32{1}, 5).Wait(t.Context()),
		} {
			if err == nil {
				return fmt.Errorf("%s: no error", what)
			}
		}
		if _, err := g.Group(t.Context(), 1-g.Rank()); err == nil {
			return errors.New("a group without this rank: no error")
		}
		if _, err := g.Group(t.Context(), 0, 1, 1); err == nil {
			return errors.New("a group with a rank twice: no error")
		}
		return g.Barrier(t.Context())
	}))
}
