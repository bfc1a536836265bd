package collective

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

const (
	// pieceMax bounds one message in bytes. Larger ranges travel in pieces, so
	// that adding one piece overlaps with the arrival of the next.
	pieceMax = 1 << 20
	// postedMax bounds the receives a runner has posted at one time, and the
	// pieces of scratch memory it keeps for sums.
	postedMax = 4
)

// move is a Step on elements, cut to pieces.
type move struct {
	to, from       int // ranks, or Nobody
	sendLo, sendHi int
	recvLo, recvHi int
	sum            bool
	// slot is the scratch memory of a sum.
	slot int
	// after is the move before which the receive of a copy must not be posted:
	// until then its memory is in use. (In a ring a chunk cannot come back
	// before it has left, but not every schedule is a ring.)
	after int
}

// Runner performs one schedule for one rank, again and again. Once warm, a Run
// allocates nothing. It is not safe for concurrent use.
type Runner struct {
	Party
	goal    Goal
	dtype   tensor.DType
	elems   int
	moves   []move
	scratch []*tensor.Tensor
	posted  [postedMax]transport.Receive
	bytes   int64
	broken  error
}

// NewRunner binds a schedule to a place in a group and to buffers of elems
// elements. It fails if they do not fit each other, or if sums are asked of a
// type that is not float32 or float64.
func NewRunner(p Party, s *Schedule, d tensor.DType, elems int) (*Runner, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if s.N != len(p.Group) {
		return nil, fmt.Errorf("collective: %v for %d ranks on a group of %d", s.Goal, s.N, len(p.Group))
	}
	if elems < 0 || d.Size() == 0 {
		return nil, fmt.Errorf("collective: %v of %d elements of type %v: size must be known", s.Goal, elems, d)
	}
	r := &Runner{Party: p, goal: s.Goal, dtype: d, elems: elems}
	widest, sums := 0, 0
	for _, st := range s.Ranks[p.Index] {
		for _, m := range r.cut(s, st, pieceMax/d.Size()) {
			if m.sum {
				if !d.IsFloat() {
					return nil, fmt.Errorf("collective: %v cannot add %v", s.Goal, d)
				}
				widest = max(widest, m.recvHi-m.recvLo)
				m.slot = sums % postedMax // free again: no more than postedMax are posted
				sums++
			} else {
				m.after = lastUse(r.moves, m.recvLo, m.recvHi) + 1
			}
			r.moves = append(r.moves, m)
		}
	}
	for range min(sums, postedMax) {
		r.scratch = append(r.scratch, tensor.New(d, widest))
	}
	sent, received := s.Traffic(p.Index, elems, d.Size())
	r.bytes = sent + received
	return r, nil
}

// cut turns a step into moves of at most most elements. Empty ranges are not
// sent; both ends know that.
func (r *Runner) cut(s *Schedule, st Step, most int) []move {
	bounds := func(g Range) (int, int) { return Bound(g.Lo, s.Chunks, r.elems), Bound(g.Hi, s.Chunks, r.elems) }
	var sendLo, sendHi, recvLo, recvHi int
	if st.To != Nobody {
		sendLo, sendHi = bounds(st.Send)
	}
	if st.From != Nobody {
		recvLo, recvHi = bounds(st.Recv)
	}
	var out []move
	for sendLo < sendHi || recvLo < recvHi {
		m := move{to: Nobody, from: Nobody}
		if sendLo < sendHi {
			m.to = r.Group[st.To]
			m.sendLo, m.sendHi = sendLo, min(sendLo+most, sendHi)
			sendLo = m.sendHi
		}
		if recvLo < recvHi {
			m.from = r.Group[st.From]
			m.recvLo, m.recvHi = recvLo, min(recvLo+most, recvHi)
			m.sum = st.Action == Add
			recvLo = m.recvHi
		}
		out = append(out, m)
	}
	return out
}

// lastUse returns the last move that touches elements [lo, hi), or -1.
func lastUse(moves []move, lo, hi int) int {
	for k := len(moves) - 1; k >= 0; k-- {
		m := &moves[k]
		if m.sendLo < hi && lo < m.sendHi || m.recvLo < hi && lo < m.recvHi {
			return k
		}
	}
	return -1
}

