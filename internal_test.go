package gangline

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/launch"
)

// Opened says whether a call is under way.
func (g *Group) Opened() bool { return g.stand().Open }

// TestMessages is the way of systems that have no streams of their own.
func TestMessages(t *testing.T) {
	place := launch.Place{World: 3, Private: filepath.Join(t.TempDir(), "place")}
	errs := make([]error, 3)
	var running sync.WaitGroup
	for rank := range errs {
		running.Go(func() {
			place := place
			place.Rank = rank
			g, err := JoinWith(t.Context(), Config{Place: place})
			if err != nil {
				errs[rank] = err
				return
			}
			was := g.streams.Streams
			g.streams = crew.NewWatched(g.world.messages(1, g.members), g.members, rank)
			for _, n := range []int{1, 100_000} {
				v := make([]int32, n)
				v[n-1] = int32(rank)
				if err := g.AllReduce(t.Context(), v); err != nil || v[n-1] != 3 {
					errs[rank] = fmt.Errorf("got %d, want 3: %w", v[n-1], err)
				}
			}
			errs[rank] = errors.Join(errs[rank], g.Close(), was.Close())
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestLeftBefore is that a call which begins when it is known that a member is done
// does not wait for that one.
func TestLeftBefore(t *testing.T) {
	place := launch.Place{World: 2, Private: filepath.Join(t.TempDir(), "place")}
	errs := make([]error, 2)
	var running sync.WaitGroup
	for rank := range 2 {
		running.Go(func() {
			place := place
			place.Rank = rank
			g, err := JoinWith(t.Context(), Config{Place: place, Timeout: 20 * time.Second})
			if err != nil {
				errs[rank] = err
				return
			}
			if rank == 0 {
				for len(g.world.departures()) == 0 && g.world.over() == nil {
					runtime.Gosched()
				}
				errs[rank] = g.Barrier(t.Context())
			}
			errs[rank] = errors.Join(errs[rank], g.Close())
		})
	}
	running.Wait()
	for rank, err := range errs {
		var e *Error
		if !errors.As(err, &e) || e.Blamed != 1 || !strings.Contains(e.Text, "rank 1 has closed its group") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestAllReduceByCost: the algorithm of a call follows from its bytes, the hosts of the
// members and the costs.
func TestAllReduceByCost(t *testing.T) {
	slow := cost.Default()
	slow[cost.TCP].Beta = 1e-8
	for _, c := range []struct {
		hosts   []string // of the ranks; members are all but the first
		costs   cost.Table
		bytes   int
		want    string
		inHosts [][]int
	}{
		{hosts: []string{"a", "a", "a", "a", "a"}, bytes: 64, want: "doubling", inHosts: [][]int{{0, 1, 2, 3}}},
		{hosts: []string{"a", "a", "a", "a", "a"}, bytes: 64<<20 + 4, want: "ring", inHosts: [][]int{{0, 1, 2, 3}}},
		{hosts: []string{"a", "a", "b", "b", "a"}, bytes: 1 << 20, costs: slow, want: "hierarchical", inHosts: [][]int{{0, 3}, {1, 2}}},
		{hosts: []string{"a", "a", "a", "a"}, bytes: 64, costs: cost.Table{cost.SHM: {Alpha: 1e-12, Beta: 1}}, want: "ring", inHosts: [][]int{{0, 1, 2}}},
		{hosts: []string{"a", "a", "a"}, bytes: 0, want: "doubling", inHosts: [][]int{{0, 1}}},
		{hosts: make([]string, followedMax+2), bytes: 64, want: "doubling"},
		{hosts: make([]string, followedMax+2), bytes: 64 << 10, want: "ring"},
	} {
		g := &Group{world: &world{cfg: Config{Costs: c.costs}, hosts: c.hosts}}
		for r := range c.hosts[1:] {
			g.members = append(g.members, r+1)
		}
		s, err := g.allReduce(c.bytes)
		if err != nil || s.Name != c.want || s.N != len(g.members) {
			t.Errorf("%d bytes over %v: %v, %v, want %s", c.bytes, c.hosts, s, err, c.want)
		}
		if d := cmp.Diff(c.inHosts, g.hosts); d != "" {
			t.Errorf("hosts (-want +got):\n%s", d)
		}
	}
}

// TestCostsAgreed: ranks with other costs do not join, as they would choose otherwise.
func TestCostsAgreed(t *testing.T) {
	place := launch.Place{World: 2, Private: filepath.Join(t.TempDir(), "place")}
	errs := make([]error, 2)
	var running sync.WaitGroup
	for rank := range errs {
		running.Go(func() {
			place := place
			place.Rank = rank
			costs := cost.Default()
			costs[cost.SHM].Alpha *= float64(1 + rank)
			g, err := JoinWith(t.Context(), Config{Place: place, Costs: costs})
			if err == nil {
				err = g.Close()
			}
			errs[rank] = err
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "costs") {
		t.Errorf("got %v", err)
	}
}

// TestBroken is that only an error is a reason to leave without a word.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{{nil, false}, {ErrClosed, false}, {&Error{Text: "rank 1 was lost"}, true}} {
		w := newWorld(Config{})
		if c.err != nil {
			w.end(c.err)
		}
		if got := w.broken(); got != c.want {
			t.Errorf("over by %v: %t", c.err, got)
		}
	}
}
