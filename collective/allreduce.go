package collective

import (
	"fmt"
	"math/bits"
)

// HalvingAllReduce halves what is left to be summed in each of log2 n rounds, with
// the partner at half the distance, until each rank has one chunk of the sum, and
// goes the same way back to gather them: 2 log2 n steps, in which a rank sends
// about 2B(n-1)/n bytes, as few as a ring's, in fewer steps. If n is no power of
// two, each rank beyond the power p within gives its buffer to one below first and
// is given the sum at the end, B bytes each.
//
// Source: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective
// communication operations in MPICH", 2005 (Rabenseifner's algorithm).
func HalvingAllReduce(n int) *Schedule {
	return folded("halving", n, func(p int) *Schedule {
		s := newSchedule(AllReduce, "halving", p, p)
		for i := range p {
			lo, hi := 0, p
			for d := p / 2; d > 0; d /= 2 {
				keep, give := Range{lo, lo + d}, Range{lo + d, hi}
				if i&d != 0 {
					keep, give = give, keep
				}
				s.exchange(i, i^d, give, keep, Add)
				lo, hi = keep.Lo, keep.Hi
			}
			for d := 1; d < p; d *= 2 {
				mine := i &^ (d - 1)
				s.exchange(i, i^d, Range{mine, mine + d}, Range{mine ^ d, mine ^ d + d}, Copy)
			}
		}
		return s
	})
}

// DoublingAllReduce adds whole buffers with the partner at distance 1, 2, 4 and so
// on: log2 n steps of B bytes each, the fewest steps that any all-reduce can do,
// for buffers that cost less to send than a step does. Other n are folded as in
// HalvingAllReduce. Every rank ends with the same bits: both of a pair add the same
// two numbers.
//
// Source: as HalvingAllReduce ("recursive doubling").
func DoublingAllReduce(n int) *Schedule {
	return folded("doubling", n, func(p int) *Schedule {
		s := newSchedule(AllReduce, "doubling", p, 1)
		for i := range p {
			for d := 1; d < p; d *= 2 {
				s.exchange(i, i^d, Range{0, 1}, Range{0, 1}, Add)
			}
		}
		return s
	})
}

// TreeAllReduce is BinomialReduce, then BinomialBroadcast: 2 ceil(log2 n) steps,
// 2(n-1)B bytes in all, for each of which one rank sends and one waits.
func TreeAllReduce(n int) *Schedule {
	s := newSchedule(AllReduce, "tree", n, 1)
	all := upTo(n)
	s.embed(BinomialReduce(n), all)
	s.embed(BinomialBroadcast(n), all)
	return s
}

// HierarchicalAllReduce sums inside each host to its first rank, then among these
// by a ring, and spreads the sum inside each host: of what travels between hosts,
// 2B(h-1)/h bytes from each of h, nothing is sent twice. hosts are the indices of
// the group, each once, by host. The longest way is 2 ceil(log2 m) + 2(h-1) steps
// for at most m ranks a host.
func HierarchicalAllReduce(hosts [][]int) (*Schedule, error) {
	n := 0
	for _, h := range hosts {
		n += len(h)
	}
	seen := make([]bool, n)
	for k, h := range hosts {
		if len(h) == 0 {
			return nil, fmt.Errorf("collective: host %d has no ranks", k)
		}
		for _, i := range h {
			if i < 0 || i >= n || seen[i] {
				return nil, fmt.Errorf("collective: hosts %v: index %d is not in [0,%d), or stands twice", hosts, i, n)
			}
			seen[i] = true
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("collective: no hosts")
	}
	s := newSchedule(AllReduce, "hierarchical", n, len(hosts))
	first := make([]int, len(hosts))
	for k, h := range hosts {
		first[k] = h[0]
		s.embed(BinomialReduce(len(h)), h)
	}
	s.embed(RingAllReduce(len(hosts)), first)
	for _, h := range hosts {
		s.embed(BinomialBroadcast(len(h)), h)
	}
	return s, nil
}

// folded makes an all-reduce over n of one over p ranks, the power of two within:
// the ranks beyond add their buffers to those of the first ones before, and get the
// sum after.
func folded(name string, n int, of func(p int) *Schedule) *Schedule {
	newSchedule(AllReduce, name, n, 1) // n is checked
	p := within(n)
	core := of(p)
	s := newSchedule(AllReduce, name, n, core.Chunks)
	whole := Range{0, core.Chunks}
	for i := p; i < n; i++ {
		s.message(i, i-p, whole, Add)
	}
	s.embed(core, upTo(p))
	for i := p; i < n; i++ {
		s.message(i-p, i, whole, Copy)
	}
	return s
}

// within is the largest power of two within n, which is positive.
func within(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// embed appends a schedule of some members of the group, whose chunks are
// multiples of this one's: cut further, elements have the same bounds.
func (s *Schedule) embed(part *Schedule, members []int) {
	k := s.Chunks / part.Chunks
	wide := func(r Range) Range { return Range{r.Lo * k, r.Hi * k} }
	at := func(i int) int {
		if i == Nobody {
			return Nobody
		}
		return members[i]
	}
	for i, steps := range part.Ranks {
		for _, st := range steps {
			s.Ranks[members[i]] = append(s.Ranks[members[i]], Step{
				To: at(st.To), Send: wide(st.Send), From: at(st.From), Recv: wide(st.Recv), Action: st.Action,
			})
		}
	}
}

// exchange appends a step in which rank i sends to and receives from one other.
func (s *Schedule) exchange(i, with int, send, recv Range, a Action) {
	s.Ranks[i] = append(s.Ranks[i], Step{To: with, Send: send, From: with, Recv: recv, Action: a})
}
