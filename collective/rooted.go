package collective

// The schedules of this file have a root, index 0: a group in another order has
// another. Each round doubles the ranks that have their part, or halves those that
// still hold one.

// BinomialBroadcast takes ceil(log2 n) rounds: in round t every rank below 2^t
// feeds the rank 2^t above it.
func BinomialBroadcast(n int) *Schedule {
	s := newSchedule(Broadcast, "binomial", n, 1)
	for d := 1; d < n; d *= 2 {
		for i := range min(d, n-d) {
			s.message(i, i+d, Range{0, 1}, Copy)
		}
	}
	return s
}

// BinomialReduce is BinomialBroadcast the other way round: in ceil(log2 n) rounds
// each rank but the root sends once, B bytes.
func BinomialReduce(n int) *Schedule {
	s := newSchedule(Reduce, "binomial", n, 1)
	for d := below(n); d > 0; d /= 2 {
		for i := range min(d, n-d) {
			s.message(i+d, i, Range{0, 1}, Add)
		}
	}
	return s
}

// BinomialGather takes ceil(log2 n) rounds: in round t each rank whose lowest bit
// is 2^t sends the chunks that it has, 2^t of them or as many as there are above
// it, to the rank 2^t below.
func BinomialGather(n int) *Schedule {
	s := newSchedule(Gather, "binomial", n, n)
	for d := 1; d < n; d *= 2 {
		for i := d; i < n; i += 2 * d {
			s.message(i, i-d, Range{i, min(i+d, n)}, Copy)
		}
	}
	return s
}

// BinomialScatter is BinomialGather the other way round.
func BinomialScatter(n int) *Schedule {
	s := newSchedule(Scatter, "binomial", n, n)
	for d := below(n); d > 0; d /= 2 {
		for i := d; i < n; i += 2 * d {
			s.message(i-d, i, Range{i, min(i+d, n)}, Copy)
		}
	}
	return s
}

// below is the largest power of two below n, 0 if there is none.
func below(n int) int {
	if n < 2 {
		return 0
	}
	return within(n - 1)
}

// message appends a step to both ends of one message.
func (s *Schedule) message(from, to int, what Range, a Action) {
	s.Ranks[from] = append(s.Ranks[from], Step{To: to, Send: what, From: Nobody})
	s.Ranks[to] = append(s.Ranks[to], Step{To: Nobody, From: from, Recv: what, Action: a})
}
