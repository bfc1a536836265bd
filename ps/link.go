package ps

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// link is the client's side of one store: one request at a time.
type link struct {
	c      *Client
	layout *Layout
	store  int
	rank   int           // of the server
	busy   chan struct{} // 1: held during a request
	broken error         // why no further request is possible

	verdict atomic.Pointer[Verdict] // the last one; nil: none yet

	q     request
	seq   uint64
	head  []byte
	keys  *tensor.Tensor
	picks []int // indices into a part's keys, of all table parts in order
	parts []picked
	rows  []*tensor.Tensor // by part: rows on their way between Data and the wire
	in    transport.Receive
	data  []*transport.Receive // by part
	reply reply
}

// picked is a part as it goes to the store.
type picked struct {
	part   *Part
	lo, hi int  // its picks
	direct bool // all keys are the store's: Data itself goes or comes
	bytes  int  // of its data message; 0: there is none
}

func newLink(c *Client, layout *Layout, store, rank int) *link {
	l := &link{c: c, layout: layout, store: store, rank: rank, busy: make(chan struct{}, 1), keys: tensor.New(tensor.I64, 0)}
	l.in = transport.Receive{Peer: rank, Tag: tag(store, tagReply), Buf: make([]byte, replyRoom)}
	l.in.Grow = func(n int) []byte {
		return make([]byte, min(n, replyHead+tailMax)) // too short: transport.ErrLimit
	}
	return l
}

