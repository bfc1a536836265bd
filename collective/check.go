package collective

import (
	"errors"
	"fmt"
)

// ErrSchedule says that a schedule does not do what it promises.
var ErrSchedule = errors.New("collective: wrong schedule")

// Check proves the schedule by running it on symbols: it ends though every send
// waits for its receive to be posted, every message is taken, both ends name
// the same range, and each rank ends with exactly the contributions that the
// goal promises, each once. It costs N³ counters and, for a ring, 2N³ steps.
func (s *Schedule) Check() error {
	if len(s.Ranks) != s.N || s.Chunks < 1 {
		return fmt.Errorf("%w: %d lists for %d ranks, %d chunks", ErrSchedule, len(s.Ranks), s.N, s.Chunks)
	}
	for i, steps := range s.Ranks {
		for k := range steps {
			if err := s.checkStep(i, k); err != nil {
				return err
			}
		}
	}
	p := newProof(s)
	for p.round() {
	}
	if p.err != nil {
		return p.err
	}
	for i, at := range p.at {
		if at < len(s.Ranks[i]) {
			st := s.Ranks[i][at]
			return fmt.Errorf("%w: %v over %d: rank %d hangs in step %d (to %d, from %d)",
				ErrSchedule, s.Goal, s.N, i, at, st.To, st.From)
		}
	}
	return p.verdict()
}

// checkStep checks what can be said of one step alone.
func (s *Schedule) checkStep(i, k int) error {
	st := s.Ranks[i][k]
	bad := func(why string) error {
		return fmt.Errorf("%w: %v over %d: rank %d step %d: %s", ErrSchedule, s.Goal, s.N, i, k, why)
	}
	inside := func(r Range) bool { return 0 <= r.Lo && r.Lo < r.Hi && r.Hi <= s.Chunks }
	for _, peer := range []int{st.To, st.From} {
		if peer != Nobody && (peer < 0 || peer >= s.N || peer == i) {
			return bad(fmt.Sprintf("no partner %d", peer))
		}
	}
	if st.To != Nobody && !inside(st.Send) || st.From != Nobody && !inside(st.Recv) {
		return bad("range outside the buffer")
	}
	overlap := st.To != Nobody && st.From != Nobody && st.Send.Lo < st.Recv.Hi && st.Recv.Lo < st.Send.Hi
	if overlap && (st.Action == Copy || st.Send != st.Recv) {
		return bad("sends what it receives")
	}
	return nil
}

// proof is a run on symbols. held counts, for each rank, chunk and source, how
// often the source's contribution is in the chunk; in is what a rank has received
// in its step, which counts when the step is done.
type proof struct {
	s    *Schedule
	at   []int  // each rank's step
	sent []bool // its send is done
	got  []bool // its receive is done
	in   [][]uint8
	held [][]uint8
	err  error
	// taken, if there is one, is told of each receive of rank i in step k.
	taken func(i int, st Step, k int)
}

// newProof gives each rank what it starts with: its own contribution to every
// chunk, or to its chunk alone if the goal is to gather.
func newProof(s *Schedule) *proof {
	p := &proof{
		s: s, at: make([]int, s.N), sent: make([]bool, s.N), got: make([]bool, s.N),
		in: make([][]uint8, s.N), held: make([][]uint8, s.N),
	}
	for i := range p.held {
		p.held[i] = make([]uint8, s.Chunks*s.N)
		for c := range s.Chunks {
			if s.Goal.starts(i, c, s.N) {
				p.held[i][c*s.N+i] = 1
			}
		}
	}
	return p
}

// round moves every message whose two ends have met and ends every step that is
// done; it reports whether anything moved.
func (p *proof) round() bool {
	moved := false
	for i, steps := range p.s.Ranks {
		if p.err != nil {
			return false
		}
		if p.at[i] == len(steps) {
			continue
		}
		st := steps[p.at[i]]
		if st.To != Nobody && !p.sent[i] && p.meet(i, st) {
			moved = true
		}
		if (st.To == Nobody || p.sent[i]) && (st.From == Nobody || p.got[i]) {
			p.take(i, st)
			p.at[i]++
			p.sent[i], p.got[i] = false, false
			moved = true
		}
	}
	return moved
}

