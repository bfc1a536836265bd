// Package meet lets the workers of a job say something to each other between
// steps: what they read, what a test found, which parts of a checkpoint they wrote.
package meet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gangline/gangline/transport"
)

// ErrLate says that a worker did not say anything in time.
var ErrLate = errors.New("nothing came")

// Workers are ranks 0 to Count-1, as one of them sees them.
type Workers struct {
	Endpoint    transport.Endpoint
	Rank, Count int
	// Patience bounds every wait: network.task_timeout, less what is left of it for the
	// verdict; 0: only the context does.
	Patience time.Duration
}

// bounded is ctx with the patience of the workers.
func (w *Workers) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.Patience == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, w.Patience, fmt.Errorf("%w for %v, which network.task_timeout bounds", ErrLate, w.Patience))
}

// Gather gives take, on rank 0, what every other worker says, in the order of ranks;
// on others it says own and does not wait for anybody but rank 0 to hear it. what
// names the matter in errors, which say for whom rank 0 waited.
func (w *Workers) Gather(ctx context.Context, tag uint32, what string, own []byte, take func(rank int, text []byte) error) error {
	if w.Rank != 0 {
		ctx, cancel := w.bounded(ctx)
		defer cancel()
		return w.Endpoint.Send(ctx, 0, tag, nil, own)
	}
	for r := 1; r < w.Count; r++ {
		text, err := w.hear(ctx, r, tag, what)
		if err == nil {
			err = take(r, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Share returns, on every worker, what rank 0 says.
func (w *Workers) Share(ctx context.Context, tag uint32, what string, own []byte) ([]byte, error) {
	if w.Rank != 0 {
		return w.hear(ctx, 0, tag, what)
	}
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	for r := 1; r < w.Count; r++ {
		if err := w.Endpoint.Send(ctx, r, tag, nil, own); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// hear waits for what a worker says.
func (w *Workers) hear(ctx context.Context, from int, tag uint32, what string) ([]byte, error) {
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	recv := transport.Receive{Peer: from, Tag: tag, Grow: func(n int) []byte { return make([]byte, n) }}
	if err := w.Endpoint.Post(&recv); err != nil {
		return nil, err
	}
	if err := recv.Wait(ctx); err != nil {
		return nil, fmt.Errorf("rank %d: %s: waiting for rank %d: %w", w.Rank, what, from, err)
	}
	return recv.Buf[:recv.N], nil
}
