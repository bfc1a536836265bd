package collective

import (
	"context"
	"errors"
	"fmt"

	"github.com/gangline/gangline/collective/reduce"
	"github.com/gangline/gangline/transport"
)

// blockBytes is how much is moved at once before the other direction has its turn, unless
// the stream says: what was received is still in the cache next to the core when it is
// sent on. Where two cores share no cache, each turn costs a few hundred nanoseconds
// in which a core waits for the counters that the other one has written.
const blockBytes = 64 << 10

// line is a partner of a rank.
type line struct {
	rank, index int
	stream      transport.Stream
	block       int  // bytes that are moved at once
	copies      bool // Peek is a copy: read sums into scratch memory instead
	// mine is sent before the first byte of a run, due is what the partner should send.
	mine, due, theirs [openingBytes]byte
	sent, got         int // bytes of mine and theirs
}

// engine moves the bytes of a program over streams. It has two cursors: part s of the
// sends, of which sent bytes are gone, and part r of the receives, of which got
// bytes are in the buffer.
//
// What one cursor may do is bounded by the other: a part that depends on one of the
// other direction goes as far as that has gone, byte by byte for a send,
// element by element for a sum. So long buffers are in flight on all ranks at once,
// whatever the schedule.
type engine struct {
	*program
	kernel  *reduce.Kernel
	streams transport.Streams
	size    int // of an element
	rank    int // of this one
	lines   []line
	bufs    [2][]byte

	s, sent int
	r, got  int
	// aside are the first bytes of an element of which the rest has not come, or lies
	// at the other end of a ring; of a stream that copies they are at the begin of scratch.
	aside   [8]byte
	asides  int
	scratch []byte
}

// connect makes the line with a partner.
func (e *engine) connect(rank, index int, s transport.Stream) *line {
	l := line{rank: rank, index: index, stream: s, block: blockBytes}
	if b, ok := s.(transport.BlockStream); ok {
		l.block, l.copies = max(b.Block(), e.size), true // an element at least
		if most := min(l.block, e.longest()); len(e.scratch) < most {
			e.scratch = make([]byte, most)
		}
	}
	e.lines = append(e.lines, l)
	return &e.lines[len(e.lines)-1]
}

// begin is before a run.
func (e *engine) begin(run uint64, first, second []byte) {
	e.bufs = [2][]byte{first, second}
	e.s, e.sent, e.r, e.got, e.asides = 0, 0, 0, 0, 0
	for i := range e.lines {
		l := &e.lines[i]
		l.sent, l.got = 0, 0
		setRun(&l.mine, run)
		setRun(&l.due, run)
	}
}

// run moves until all is moved. Of an error it says what failed, and on which line.
func (e *engine) run(ctx context.Context) (op string, at int, err error) {
	for {
		sent, sendable, err := e.send()
		if err != nil {
			return "send to", e.sends[e.s].peer, err
		}
		got, receivable, err := e.receive()
		if err != nil {
			return "receive from", e.recvs[e.r].peer, err
		}
		if e.r == len(e.recvs) && e.s == len(e.sends) {
			return "", 0, nil
		}
		if sent || got {
			continue
		}
		if op, at, err := e.park(ctx, sendable, receivable); err != nil {
			return op, at, err
		}
	}
}

// park waits until a cursor that is not held up by the other one can go on.
func (e *engine) park(ctx context.Context, sendable, receivable bool) (op string, at int, err error) {
	var in, out transport.Stream
	switch {
	case receivable:
		op, at = "receive from", e.recvs[e.r].peer
		in = e.lines[at].stream
	case sendable:
		op, at = "send to", e.sends[e.s].peer
	default:
		return "wait for", 0, errors.New("the schedule waits for itself")
	}
	if sendable {
		out = e.lines[e.sends[e.s].peer].stream
	}
	return op, at, e.streams.Park(ctx, in, out)
}

// sendLimit is how far part s may be sent: as far as the receive has come that it
// depends on.
func (e *engine) sendLimit(p *part) int {
	switch {
	case p.after < e.r:
		return p.hi - p.lo
	case p.after > e.r:
		return 0
	}
	r := &e.recvs[p.after]
	return min(max(r.lo+e.got-p.lo, 0), p.hi-p.lo)
}

// receiveLimit is how far part r may be received: what is still to be sent must not be
// overwritten.
func (e *engine) receiveLimit(p *part) int {
	switch {
	case p.after < e.s:
		return p.hi - p.lo
	case p.after > e.s:
		return 0
	}
	s := &e.sends[p.after]
	from, at := s.lo+e.sent, p.lo+e.got
	if at >= s.hi {
		return p.hi - p.lo
	}
	return min(max(from-p.lo, e.got), p.hi-p.lo)
}

// open sends what is left of the opening, and reports whether all is sent.
func (e *engine) open(l *line) (bool, error) {
	n, err := l.stream.Write(l.mine[l.sent:])
	l.sent += n
	return l.sent == openingBytes, err
}

