package gangline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gangline/gangline"
)

// TestUnopened is that a group which a member does not come to ends the job on all ranks.
func TestUnopened(t *testing.T) {
	mine := errors.New("enough")
	for _, given := range []bool{true, false} {
		over := make(chan struct{})
		cfg := gangline.Config{Timeout: time.Minute}
		if !given {
			cfg.Timeout = time.Second / 2
		}
		errs := togetherWith(t, 2, cfg, func(g *gangline.Group) error {
			if g.Rank() == 1 { // does something else, until then
				<-over
				return g.Barrier(t.Context())
			}
			defer close(over)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if given {
				cancel(mine)
			}
			_, err := g.Group(ctx, 0, 1)
			return err
		})
		e := sameVerdict(t, errs)
		if !strings.Contains(e.Text, "group 0,1") {
			t.Error(e)
		}
		if given && !errors.Is(errs[0], mine) || errors.Is(errs[1], mine) {
			t.Errorf("rank 0: %v, rank 1: %v", errs[0], errs[1])
		}
		if named := e.Blamed == 1 || len(e.Missing) == 1 && e.Missing[0].Rank == 1; !given && !named {
			t.Errorf("blames rank %d, missing %v", e.Blamed, e.Missing)
		}
	}
}

// TestGiveUp is that a call whose ctx ends is the end of the job on all ranks, with a
// cause only where it ended.
func TestGiveUp(t *testing.T) {
	mine := errors.New("enough")
	given := make(chan struct{})
	errs := together(t, 2, func(g *gangline.Group) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if g.Rank() == 1 {
			<-given
			// What rank 0 has sent of the call by then may be all that this rank wants of it, and
			// come before word that rank 0 gave up: the job ends with the call behind it at the latest.
			if err := g.AllReduce(ctx, make([]int32, 4)); err != nil {
				return err
			}
			return g.Barrier(ctx)
		}
		h := g.StartAllReduce(ctx, make([]int32, 4))
		for !g.Opened() { // one that has not been begun is no call to give up
			time.Sleep(time.Millisecond)
		}
		if err := g.StartBarrier(t.Context()).Wait(brief(ctx)); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("a barrier behind a call that waits: %w", err)
		}
		cancel(mine)
		<-h.Done()
		close(given)
		return h.Wait(t.Context())
	})
	if e := sameVerdict(t, errs); e.Blamed != 1 && e.Blamed != 0 {
		t.Error(e)
	}
	if !errors.Is(errs[0], mine) || errors.Is(errs[1], mine) {
		t.Errorf("rank 0: %v\nrank 1: %v", errs[0], errs[1])
	}
}

// brief is a ctx that ends in a moment.
func brief(ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	context.AfterFunc(ctx, cancel)
	return ctx
}
