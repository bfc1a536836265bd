package gangline

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline/launch"
)

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
