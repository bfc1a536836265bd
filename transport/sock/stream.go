package sock

import (
	"context"
	"net"
)

// stream is a connection as the data path uses it: one goroutine reads, and one
// at a time writes. newStream returns the fastest one for the platform.
type stream interface {
	// read reads at least one byte into p.
	read(p []byte) (int, error)
	// write writes all of bufs, which it consumes. When it blocks it asks
	// stopped now and then whether to go on. It returns how much it wrote.
	write(ctx context.Context, gone <-chan struct{}, bufs [][]byte) (int, error)
	// conn is what carries deadlines and Close.
	conn() net.Conn
}

// stopped says why a write that blocks should be given up.
func stopped(ctx context.Context, gone <-chan struct{}) error {
	select {
	case <-gone:
		return net.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return nil
	}
}

// advance drops the first n bytes of bufs.
func advance(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs = bufs[1:]
	}
	if n > 0 {
		bufs[0] = bufs[0][n:]
	}
	return bufs
}
