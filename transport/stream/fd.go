//go:build unix

package stream

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/transport"
)

const (
	// socketBlock is what a system call moves best: half a cache of 512 KiB next to
	// the core.
	socketBlock = 256 << 10
	stagingSize = 16 << 10 // bytes that Peek shows at most; longer Reads go past it
	// callMost bounds what one system call moves: Go's collector has to wait for it.
	callMost = 1 << 20
	dropMost = 64 // reads between two looks at the clock, while closing
)

// socket is a stream over a descriptor of its own.
type socket struct {
	link
	control  int    // of a unix socket: the other one, for the bye; else -1
	buf      []byte // staging
	from, to int    // what is in buf and was not taken
	sums     *sums  // nil: no checksums
	mute     bool   // poll could tell only that there are bytes, until they are read
}

func newSocket(path Path, peer, sock, control int) *socket {
	return &socket{link: link{peer: peer, path: path, sock: sock}, control: control, buf: make([]byte, stagingSize)}
}

func (s *socket) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.end != nil {
		return 0, s.errorOf("write to", s.end)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if s.sums != nil {
		return s.writeSums(p)
	}
	n, err := again(func() (int, error) { return writeNow(s.sock, p[:min(len(p), callMost)]) })
	if err != nil && !wouldBlock(err) {
		s.ended(err)
		return n, s.errorOf("write to", s.end)
	}
	count(&s.sent, n)
	return n, nil
}

// Block implements transport.BlockStream.
func (s *socket) Block() int { return socketBlock }

// Room is nil always: the system copies.
func (s *socket) Room() []byte { return nil }

func (s *socket) Commit(n int) error {
	if s.err != nil {
		return s.err
	}
	if n != 0 {
		return s.misuse("commit to", n, 0)
	}
	return nil
}

func (s *socket) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n := s.take(p)
	if n < len(p) {
		k, err := s.more(p[n:])
		if n += k; n == 0 && err != nil {
			return 0, err
		}
	}
	count(&s.received, n)
	return n, nil
}

// more moves what one system call finds: nothing is staged, but a next block.
func (s *socket) more(p []byte) (int, error) {
	if len(p) >= stagingSize && s.sums == nil {
		return s.receive(p[:min(len(p), callMost)])
	}
	if s.from == s.to {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	return s.take(p), nil
}

// take moves what is staged.
func (s *socket) take(p []byte) int {
	n := copy(p, s.buf[s.from:s.to])
	s.from += n
	if s.sums != nil {
		s.prove()
	}
	return n
}

// fill stages what there is; nothing is staged.
func (s *socket) fill() error {
	if s.sums != nil {
		return s.fillSums()
	}
	n, err := s.receive(s.buf)
	s.from, s.to = 0, n
	return err
}

// try stages a little, and reports whether there is something to read.
func (s *socket) try() bool {
	if !s.readable() {
		_ = s.fill() // an error stays
	}
	return s.readable()
}

// receive reads what there is: 0 is no error.
func (s *socket) receive(p []byte) (int, error) {
	s.mute = false
	n, err := again(func() (int, error) { return readNow(s.sock, p) })
	switch {
	case err == nil && n > 0, err != nil && wouldBlock(err):
		return n, nil
	}
	s.ended(err)
	return 0, s.fail("read from", s.end)
}

func (s *socket) Peek() ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.from == s.to {
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	return s.buf[s.from:s.to:s.to], nil
}

func (s *socket) Release(n int) {
	if s.err != nil {
		return
	}
	if n < 0 || n > s.to-s.from {
		_ = s.misuse("release of", n, s.to-s.from) // the next call returns it
		return
	}
	s.from += n
	count(&s.received, n)
	if s.sums != nil {
		s.prove()
	}
}

// ended finds out why the peer is gone: err is that of a system call, nil for an end of file.
func (s *socket) ended(err error) {
	switch {
	case s.end != nil:
	case s.control >= 0:
		var bye [1]byte
		if n, _ := again(func() (int, error) { return unix.Read(s.control, bye[:]) }); n == 1 {
			s.end = transport.ErrPeerClosed
		} else {
			s.end = transport.ErrPeerLost
		}
	case err == nil || errors.Is(err, unix.EPIPE): // a reset after the end of file is a broken pipe
		s.end = transport.ErrPeerClosed
	default:
		s.end = fmt.Errorf("%w: %w", transport.ErrPeerLost, err)
	}
}

func (s *socket) readable() bool { return s.err != nil || s.end != nil || s.from < s.to }
func (s *socket) writable() bool { return s.err != nil || s.end != nil }

func (s *socket) sleep(bool, bool) {}
func (s *socket) wake()            {}

func (s *socket) events(in, out bool) int16 {
	var e int16
	if in {
		e |= unix.POLLIN
	}
	if out {
		e |= unix.POLLOUT
	}
	if pollHangup != 0 {
		return e | pollHangup
	}
	if !in && !s.mute { // only a read tells of the end
		e |= unix.POLLIN
	}
	return e
}

func (s *socket) heard(events int16) {
	if pollHangup == 0 && events&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) == 0 {
		if events&unix.POLLIN == 0 {
			return
		}
		var b [1]byte
		n, _, err := unix.Recvfrom(s.sock, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if n > 0 || err != nil {
			s.mute = true
			return
		}
		s.ended(nil)
		return
	}
	if events&(pollHangup|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) == 0 {
		return
	}
	var err error
	if code, serr := unix.GetsockoptInt(s.sock, unix.SOL_SOCKET, unix.SO_ERROR); serr != nil {
		err = serr
	} else if code != 0 {
		err = unix.Errno(code)
	}
	s.ended(err)
}

func (s *socket) bye() {
	if s.control >= 0 {
		_, _ = again(func() (int, error) { return unix.Write(s.control, []byte{1}) }) // it has room, or no reader
	} else {
		_ = unix.SetsockoptLinger(s.sock, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{})
	}
	_ = unix.Shutdown(s.sock, unix.SHUT_WR) // fails if the peer is gone
}

// drop reads on until the peer has ended as well: to close a tcp socket with bytes
// unread resets it, and might destroy the end of file or what is before it. A unix
// socket keeps what was written to it.
func (s *socket) drop() bool {
	if s.control >= 0 {
		return false
	}
	for range dropMost { // one that sends on and on does not keep us
		n, err := again(func() (int, error) { return unix.Read(s.sock, s.buf) })
		if n == 0 {
			return err != nil && wouldBlock(err)
		}
	}
	return true
}

func (s *socket) free() {
	_ = unix.Close(s.sock)
	if s.control >= 0 {
		_ = unix.Close(s.control)
	}
	s.buf, s.from, s.to = nil, 0, 0
}