// send moves the sends on. It reports whether anything moved, and whether the next
// one waits for its partner alone.
func (e *engine) send() (moved, waits bool, err error) {
	for e.s < len(e.sends) {
		p := &e.sends[e.s]
		l := &e.lines[p.peer]
		if l.sent < openingBytes {
			if ok, err := e.open(l); !ok || err != nil {
				return moved, true, err
			}
			moved = true
		}
		limit := e.sendLimit(p)
		if limit == e.sent {
			return moved, false, nil
		}
		most := min(limit, e.sent+l.block)
		n, err := l.stream.Write(e.bufs[p.buf][p.lo+e.sent : p.lo+most])
		if err != nil {
			return moved, true, err
		}
		moved = moved || n > 0
		short := e.sent+n < most
		e.sentMore(p, n)
		if short || n == l.block {
			return moved, true, nil
		}
	}
	return moved, false, nil
}

// sentMore moves the cursor of the sends.
func (e *engine) sentMore(p *part, n int) {
	e.sent += n
	if e.sent == p.hi-p.lo {
		e.s, e.sent = e.s+1, 0
	}
}

// gotMore moves the cursor of the receives.
func (e *engine) gotMore(p *part, n int) {
	e.got += n
	if e.got == p.hi-p.lo {
		e.r, e.got = e.r+1, 0
	}
}

// receive moves the receives on by a block at most. It reports as send does.
func (e *engine) receive() (moved, waits bool, err error) {
	if e.r == len(e.recvs) {
		return false, false, nil
	}
	p := &e.recvs[e.r]
	l := &e.lines[p.peer]
	if l.got < openingBytes {
		if ok, err := e.greet(l); !ok || err != nil {
			return false, true, err
		}
	}
	limit := e.receiveLimit(p)
	if p.add {
		limit = e.got + (limit-e.got)/e.size*e.size
	}
	if limit == e.got {
		return false, false, nil
	}
	limit = min(limit, e.got+l.block)
	var n int
	switch {
	case !p.add:
		n, err = l.stream.Read(e.bufs[p.buf][p.lo+e.got : p.lo+limit])
		e.gotMore(p, n)
	case l.copies:
		n, err = e.addRead(p, l, limit)
	default:
		n, err = e.addPiece(p, l, limit)
	}
	return n > 0, true, err
}

// greet takes the partner's opening and compares it.
func (e *engine) greet(l *line) (bool, error) {
	n, err := l.stream.Read(l.theirs[l.got:])
	l.got += n
	if err != nil || l.got < openingBytes || l.theirs == l.due {
		return l.got == openingBytes, err
	}
	theirs, ok := decodeOpening(&l.theirs)
	if !ok {
		return false, fmt.Errorf("what it sent begins no collective: the streams are out of step: %w", transport.ErrCorrupt)
	}
	mine, _ := decodeOpening(&l.due)
	if mine.differences(&theirs) == "" {
		return true, nil
	}
	return false, &MismatchError{Rank: e.rank, Peer: l.rank, Mine: mine, Theirs: theirs}
}

// addPiece adds what has come, where it lies, to the buffer.
func (e *engine) addPiece(p *part, l *line, limit int) (int, error) {
	in, err := l.stream.Peek()
	if err != nil || len(in) == 0 {
		return 0, err
	}
	dst := e.bufs[p.buf][p.lo+e.got : p.lo+limit]
	if len(in) < e.size || e.asides > 0 {
		return e.straddle(p, l, dst, in), nil
	}
	n := min(len(dst), len(in)) / e.size * e.size
	e.combine(p, dst[:n], in[:n])
	l.stream.Release(n)
	e.gotMore(p, n)
	return n, nil
}

// addRead reads into scratch memory, no further than the part goes, so that what comes
// after it can be read to where it belongs, and adds that to the buffer.
func (e *engine) addRead(p *part, l *line, limit int) (int, error) {
	n, err := l.stream.Read(e.scratch[e.asides : limit-e.got])
	have := e.asides + n
	whole := have / e.size * e.size
	if whole > 0 {
		at := p.lo + e.got
		e.combine(p, e.bufs[p.buf][at:at+whole], e.scratch[:whole])
		copy(e.scratch, e.scratch[whole:have])
	}
	e.asides = have - whole
	e.gotMore(p, whole)
	return n, err
}

// straddle takes an element that does not lie in one piece, byte by byte.
func (e *engine) straddle(p *part, l *line, dst, in []byte) int {
	n := copy(e.aside[e.asides:e.size], in)
	e.asides += n
	l.stream.Release(n)
	if e.asides == e.size {
		e.asides = 0
		e.combine(p, dst[:e.size], e.aside[:e.size])
		e.gotMore(p, e.size)
	}
	return n
}

// combine adds to the buffer.
func (e *engine) combine(p *part, dst, in []byte) {
	if p.first {
		e.kernel.Combine(dst, in, dst)
	} else {
		e.kernel.Combine(dst, dst, in)
	}
	if p.scale {
		e.kernel.Scale(dst)
	}
}
