package collective

const (
	// SegmentBytes is about how much of a chunk travels before the schedule turns to the
	// next step: so that what was just received is still near when it is sent on. Streams
	// may want more, see transport.BlockStreams.
	SegmentBytes = 64 << 10
	// partsMax bounds the parts of a program, beside that each step has one.
	partsMax = 4096
)

// part is one message of a rank, or with others one message: a range of a buffer that
// goes to a partner, or comes from one.
type part struct {
	peer   int // index in the group
	buf    int // which buffer
	lo, hi int // bytes of it
	// after is the last part of the other direction that touches the range and comes
	// before, or -1. A send may go as far as that receive has come; a receive may go as
	// far as that send has. All parts of a direction are done in order, so parts before
	// after are done as well.
	after int

	// Of a receive:
	add bool
	// first: what is received is the left operand, so that both of a pair that exchange
	// sums compute the same bits.
	first bool
	// scale: the sum is complete.
	scale bool
}

func (p *part) overlaps(q *part) bool { return p.buf == q.buf && p.lo < q.hi && q.lo < p.hi }

// layout is where chunks are: bounds are the bytes at which they begin, and the end of
// the last. From chunk split on they are in a second buffer.
type layout struct {
	bounds []int
	split  int
	size   int // of an element
	// segment is about how many bytes of a chunk travel at once.
	segment int
}

// evenly cuts elems elements into chunks.
func evenly(chunks, elems, size int) layout {
	l := layout{split: chunks, size: size, segment: SegmentBytes}
	for c := range chunks + 1 {
		l.bounds = append(l.bounds, Bound(c, chunks, elems)*size)
	}
	return l
}

// place returns segment q of all of a range: which buffer, and which bytes of it.
func (l *layout) place(r Range, q, all int) (buf, lo, hi int) {
	lo, hi = l.bounds[r.Lo], l.bounds[r.Hi]
	if all > 1 { // the range is one chunk
		elems := (hi - lo) / l.size
		lo, hi = lo+Bound(q, all, elems)*l.size, lo+Bound(q+1, all, elems)*l.size
	}
	if r.Lo >= l.split {
		at := l.bounds[l.split]
		return 1, lo - at, hi - at
	}
	return 0, lo, hi
}

// program is what one rank does: its sends in order and its receives in order. What
// waits for what is in the parts.
type program struct {
	sends, recvs             []part
	sentBytes, receivedBytes int64
}

// compile makes the program of rank me. complete says of each of its steps whether
// what it receives makes the sum complete; it may be nil.
func (s *Schedule) compile(me int, l layout, complete []bool) *program {
	p := &program{}
	steps := s.Ranks[me]
	all := s.segments(&l)
	visit := func(k, q int) {
		p.step(&steps[k], me, &l, q, all, complete != nil && complete[k])
	}
	if all == 1 || !s.aligned() {
		for q := range all {
			for k := range steps {
				visit(k, q)
			}
		}
	} else {
		// A wave: segment q is in step k at turn k+q. In a turn those come first that
		// are furthest from their end, since others may wait for them.
		for turn := range len(steps) + all - 1 {
			for q := min(turn, all-1); q >= 0 && turn-q < len(steps); q-- {
				visit(turn-q, q)
			}
		}
	}
	return p
}

// Segments is how many pieces each chunk of a buffer of so many bytes is cut to, so that
// what has arrived is added before it has left the cache; 1 is none.
func (s *Schedule) Segments(bytes int) int {
	l := evenly(s.Chunks, bytes, 1)
	return s.segments(&l)
}

// segments is how many pieces each chunk is cut to. Only schedules are cut that send
// one chunk at a time.
func (s *Schedule) segments(l *layout) int {
	longest, steps := 0, 1
	for _, rank := range s.Ranks {
		for _, st := range rank {
			if st.To != Nobody && st.Send.Hi-st.Send.Lo != 1 || st.From != Nobody && st.Recv.Hi-st.Recv.Lo != 1 {
				return 1
			}
		}
		steps = max(steps, len(rank))
	}
	if s.Goal == AllToAll {
		return 1 // no chunk is sent twice
	}
	for c := range s.Chunks {
		longest = max(longest, l.bounds[c+1]-l.bounds[c])
	}
	return max(1, min((longest+l.segment-1)/l.segment, partsMax/steps))
}

// aligned reports whether the two ends of every message have it in a step of the same
// number.
func (s *Schedule) aligned() bool {
	type way struct{ from, to int }
	due := map[way][]int{}
	for i, steps := range s.Ranks {
		for k, st := range steps {
			if st.To != Nobody {
				due[way{i, st.To}] = append(due[way{i, st.To}], k)
			}
		}
	}
	for j, steps := range s.Ranks {
		for k, st := range steps {
			if st.From == Nobody {
				continue
			}
			w := way{st.From, j}
			if len(due[w]) == 0 || due[w][0] != k {
				return false
			}
			due[w] = due[w][1:]
		}
	}
	return true
}

// step appends segment q of a step. Empty ranges are not sent; both ends know that.
func (p *program) step(st *Step, me int, l *layout, q, all int, complete bool) {
	if st.To != Nobody {
		s := part{peer: st.To}
		s.buf, s.lo, s.hi = l.place(st.Send, q, all)
		if s.lo < s.hi {
			s.after = last(p.recvs, &s)
			p.sentBytes += int64(s.hi - s.lo)
			p.sends = append(p.sends, s)
		}
	}
	if st.From != Nobody {
		r := part{peer: st.From, add: st.Action == Add, first: st.From < me, scale: complete}
		r.buf, r.lo, r.hi = l.place(st.Recv, q, all)
		if r.lo < r.hi {
			r.after = last(p.sends, &r)
			p.receivedBytes += int64(r.hi - r.lo)
			p.recvs = append(p.recvs, r)
		}
	}
}

// last is the last of parts that overlaps one, or -1.
func last(parts []part, one *part) int {
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i].overlaps(one) {
			return i
		}
	}
	return -1
}

// longest is the most bytes of one part.
func (p *program) longest() int {
	n := 0
	for _, parts := range [][]part{p.sends, p.recvs} {
		for i := range parts {
			n = max(n, parts[i].hi-parts[i].lo)
		}
	}
	return n
}

// completes says of each step of rank me whether what it receives makes the sum of its
// range complete, by running the schedule on symbols. ok is false if some step makes
// it complete for a part of its range only, or the schedule is wrong.
func (s *Schedule) completes(me int) (complete []bool, ok bool) {
	p := newProof(s)
	complete, ok = make([]bool, len(s.Ranks[me])), true
	p.taken = func(i int, st Step, k int) {
		if i != me || st.Action != Add {
			return
		}
		full := 0
		for c := st.Recv.Lo; c < st.Recv.Hi; c++ {
			n := 0
			for _, v := range p.held[i][c*s.N : (c+1)*s.N] {
				if v == 1 {
					n++
				}
			}
			if n == s.N {
				full++
			}
		}
		complete[k] = full > 0
		ok = ok && (full == 0 || full == st.Recv.Hi-st.Recv.Lo)
	}
	for p.round() {
	}
	return complete, ok && p.err == nil
}
