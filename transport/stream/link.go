//go:build unix

package stream

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/transport"
)

// body is a stream as its group sees it.
type body interface {
	transport.Stream
	base() *link
	// readable and writable report what needs no system call: a socket may be
	// either without them.
	readable() bool
	writable() bool
	// sleep says to the peer that this rank sleeps until there are bytes or room;
	// wake takes it back.
	sleep(bytes, room bool)
	wake()
	// events is what poll is to watch: in and out say what Park waits for.
	events(in, out bool) int16
	// heard takes what poll found. It sets end if the peer is gone.
	heard(events int16)
	// bye tells the peer that this rank closes in good order.
	bye()
	// drop throws away what has arrived and reports whether more may come.
	drop() (more bool)
	// free gives everything back.
	free()
}

// link is what the bodies share.
type link struct {
	g    *Group
	peer int
	path Path
	sock int // what poll watches

	end error // the peer is gone: known before all that it wrote is read
	err error // what every call returns

	sent, received atomic.Int64
	counted        int64        // of received, when heardAt was set
	heardAt        atomic.Int64 // Unix time in ns
}

func (l *link) base() *link { return l }

// fail makes err what every later call returns.
func (l *link) fail(op string, err error) error {
	if l.err == nil {
		l.err = l.errorOf(op, err)
	}
	return l.err
}

func (l *link) errorOf(op string, err error) error {
	return &transport.PeerError{Rank: l.g.cfg.Rank, Peer: l.peer, Op: op, Tag: l.g.cfg.Tag, Err: err}
}

// misuse is a Commit or Release of more than was given.
func (l *link) misuse(op string, n, most int) error {
	return l.fail(op, fmt.Errorf("%d bytes where there are %d", n, most))
}

// lost reports whether the peer is gone without a bye.
func (l *link) lost() bool { return l.end != nil && !errors.Is(l.end, transport.ErrPeerClosed) }

// note sets when the peer was heard, if bytes have come since the last time.
func (l *link) note(now int64) {
	if n := l.received.Load(); n != l.counted {
		l.counted = n
		l.heardAt.Store(now)
	}
}

func count(c *atomic.Int64, n int) { c.Store(c.Load() + int64(n)) } // only one writes it

func (l *link) lastHeard() time.Time { return time.Unix(0, l.heardAt.Load()) }

// again runs a system call until no signal interrupts it.
func again(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR { //nolint:errorlint // as the system returned it
			return max(n, 0), err
		}
	}
}

// wouldBlock reports whether a call on a descriptor has nothing to do now.
func wouldBlock(err error) bool {
	return err == unix.EAGAIN || err == unix.EWOULDBLOCK //nolint:errorlint // as the system returned it
}
