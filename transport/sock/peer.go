package sock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/wire"
)

// peer is one connection and what waits on it.
//
// The reader never waits for anybody but the socket, so two ranks that send to
// each other cannot block each other. Whoever writes holds the one place in
// writing; it may wait for that with a ctx, which a mutex does not allow.
type peer struct {
	e    *Endpoint
	rank int
	s    stream
	in   reader

	lastHeard, lastSent atomic.Int64 // Unix time in ns
	closing             atomic.Bool  // this side is saying bye

	gone     chan struct{} // closed once err is set
	readDone chan struct{} // closed when the reader has ended
	kick     chan struct{} // something is due
	writing  chan struct{}

	// Of whoever holds writing.
	broken bool // a frame was cut: nothing may follow
	header [wire.HeaderSize]byte
	bufs   [4][]byte
	sent   []byte // last written, to become due again

	mu    sync.Mutex
	err   error // why the peer is gone
	lines transport.Lines[line]
	due   []byte // control frames to be written
	spare []*waiter
}

// line is one tag of a peer, both ways.
type line struct {
	posted  transport.Queue[*transport.Receive]
	rooms   transport.Queue[int] // of the peer's credits, in order
	free    int                  // how many of the rooms no Send has taken
	waiting transport.Queue[*waiter]
}

func idle(n *line) bool { return n.posted.Len() == 0 && n.rooms.Len() == 0 && n.waiting.Len() == 0 }

// waiter is a Send that waits for a credit.
type waiter struct{ done chan error }

func newPeer(e *Endpoint, rank int, c net.Conn) *peer {
	p := &peer{
		e: e, rank: rank, s: stream{Conn: c},
		gone: make(chan struct{}), readDone: make(chan struct{}),
		kick: make(chan struct{}, 1), writing: make(chan struct{}, 1),
	}
	p.in = reader{c: c, buf: make([]byte, readBuffer), heard: &p.lastHeard}
	now := time.Now().UnixNano()
	p.lastHeard.Store(now)
	p.lastSent.Store(now)
	return p
}

func tooManyTags() error {
	return fmt.Errorf("%w: more than %d tags busy", transport.ErrLimit, transport.MaxTags)
}

func (p *peer) post(r *transport.Receive) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	n := p.lines.Get(r.Tag, idle)
	if n == nil {
		return tooManyTags()
	}
	if n.posted.Len() >= transport.MaxPosted {
		return fmt.Errorf("%w: more than %d receives posted", transport.ErrLimit, transport.MaxPosted)
	}
	h := p.e.header(wire.Credit, r.Tag)
	h.Arg = uint32(min(r.Room(), p.e.cfg.MaxMessage))
	r.Arm(p.e.cfg.Rank)
	n.posted.Push(r)
	return p.owe(h)
}

// owe puts a control frame among those that are due. p.mu is held.
func (p *peer) owe(h wire.Header) error {
	n := len(p.due)
	p.due = slices.Grow(p.due, wire.HeaderSize)[:n+wire.HeaderSize]
	if err := h.Encode((*[wire.HeaderSize]byte)(p.due[n:])); err != nil {
		p.due = p.due[:n]
		return err
	}
	select {
	case p.kick <- struct{}{}:
	default:
	}
	return nil
}

func (p *peer) ping() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && len(p.due) == 0 {
		_ = p.owe(p.e.header(wire.Ping, 0)) // a ping always encodes
	}
}

// credited takes a credit of room bytes from the peer.
func (p *peer) credited(tag uint32, room int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.lines.Get(tag, idle)
	if n == nil {
		return tooManyTags()
	}
	if n.rooms.Len() >= transport.MaxPosted {
		return fmt.Errorf("%w: %d credits for tag %d", transport.ErrCorrupt, n.rooms.Len(), tag)
	}
	n.rooms.Push(room)
	p.release(n)
	return nil
}

// release lets the first waiter have a credit, or keeps it. p.mu is held.
func (p *peer) release(n *line) {
	if n.waiting.Len() > 0 {
		n.waiting.Pop().done <- nil
	} else {
		n.free++
	}
}

// reserve waits for a credit.
func (p *peer) reserve(ctx context.Context, tag uint32) error {
	p.mu.Lock()
	if p.err != nil {
		defer p.mu.Unlock()
		return p.err
	}
	n := p.lines.Get(tag, idle)
	if n == nil {
		p.mu.Unlock()
		return tooManyTags()
	}
	if n.free > 0 {
		n.free--
		p.mu.Unlock()
		return nil
	}
	if n.waiting.Len() >= transport.MaxSends {
		p.mu.Unlock()
		return fmt.Errorf("%w: more than %d sends waiting", transport.ErrLimit, transport.MaxSends)
	}
	var w *waiter
	if k := len(p.spare); k > 0 {
		w, p.spare = p.spare[k-1], p.spare[:k-1]
	} else {
		w = &waiter{done: make(chan error, 1)}
	}
	n.waiting.Push(w)
	p.mu.Unlock()

	var err error
	select {
	case err = <-w.done:
	case <-ctx.Done():
		err = p.forget(tag, w, context.Cause(ctx))
	}
	p.mu.Lock()
	p.spare = append(p.spare, w)
	p.mu.Unlock()
	return err
}

// forget takes w from its line. If w was served at the same moment its credit
// goes to the next.
func (p *peer) forget(tag uint32, w *waiter, cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.lines.Get(tag, idle)
	if n != nil && n.waiting.RemoveFunc(func(o *waiter) bool { return o == w }) {
		return cause
	}
	if err := <-w.done; err != nil { // it is there already
		return err
	}
	p.release(n)
	return cause
}

// fail ends all waits on the peer with err, unless it is gone already.
func (p *peer) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	close(p.gone)
	p.lines.All(func(tag uint32, n *line) {
		for n.posted.Len() > 0 {
			n.posted.Pop().Complete(0, p.e.errorOf(p.rank, "receive from", tag, err))
		}
		for n.waiting.Len() > 0 {
			n.waiting.Pop().done <- err
		}
	})
}

// reason returns why the peer is gone; it is called after that is so.
func (p *peer) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// shut ends the connection; both loops notice.
func (p *peer) shut() { closeQuietly(p.s.Conn) }

// close says bye. It returns when the peer has heard it, or will not.
func (p *peer) close() {
	p.closing.Store(true)
	// The reader is interrupted first and sees err only afterwards, so that
	// its own, later deadline stands.
	_ = p.s.SetReadDeadline(time.Unix(1, 0))
	p.fail(transport.ErrClosed) // or the reader has done so in our name
	if errors.Is(p.reason(), transport.ErrClosed) {
		p.writing <- struct{}{} // whoever holds it notices gone
		if !p.broken {
			p.broken = true
			p.bye()
		}
		<-p.writing
	}
	<-p.readDone
	p.shut()
}

// bye writes what is due and a bye, and ends this side's half. If the peer does
// not take it, it will see a lost connection.
func (p *peer) bye() {
	if err := p.e.header(wire.Bye, 0).Encode(&p.header); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), byePatience)
	defer cancel()
	p.bufs = [4][]byte{p.takeDue(), p.header[:]}
	if _, err := p.s.write(ctx, nil, p.bufs[:2]); err != nil {
		p.shut()
		return
	}
	if half, ok := p.s.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
