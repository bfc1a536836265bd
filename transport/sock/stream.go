package sock

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// stream is a connection as the data path uses it: one goroutine reads, and one
// at a time writes.
//
// It is net.Conn as it is. Reading and writing the descriptor itself
// (syscall.RawConn), without the deadline of every write and with 0, 4 or 16
// tries before a read parks, was measured between two processes with 64 bytes,
// 4 KiB and 16 MiB on a busy two-core machine: without tries it was the same
// within the noise, with tries slower, since a try takes the processor from the
// peer that would answer. Nearly all of the time is in the system calls.
type stream struct {
	net.Conn
	bufs net.Buffers // kept here so that WriteTo does not allocate it
}

// write writes all of bufs, which it consumes, and returns how many bytes it
// wrote. While it blocks it looks every cancelCheck whether ctx has ended or
// gone is closed: to watch a channel instead takes a goroutine or allocates.
func (s *stream) write(ctx context.Context, gone <-chan struct{}, bufs [][]byte) (int, error) {
	s.bufs = bufs
	var sum int
	for {
		if err := s.SetWriteDeadline(time.Now().Add(cancelCheck)); err != nil {
			return sum, err
		}
		n, err := s.bufs.WriteTo(s.Conn)
		sum += int(n)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			s.bufs = nil
			return sum, err
		}
		select {
		case <-gone:
			return sum, net.ErrClosed
		case <-ctx.Done():
			return sum, context.Cause(ctx)
		default:
		}
	}
}
