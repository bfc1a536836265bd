package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// ErrParentGone is the cause of a context from WatchParent when the launcher ended.
var ErrParentGone = errors.New("the launcher is gone")

// WatchParent returns a context that ends when the launcher is gone, with
// ErrParentGone as its cause. If nobody launched this process with a lifeline
// (GANGLINE_PARENT is not set), it only follows ctx. lookup is os.LookupEnv.
//
// A rank calls it once, first of all, and leaves stdin alone. stop ends the
// watch and returns when its goroutine has ended (on Windows, where a read of
// stdin cannot be interrupted, it does not wait).
func WatchParent(ctx context.Context, lookup func(string) (string, bool)) (watched context.Context, stop func(), err error) {
	parent, ok := lookup(EnvParent)
	watched, cancel := context.WithCancelCause(ctx)
	if !ok || parent == "" {
		return watched, func() { cancel(context.Canceled) }, nil
	}
	lifeline, err := openLifeline()
	if err != nil {
		cancel(err)
		return nil, nil, fmt.Errorf("launch: watch the launcher: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Whatever ends the read ends the lifeline; what is written to it does not count.
		_, _ = io.Copy(io.Discard, lifeline)
		cancel(fmt.Errorf("%w (pid %s)", ErrParentGone, parent))
	}()
	return watched, func() {
		cancel(context.Canceled)
		if lifeline.interrupt() {
			<-done
		}
	}, nil
}
