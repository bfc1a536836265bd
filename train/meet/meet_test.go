package meet

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/transport/mem"
)

func closeAll(t *testing.T, net *mem.Network) {
	t.Helper()
	for _, e := range net.Endpoints() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A worker that says nothing is waited for as long as patience lasts, and then named.
func TestLate(t *testing.T) {
	for name, c := range map[string]struct {
		rank, late int
		wait       func(ctx context.Context, w Workers) error
	}{
		"gather": {0, 2, func(ctx context.Context, w Workers) error {
			return w.Gather(ctx, 7, "matter", nil, func(int, []byte) error { return nil })
		}},
		"share": {1, 0, func(ctx context.Context, w Workers) error {
			_, err := w.Share(ctx, 7, "matter", nil)
			return err
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			net := mem.NewNetwork(3)
			defer closeAll(t, net)
			workers := func(rank int) Workers {
				return Workers{Endpoint: net.Endpoint(rank), Rank: rank, Count: 3, Patience: time.Second}
			}
			if c.rank == 0 { // of the others, one comes
				w := workers(1)
				var coming sync.WaitGroup
				defer coming.Wait()
				coming.Go(func() {
					if err := w.Gather(t.Context(), 7, "matter", nil, nil); err != nil {
						t.Error(err)
					}
				})
			}
			begin := time.Now()
			err := c.wait(t.Context(), workers(c.rank))
			if took := time.Since(begin); took != time.Second {
				t.Errorf("%s: after %v", name, took)
			}
			if !errors.Is(err, ErrLate) || coord.Blamed(crew.Blame(err)) != c.late {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