// Bytes is what one Run moves: sent plus received.
func (r *Runner) Bytes() int64 { return r.bytes }

// Run performs the collective in place on t, which must have the runner's type
// and number of elements. It blocks until this rank's part is done; ctx bounds
// every wait. An error names the step and, as a transport.PeerError, the rank
// that was missing; t is then undefined and the runner used up.
func (r *Runner) Run(ctx context.Context, t *tensor.Tensor) error {
	if t.DType() != r.dtype || t.Elems() != r.elems {
		return fmt.Errorf("collective: %v of %d %v elements given %d %v", r.goal, r.elems, r.dtype, t.Elems(), t.DType())
	}
	if r.broken != nil {
		return fmt.Errorf("%w: %w", ErrUsedUp, r.broken)
	}
	size := r.dtype.Size()
	mem := t.Bytes()
	next, posts, done := 0, 0, 0
	for k := range r.moves {
		m := &r.moves[k]
		for next < len(r.moves) && posts-done < postedMax && r.moves[next].after <= k {
			if r.moves[next].from != Nobody {
				if err := r.post(&r.moves[next], posts%postedMax, mem); err != nil {
					return r.broke(k, err)
				}
				posts++
			}
			next++
		}
		if m.to != Nobody {
			if err := r.Endpoint.Send(ctx, m.to, r.Tag, nil, mem[m.sendLo*size:m.sendHi*size]); err != nil {
				return r.broke(k, r.fail("send to", m.to, err))
			}
		}
		if m.from == Nobody {
			continue
		}
		if err := r.take(ctx, m, &r.posted[done%postedMax], t); err != nil {
			return r.broke(k, err)
		}
		done++
	}
	return nil
}

// post offers the memory of one receive: the buffer itself for a copy, scratch
// for a sum.
func (r *Runner) post(m *move, i int, mem []byte) error {
	size := r.dtype.Size()
	buf := mem[m.recvLo*size : m.recvHi*size]
	if m.sum {
		buf = r.scratch[m.slot].Bytes()[:len(buf)]
	}
	rc := &r.posted[i]
	rc.Peer, rc.Tag, rc.Buf = m.from, r.Tag, buf
	if err := r.Endpoint.Post(rc); err != nil {
		return r.fail("receive from", m.from, err)
	}
	return nil
}

// take waits for one receive and adds it up if it is a sum.
func (r *Runner) take(ctx context.Context, m *move, rc *transport.Receive, t *tensor.Tensor) error {
	if err := rc.Wait(ctx); err != nil {
		return r.fail("receive from", m.from, err)
	}
	if rc.N != len(rc.Buf) {
		return r.fail("receive from", m.from, fmt.Errorf("%d bytes where %d were due: the ranks disagree on the size: %w",
			rc.N, len(rc.Buf), transport.ErrCorrupt))
	}
	if !m.sum {
		return nil
	}
	n := m.recvHi - m.recvLo
	if r.dtype == tensor.F32 {
		add(t.F32()[m.recvLo:m.recvHi], r.scratch[m.slot].F32()[:n])
	} else {
		add(t.F64()[m.recvLo:m.recvHi], r.scratch[m.slot].F64()[:n])
	}
	return nil
}

// broke marks the runner as used up.
func (r *Runner) broke(k int, err error) error {
	r.broken = fmt.Errorf("collective: %v over ranks %v, move %d of %d: %w", r.goal, r.Group, k+1, len(r.moves), err)
	return r.broken
}

// add is dst += src.
func add[T tensor.Float](dst, src []T) {
	src = src[:len(dst)]
	for len(dst) >= 4 {
		d, s := dst[:4:4], src[:4:4]
		d[0] += s[0]
		d[1] += s[1]
		d[2] += s[2]
		d[3] += s[3]
		dst, src = dst[4:], src[4:]
	}
	for i := range dst {
		dst[i] += src[i]
	}
}
