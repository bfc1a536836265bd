package sock

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spins is how often a read that finds nothing tries again before it parks. In
// between it lets other goroutines run, so it costs an idle processor some
// microseconds and a busy one nothing.
const spins = 16

// rawStream reads and writes the file descriptor itself. Against net.Conn it
// saves setting a deadline for every write, and may spin before it parks.
type rawStream struct {
	c   net.Conn
	raw syscall.RawConn

	readOnce func(fd uintptr) bool // tryRead, made once
	in       []byte
	inN      int
	inErr    error
	tries    int

	writeOnce func(fd uintptr) bool // tryWrite, made once
	out       [][]byte
	outN      int
	outErr    error
	park      bool // wait until the descriptor can be written
}

func newStream(c net.Conn) stream {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return newNetStream(c)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return newNetStream(c)
	}
	s := &rawStream{c: c, raw: raw}
	s.readOnce, s.writeOnce = s.tryRead, s.tryWrite
	return s
}

func (s *rawStream) conn() net.Conn { return s.c }

func (s *rawStream) read(p []byte) (int, error) {
	s.in, s.tries = p, spins
	err := s.raw.Read(s.readOnce)
	s.in = nil
	if err != nil {
		return 0, err
	}
	if s.inErr == nil && s.inN == 0 {
		return 0, io.EOF
	}
	return s.inN, s.inErr
}

func (s *rawStream) tryRead(fd uintptr) bool {
	for {
		s.inN, s.inErr = unix.Read(int(fd), s.in)
		switch s.inErr {
		case nil:
			return true
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			if s.tries == 0 {
				return false
			}
			s.tries--
			runtime.Gosched()
		default:
			s.inN = 0
			return true
		}
	}
}

func (s *rawStream) write(ctx context.Context, gone <-chan struct{}, bufs [][]byte) (int, error) {
	s.out, s.outN, s.outErr, s.park = bufs, 0, nil, false
	defer func() { s.out = nil }()
	for {
		err := s.raw.Write(s.writeOnce)
		switch {
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return s.outN, err
		case s.outErr != nil:
			return s.outN, s.outErr
		case len(s.out) == 0 && s.park:
			return s.outN, s.c.SetWriteDeadline(time.Time{})
		case len(s.out) == 0:
			return s.outN, nil
		}
		if err := stopped(ctx, gone); err != nil {
			return s.outN, err
		}
		// The first attempt found the buffer full: from now on park, and wake
		// up now and then to look at ctx.
		s.park = true
		if err := s.c.SetWriteDeadline(time.Now().Add(cancelCheck)); err != nil {
			return s.outN, err
		}
	}
}

// tryWrite writes as much as the descriptor takes. It returns false to park.
func (s *rawStream) tryWrite(fd uintptr) bool {
	for len(s.out) > 0 {
		n, err := unix.Writev(int(fd), s.out)
		switch err {
		case nil:
			s.outN += n
			s.out = advance(s.out, n)
		case unix.EINTR:
		case unix.EAGAIN:
			return !s.park
		default:
			s.outErr = err
			return true
		}
	}
	return true
}