// acquire waits for the store's turn.
func (l *link) acquire(ctx context.Context) error {
	select {
	case l.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.broken != nil {
		<-l.busy
		return fmt.Errorf("an earlier request failed: %w", l.broken)
	}
	return nil
}

func (l *link) release() { <-l.busy }

// prepare turns parts into the request's parts and keys.
func (l *link) prepare(parts []Part) error {
	l.q.parts, l.parts, l.picks = l.q.parts[:0], l.parts[:0], l.picks[:0]
	for i := range parts {
		p := &parts[i]
		if p.Keys == nil && p.Lo == p.Hi {
			continue // nothing of it is here
		}
		at := l.layout.find(p.State)
		if at < 0 {
			return fmt.Errorf("%w: the store does not hold state %d", ErrUsage, p.State)
		}
		st := &l.layout.States[at]
		if p.Data == nil || p.Data.DType() != st.DType || st.Table != (p.Keys != nil) {
			return fmt.Errorf("%w: state %s: data of the wrong dtype, or keys where there are none", ErrUsage, st.Name)
		}
		add := l.slice
		if st.Table {
			add = l.pick
		}
		if err := add(st, p); err != nil {
			return fmt.Errorf("%w: state %s: %w", ErrUsage, st.Name, err)
		}
	}
	return nil
}

func (l *link) slice(st *State, p *Part) error {
	if p.Lo != st.Lo || p.Hi != st.Hi || p.Data.Elems() != st.Shape.Elems() {
		return fmt.Errorf("part [%d, %d) of data with %d elements, the store holds [%d, %d) of %d",
			p.Lo, p.Hi, p.Data.Elems(), st.Lo, st.Hi, st.Shape.Elems())
	}
	l.add(wirePart{state: p.State, dtype: st.DType, a: p.Lo, b: p.Hi}, picked{part: p, direct: true})
	return nil
}

// pick chooses the keys that the store owns.
func (l *link) pick(st *State, p *Part) error {
	keys := p.Keys.I64()
	if p.Data.Elems() != len(keys)*st.Dim() {
		return fmt.Errorf("%d keys with %d elements of data, want rows of %d", len(keys), p.Data.Elems(), st.Dim())
	}
	lo, last := len(l.picks), int64(-1)
	for i, id := range keys {
		if id <= last || id >= int64(st.Shape[0]) {
			return fmt.Errorf("key %d after %d: want keys that ascend in [0, %d)", id, last, st.Shape[0])
		}
		last = id
		if StoreOf(id, l.layout.Stores) == l.store {
			l.picks = append(l.picks, i)
		}
	}
	n := len(l.picks) - lo
	w := wirePart{state: p.State, table: true, dtype: st.DType, a: n, b: st.Dim()}
	l.add(w, picked{part: p, lo: lo, hi: lo + n, direct: n == len(keys)})
	return nil
}

func (l *link) add(w wirePart, k picked) {
	k.bytes = w.dataBytes()
	l.q.parts = append(l.q.parts, w)
	l.parts = append(l.parts, k)
	if i := len(l.parts) - 1; i == len(l.rows) {
		l.rows = append(l.rows, tensor.New(tensor.F64, 0)) // as memory only
		l.data = append(l.data, &transport.Receive{Peer: l.rank, Tag: tag(l.store, tagReplyData)})
	}
}

// body returns the keys of all table parts, side by side.
func (l *link) body() []byte {
	if len(l.picks) == 0 {
		return nil
	}
	l.keys.Resize(len(l.picks))
	out, i := l.keys.I64(), 0
	for _, k := range l.parts {
		if k.part.Keys == nil {
			continue
		}
		keys := k.part.Keys.I64()
		for _, pick := range l.picks[k.lo:k.hi] {
			out[i] = keys[pick]
			i++
		}
	}
	return l.keys.Bytes()
}

// buffer returns the memory of part i's data message: the tensor's own where
// that is possible.
func (l *link) buffer(i int) []byte {
	k := &l.parts[i]
	switch {
	case k.part.Keys == nil:
		size := k.part.Data.DType().Size()
		return k.part.Data.Bytes()[k.part.Lo*size : k.part.Hi*size]
	case k.direct:
		return k.part.Data.Bytes()
	}
	l.rows[i].Resize((k.bytes + 7) / 8)
	return l.rows[i].Bytes()[:k.bytes]
}

// move copies the picked rows between Data and the buffer.
func (l *link) move(i int, toBuffer bool) {
	k := &l.parts[i]
	if k.direct || k.bytes == 0 {
		return
	}
	row := l.q.parts[i].b * k.part.Data.DType().Size()
	data, buf := k.part.Data.Bytes(), l.rows[i].Bytes()
	for j, pick := range l.picks[k.lo:k.hi] {
		if toBuffer {
			copy(buf[j*row:(j+1)*row], data[pick*row:])
		} else {
			copy(data[pick*row:(pick+1)*row], buf[j*row:])
		}
	}
}

// exchange sends a request and waits for its reply. The receive of the reply,
// and whatever the caller posted, are there before the request leaves.
func (l *link) exchange(ctx context.Context, kind requestKind, step int64, name string, body []byte) error {
	l.seq++
	l.q.kind, l.q.seq, l.q.step, l.q.name, l.q.verdict = kind, l.seq, step, name, Verdict{}
	if v := l.verdict.Load(); v != nil {
		l.q.verdict = *v
	}
	l.head = appendRequest(l.head[:0], &l.q)
	if err := l.c.ep.Post(&l.in); err != nil {
		return l.fail(err)
	}
	if err := l.c.ep.Send(ctx, l.rank, tag(l.store, tagRequest), l.head, body); err != nil {
		return l.fail(err)
	}
	return l.await(ctx)
}

// await takes the reply that l.in was posted for.
func (l *link) await(ctx context.Context) error {
	if err := l.in.Wait(ctx); err != nil {
		return l.fail(err)
	}
	if err := decodeReply(l.in.Buf[:l.in.N], &l.reply); err != nil {
		return l.fail(err)
	}
	if l.reply.seq != l.seq || l.reply.kind != l.q.kind {
		return l.fail(fmt.Errorf("%w: a reply to %v %d, asked %v %d", errMalformed, l.reply.kind, l.reply.seq, l.q.kind, l.seq))
	}
	switch l.reply.status {
	case Refused:
		// Receives may still be posted, and a refused verdict is lost for good.
		return l.fail(fmt.Errorf("%w: %s", ErrRefused, l.reply.tail))
	case Late:
		return fmt.Errorf("%w: the store is at version %d", ErrLate, l.reply.version)
	case Done, Continue, Stored, Duplicate:
	}
	return nil
}

func (l *link) fail(err error) error {
	if l.broken == nil {
		l.broken = err
	}
	return err
}

// wrap names the request in an error; step is noStep for those without one.
func (l *link) wrap(err error, what string, step int64) error {
	switch {
	case err == nil:
		return nil
	case step == noStep:
		return fmt.Errorf("ps: rank %d: %s, store %d (rank %d): %w", l.c.rank, what, l.store, l.rank, err)
	}
	return fmt.Errorf("ps: rank %d: %s %d, store %d (rank %d): %w", l.c.rank, what, step, l.store, l.rank, err)
}

const noStep = -1

// Errors that callers tell apart with errors.Is.
var (
	// ErrRefused: the store answered with an error.
	ErrRefused = errors.New("refused by the store")
	// ErrLate: the push came after its step; the store dropped it.
	ErrLate = errors.New("late")
)
