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

	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/launch"
)

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
