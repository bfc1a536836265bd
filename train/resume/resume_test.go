package resume

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/checkpoint"
)

// A run that comes to a directory a little before another has left it waits; one that
// is stopped while it waits says why.
func TestClaimWaits(t *testing.T) {
	dir := t.TempDir()
	release, err := checkpoint.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Lock(dir); err == nil {
		t.Skip("directories cannot be locked here")
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		cancel(stopped)
		if _, err := Claim(ctx, dir); !errors.Is(err, stopped) {
			t.Errorf("a stopped run got %v", err)
		}
		go func() {
			time.Sleep(claimPatience / 2)
			if err := release(); err != nil {
				t.Error(err)
			}
		}()
		again, err := Claim(t.Context(), dir)
		if err != nil {
			t.Fatalf("of a directory given up soon: %v", err)
		}
		if err := again(); err != nil {
			t.Error(err)
		}
	})
}
