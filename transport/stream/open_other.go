//go:build !unix

package stream

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/gangline/gangline/transport"
)

// Open fails with errors.ErrUnsupported: all bodies need poll on sockets.
func Open(_ context.Context, cfg Config) (transport.Streams, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("rank %d: open streams: shm, unix and tcp on %s: %w", cfg.Rank, runtime.GOOS, errors.ErrUnsupported)
}