// meet delivers the message of rank i if its partner waits for it.
func (p *proof) meet(i int, st Step) bool {
	j := st.To
	if p.at[j] == len(p.s.Ranks[j]) || p.got[j] {
		return false
	}
	other := p.s.Ranks[j][p.at[j]]
	if other.From != i {
		return false
	}
	if !p.s.sameRange(i, j, st.Send, other.Recv) {
		p.err = fmt.Errorf("%w: %v over %d: rank %d sends chunks %v, rank %d takes %v",
			ErrSchedule, p.s.Goal, p.s.N, i, st.Send, j, other.Recv)
		return false
	}
	n := p.s.N
	p.in[j] = append(p.in[j][:0], p.held[i][st.Send.Lo*n:st.Send.Hi*n]...)
	p.sent[i], p.got[j] = true, true
	return true
}

// sameRange reports whether what rank i sends is where rank j takes it: the same
// chunks, but in an all-to-all chunk j of what i gives is chunk n+i at j.
func (s *Schedule) sameRange(i, j int, send, recv Range) bool {
	if s.Goal == AllToAll {
		return send == Range{j, j + 1} && recv == Range{s.N + i, s.N + i + 1}
	}
	return send == recv
}

// take makes what rank i has received in a step part of what it holds.
func (p *proof) take(i int, st Step) {
	if st.From == Nobody {
		return
	}
	dst := p.held[i][st.Recv.Lo*p.s.N : st.Recv.Hi*p.s.N]
	for k, v := range p.in[i] {
		if st.Action == Add {
			v += dst[k]
		}
		dst[k] = min(v, 3)
	}
	if p.taken != nil {
		p.taken(i, st, p.at[i])
	}
}

// verdict compares what each rank holds with what the goal promises.
func (p *proof) verdict() error {
	n := p.s.N
	for i := range n {
		for c := range p.s.Chunks {
			if !p.s.Goal.promises(i, c, n) {
				continue
			}
			for src := range n {
				want := uint8(0)
				if p.s.Goal.from(src, c, n) {
					want = 1
				}
				got := p.held[i][c*n+src]
				if p.s.Goal == Barrier && got > 1 {
					got = 1 // that a rank has come may be heard twice
				}
				if got != want {
					return fmt.Errorf("%w: %v over %d: rank %d ends with contribution %d in chunk %d %d times, not %d",
						ErrSchedule, p.s.Goal, n, i, src, c, got, want)
				}
			}
		}
	}
	return nil
}

// starts reports whether rank i has something of its own in chunk c to begin with. Of
// an all-to-all, what it gives itself is in its place.
func (g Goal) starts(i, c, n int) bool {
	switch g {
	case AllGather, Gather:
		return c == i
	case AllToAll:
		return c < n || c == n+i
	case AllReduce, ReduceScatter, Broadcast, Reduce, Scatter, Barrier:
	}
	return true
}

// promises reports whether rank i ends with something in chunk c.
func (g Goal) promises(i, c, n int) bool {
	switch g {
	case ReduceScatter, Scatter:
		return c == i
	case Reduce, Gather:
		return i == 0
	case AllToAll:
		return c >= n
	case AllReduce, AllGather, Broadcast, Barrier:
	}
	return true
}

// from reports whether the contribution of a rank is in chunk c in the end.
func (g Goal) from(src, c, n int) bool {
	switch g {
	case AllGather, Gather:
		return src == c
	case AllToAll:
		return src == c-n
	case Broadcast, Scatter:
		return src == 0
	case AllReduce, ReduceScatter, Reduce, Barrier:
	}
	return true
}
