package train

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/job"
)

// A second run in the directory of one that lives is refused by rank 0, before it
// reads or writes there; one that comes a little early waits.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	release, err := checkpoint.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Lock(dir); err == nil {
		t.Skip("directories cannot be locked here")
	}
	synctest.Test(t, func(t *testing.T) {
		j := parse(t, resumeJob, "checkpoint.dir="+dir)
		_, err := Run(t.Context(), Config{Job: j})
		if _, ok := errors.AsType[*job.FieldError](err); !ok || !strings.Contains(err.Error(), "checkpoint.dir: ") ||
			!strings.Contains(err.Error(), "another run is writing there") {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		cancel(stopped)
		if _, err := claim(ctx, dir); !errors.Is(err, stopped) {
			t.Errorf("a stopped run got %v", err)
		}
		go func() {
			time.Sleep(claimPatience / 2)
			if err := release(); err != nil {
				t.Error(err)
			}
		}()
		again, err := claim(t.Context(), dir)
		if err != nil {
			t.Fatalf("of a directory given up soon: %v", err)
		}
		if err := again(); err != nil {
			t.Error(err)
		}
	})
}
