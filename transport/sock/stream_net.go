package sock

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// netStream is the portable stream: net.Conn as it is.
type netStream struct {
	c    net.Conn
	bufs net.Buffers // kept here so that WriteTo does not allocate it
}

func newNetStream(c net.Conn) *netStream { return &netStream{c: c} }

func (s *netStream) conn() net.Conn { return s.c }

func (s *netStream) read(p []byte) (int, error) { return s.c.Read(p) }

func (s *netStream) write(ctx context.Context, gone <-chan struct{}, bufs [][]byte) (int, error) {
	s.bufs = bufs
	var sum int
	for {
		if err := s.c.SetWriteDeadline(time.Now().Add(cancelCheck)); err != nil {
			return sum, err
		}
		n, err := s.bufs.WriteTo(s.c)
		sum += int(n)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			s.bufs = nil
			return sum, err
		}
		if err := stopped(ctx, gone); err != nil {
			return sum, err
		}
	}
}
