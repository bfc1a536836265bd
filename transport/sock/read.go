package sock

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/wire"
)

// reader reads frames from a connection: headers and short bodies through a buffer,
// long bodies straight to where they belong.
type reader struct {
	c        net.Conn
	buf      []byte
	from, to int // what is in buf and was not taken
	heard    *atomic.Int64
}

// more reads into p and notes the time.
func (r *reader) more(p []byte) (int, error) {
	n, err := r.c.Read(p)
	if n > 0 {
		r.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// header returns the next header.
func (r *reader) header() (wire.Header, error) {
	for r.to-r.from < wire.HeaderSize {
		if r.from > 0 {
			r.to = copy(r.buf, r.buf[r.from:r.to])
			r.from = 0
		}
		n, err := r.more(r.buf[r.to:])
		if err != nil {
			return wire.Header{}, err
		}
		r.to += n
	}
	h, err := wire.Decode((*[wire.HeaderSize]byte)(r.buf[r.from:]))
	r.from += wire.HeaderSize
	return h, err
}

// body reads len(p) bytes and returns their sum, if it is wanted.
func (r *reader) body(p []byte, sum bool) (uint32, error) {
	var crc uint32
	for len(p) > 0 {
		var n int
		if r.from < r.to {
			n = copy(p, r.buf[r.from:r.to])
			r.from += n
		} else if len(p) >= len(r.buf)/4 {
			var err error
			if n, err = r.more(p); err != nil {
				return crc, err
			}
		} else if err := r.refill(); err != nil {
			return crc, err
		}
		if sum {
			crc = wire.Sum(crc, p[:n])
		}
		p = p[n:]
	}
	return crc, nil
}

// refill fills the empty buffer with what there is.
func (r *reader) refill() error {
	n, err := r.more(r.buf)
	r.from, r.to = 0, n
	return err
}

// discard drops n bytes.
func (r *reader) discard(n int) error {
	for n > 0 {
		if r.from == r.to {
			if err := r.refill(); err != nil {
				return err
			}
		}
		k := min(n, r.to-r.from)
		r.from += k
		n -= k
	}
	return nil
}

// readLoop takes frames until the peer is gone.
func (p *peer) readLoop() {
	defer close(p.readDone)
	var current *transport.Receive // taken from its line, not completed
	for {
		err := p.readFrame(&current)
		if err == nil {
			continue
		}
		if p.closing.Load() { // it is our own Close that ended it
			err = transport.ErrClosed
		} else if !errors.Is(err, transport.ErrPeerClosed) && !errors.Is(err, transport.ErrPeerLost) {
			err = fmt.Errorf("%w: %w", transport.ErrPeerLost, err)
		}
		p.fail(err)
		break
	}
	if current != nil {
		current.Complete(0, p.e.errorOf(p.rank, "receive from", current.Tag, p.reason()))
	}
	if !p.closing.Load() {
		p.shut()
		return
	}
	// Drop what the peer still says until it has heard our bye: to close with
	// bytes unread would reset the connection and might destroy the bye.
	_ = p.s.SetReadDeadline(time.Now().Add(byeLinger))
	for p.in.refill() == nil {
	}
}

// readFrame takes one frame. If it fails with a receive in its hands, that is in
// *current.
func (p *peer) readFrame(current **transport.Receive) error {
	h, err := p.in.header()
	if err != nil {
		return err
	}
	if h.Generation != p.e.cfg.Generation {
		return fmt.Errorf("%w: %v of generation %d, this is %d", transport.ErrCorrupt, h.Kind, h.Generation, p.e.cfg.Generation)
	}
	switch h.Kind {
	case wire.Data:
		return p.data(h, current)
	case wire.Credit:
		return p.credited(h.Tag, int(h.Arg))
	case wire.Refuse:
		return p.tooLong(h, current)
	case wire.Bye:
		return transport.ErrPeerClosed
	case wire.Ping:
		return nil
	case wire.Hello, wire.Welcome:
	}
	return fmt.Errorf("%w: %v after the handshake", transport.ErrCorrupt, h.Kind)
}

// data reads a message into the receive that was posted for it.
func (p *peer) data(h wire.Header, current **transport.Receive) error {
	r, err := p.posted(h.Tag)
	if err != nil {
		return err
	}
	*current = r
	n := int(h.Length)
	if room := min(r.Room(), p.e.cfg.MaxMessage); n > room {
		return fmt.Errorf("%w: message of %d bytes for tag %d, credit for %d", transport.ErrCorrupt, n, h.Tag, room)
	}
	if !r.Fit(n) {
		if err := p.in.discard(n); err != nil {
			return err
		}
		*current = nil
		err := fmt.Errorf("%w: message of %d bytes, Grow gave %d", transport.ErrLimit, n, len(r.Buf))
		r.Complete(0, p.e.errorOf(p.rank, "receive from", h.Tag, err))
		return nil
	}
	sum, err := p.in.body(r.Buf[:n], h.Flags&wire.FlagChecksum != 0)
	if err != nil {
		return err
	}
	if err := h.CheckPayload(sum); err != nil {
		return fmt.Errorf("%w: tag %d: %w", transport.ErrCorrupt, h.Tag, err)
	}
	p.e.messagesReceived.Add(1)
	p.e.bytesReceived.Add(int64(n))
	*current = nil
	r.Complete(n, nil)
	return nil
}

// tooLong fails the receive whose message the peer could not send.
func (p *peer) tooLong(h wire.Header, current **transport.Receive) error {
	r, err := p.posted(h.Tag)
	if err != nil {
		return err
	}
	*current = r
	if err := p.in.discard(int(h.Length)); err != nil {
		return err
	}
	*current = nil
	err = fmt.Errorf("%w: message of %d bytes, room for %d", transport.ErrLimit, h.Arg, min(r.Room(), p.e.cfg.MaxMessage))
	r.Complete(0, p.e.errorOf(p.rank, "receive from", h.Tag, err))
	return nil
}

// posted takes the next receive of tag from its line.
func (p *peer) posted(tag uint32) (*transport.Receive, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	n := p.lines.Get(tag, idle)
	if n == nil || n.posted.Len() == 0 {
		return nil, fmt.Errorf("%w: message for tag %d without a credit", transport.ErrCorrupt, tag)
	}
	return n.posted.Pop(), nil
}
