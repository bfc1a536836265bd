package gangline_test

import (
	"context"
	"errors"
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
