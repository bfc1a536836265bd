package sock

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/wire"
)

func (p *peer) send(ctx context.Context, tag uint32, head, body []byte) error {
	if err := p.reserve(ctx, tag); err != nil {
		return err
	}
	select {
	case p.writing <- struct{}{}:
	default:
		select {
		case p.writing <- struct{}{}:
		case <-p.gone:
			return p.reason()
		case <-ctx.Done():
			p.mu.Lock()
			defer p.mu.Unlock()
			if n := p.lines.Get(tag, idle); n != nil {
				p.release(n)
			}
			return context.Cause(ctx)
		}
	}
	err := p.writeMessage(ctx, tag, head, body)
	<-p.writing
	return err
}

// writeMessage writes a message for which a credit was taken, or, if it is too
// long for the credit, says so to the peer. The caller holds writing.
func (p *peer) writeMessage(ctx context.Context, tag uint32, head, body []byte) error {
	p.mu.Lock()
	if p.err != nil {
		defer p.mu.Unlock()
		return p.err
	}
	room := min(p.lines.Get(tag, idle).rooms.Pop(), p.e.cfg.MaxMessage)
	p.mu.Unlock()

	size := len(head) + len(body)
	if size > room {
		h := p.e.header(wire.Refuse, tag)
		h.Arg = uint32(min(int64(size), math.MaxUint32))
		if err := p.write(ctx, h, nil, nil); err != nil {
			return err
		}
		return fmt.Errorf("%w: message of %d bytes, room for %d", transport.ErrLimit, size, room)
	}
	h := p.e.header(wire.Data, tag)
	h.Length = uint32(size)
	if p.e.cfg.Checksum {
		h.Flags = wire.FlagChecksum
		h.Checksum = wire.Sum(wire.Sum(0, head), body)
	}
	if err := p.write(ctx, h, head, body); err != nil {
		return err
	}
	p.e.messagesSent.Add(1)
	p.e.bytesSent.Add(int64(size))
	return nil
}

// write writes what is due, then h, head and body, in one go. If that fails
// after it began, the peer is gone. The caller holds writing.
func (p *peer) write(ctx context.Context, h wire.Header, head, body []byte) error {
	if err := h.Encode(&p.header); err != nil {
		return err
	}
	p.bufs = [4][]byte{p.takeDue(), p.header[:], head, body}
	return p.writeBufs(ctx)
}

func (p *peer) writeBufs(ctx context.Context) error {
	bufs := p.bufs[:0]
	for _, b := range p.bufs {
		if len(b) > 0 {
			bufs = append(bufs, b)
		}
	}
	n, err := p.s.write(ctx, p.gone, bufs)
	p.bufs = [4][]byte{} // keep nothing of the caller's alive
	if err == nil {
		p.lastSent.Store(time.Now().UnixNano())
		return nil
	}
	p.broken = true
	if cause := context.Cause(ctx); cause != nil {
		p.fail(fmt.Errorf("%w: gave the connection up after %d bytes of a message: %w", transport.ErrPeerLost, n, cause))
		p.shut()
		return cause
	}
	// The reader knows better why: there may be a bye to read yet.
	t := time.NewTimer(byePatience)
	defer t.Stop()
	select {
	case <-p.gone:
	case <-t.C:
		p.fail(fmt.Errorf("%w: write: %w", transport.ErrPeerLost, err))
		p.shut()
	}
	return p.reason()
}

// takeDue returns the control frames that are due; they stay valid until the
// next call. The caller holds writing.
func (p *peer) takeDue() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.due
	p.due, p.sent = p.sent[:0], due
	return due
}

// flushLoop writes control frames that no message took along.
func (p *peer) flushLoop() {
	for {
		select {
		case <-p.kick:
		case <-p.gone:
			return
		}
		// Whoever posted is likely to send next: let that take the credit.
		runtime.Gosched()
		select {
		case p.writing <- struct{}{}:
		case <-p.gone:
			return
		}
		p.flush()
		<-p.writing
	}
}

func (p *peer) flush() {
	if p.broken {
		return
	}
	if p.bufs[0] = p.takeDue(); len(p.bufs[0]) > 0 {
		_ = p.writeBufs(context.Background()) // the peer is gone then, and all who wait know
	}
}
