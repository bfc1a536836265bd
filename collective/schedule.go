// Package collective performs sums, other reductions and copies over a group of ranks.
//
// A Schedule says, as data, who sends which chunk to whom and what becomes of
// it; Check proves it by running it on symbols. One Runner performs any
// schedule, with any reduction, over transport.Streams. Beside it stand
// AllToAllRunner and BarrierRunner, which are runners with other buffers, Rows, for sparse
// values whose size the batch decides, which uses the Endpoint, and Exchange, for a few
// bytes from each to all.
//
// The costs, for n ranks and a buffer of B bytes cut into n chunks b_0, ...,
// b_{n-1}:
//
//	schedule               steps           bytes that rank i sends
//	RingReduceScatter      n-1             B - b_i
//	RingAllGather          n-1             B - b_{i+1}
//	RingAllReduce          2(n-1)          2B - b_i - b_{i+1}, about 2B(n-1)/n
//	HalvingAllReduce       2 log2 p [+2]   about 2B(p-1)/p [+B], p the power of two within n
//	DoublingAllReduce      log2 p [+2]     B log2 p [+B]
//	TreeAllReduce          2 ceil(log2 n)  B for each rank it feeds or is fed by; 2(n-1)B in all
//	HierarchicalAllReduce  see there       between hosts only 2B(h-1)/h by one rank of each of h
//	BinomialBroadcast      ceil(log2 n)    B for each rank it feeds; (n-1)B in all
//	BinomialReduce         ceil(log2 n)    B, but the root
//	BinomialGather         ceil(log2 n)    the chunks of those it was given and its own
//	BinomialScatter        ceil(log2 n)    the chunks of those that it passes on
//	PairwiseAllGather      1               (n-1) b_i
//	PairwiseAllToAll       n-1             what it gives to others
//	DisseminationBarrier   ceil(log2 n)    4 for each step
//	Exchange               1               (n-1)B
//
// What is in brackets comes on top for n that are no power of two. On top of all come
// openings of 128 bytes, one a partner and run, that no formula counts.
//
// Steps are latencies, not turns: chunks are cut to segments of about 64 KiB if the
// schedule sends them one at a time, and a rank passes on what it has of a part while
// the rest is under way, so that a long buffer is on all links at once. Trees are
// pipelines by that.
//
// The memory that a rank reads and writes for RingAllReduce is about what it cannot do
// without: each element of the buffer is read from memory once and written once, as
// long as a few segments fit into the cache of a core.
//
// Which all-reduce is the fastest for a size, package cost tells.
//
// Duties of the caller: all ranks of the group run the same schedules on the
// same number of elements in the same order on the same streams, one Run at a time;
// after an error a runner is used up, and so are its streams.
package collective

import "fmt"

// Goal is what a schedule promises.
type Goal uint8

// The goals.
const (
	// AllReduce leaves every rank the sum of all ranks' buffers.
	AllReduce Goal = iota + 1
	// ReduceScatter leaves rank i chunk i of the sum; the rest is undefined.
	ReduceScatter
	// AllGather starts with rank i holding chunk i and leaves every rank all chunks.
	AllGather
	// Broadcast copies the buffer of index 0 to all.
	Broadcast
	// Reduce leaves index 0 the sum of all buffers; those of others are undefined.
	Reduce
	// Gather starts with rank i holding chunk i and leaves index 0 all chunks; other
	// chunks of others are undefined.
	Gather
	// Scatter leaves rank i chunk i of the buffer of index 0; the rest is undefined.
	Scatter
	// AllToAll starts with rank i holding what it gives to each rank c in chunk c, and
	// leaves it what rank c gave to it in chunk N+c.
	AllToAll
	// Barrier leaves every rank when all have come.
	Barrier
)

// String returns the goal's name.
func (g Goal) String() string {
	switch g {
	case AllReduce:
		return "all-reduce"
	case ReduceScatter:
		return "reduce-scatter"
	case AllGather:
		return "all-gather"
	case Broadcast:
		return "broadcast"
	case Reduce:
		return "reduce"
	case Gather:
		return "gather"
	case Scatter:
		return "scatter"
	case AllToAll:
		return "all-to-all"
	case Barrier:
		return "barrier"
	}
	return fmt.Sprintf("goal(%d)", uint8(g))
}

// Action is what becomes of what a step receives.
type Action uint8

// The actions.
const (
	// Copy overwrites the range.
	Copy Action = iota
	// Add adds to the range.
	Add
)

// Nobody stands for no partner in a Step.
const Nobody = -1

// Range is chunks [Lo, Hi).
type Range struct{ Lo, Hi int }

// Step is what one rank does at once: it sends one range and receives another.
// They must not overlap; but a range may be sent while another rank's is received
// to be added to it afterwards. Partners are indices in the group.
type Step struct {
	To     int
	Send   Range
	From   int
	Recv   Range
	Action Action
}

// Schedule is a collective over N ranks on a buffer of Chunks chunks. Messages
// of one pair of ranks are matched in order.
type Schedule struct {
	Goal Goal
	// Name is that of the algorithm, which tells it from others of the goal.
	Name   string
	N      int
	Chunks int
	Ranks  [][]Step
}

// Bound returns the first element of chunk c when elems elements are cut into
// chunks: chunks differ by at most one element, and some are empty if there
// are fewer elements than chunks.
func Bound(c, chunks, elems int) int {
	whole, rest := elems/chunks, elems%chunks
	return c*whole + c*rest/chunks
}

// Traffic returns the bytes rank i sends and receives in one run over elems
// elements of size bytes each.
func (s *Schedule) Traffic(i, elems, size int) (sent, received int64) {
	width := func(r Range) int64 {
		return int64(Bound(r.Hi, s.Chunks, elems)-Bound(r.Lo, s.Chunks, elems)) * int64(size)
	}
	for _, st := range s.Ranks[i] {
		if st.To != Nobody {
			sent += width(st.Send)
		}
		if st.From != Nobody {
			received += width(st.Recv)
		}
	}
	return sent, received
}

// ringSteps is n-1 steps around a ring: at step t rank i sends chunk
// i+shift-t to the next rank and receives chunk i+shift-t-1 from the one before.
func ringSteps(n, i, shift int, a Action) []Step {
	steps := make([]Step, 0, n-1)
	for t := range n - 1 {
		out := mod(i+shift-t, n)
		in := mod(i+shift-t-1, n)
		steps = append(steps, Step{
			To: mod(i+1, n), Send: Range{out, out + 1},
			From: mod(i-1, n), Recv: Range{in, in + 1}, Action: a,
		})
	}
	return steps
}

// RingReduceScatter takes n-1 steps; rank i sends and receives every chunk but
// one: it sends B - b_i bytes and receives B - b_{i-1}. Chunk c is summed in
// the order of ranks c+1, c+2, ..., c.
func RingReduceScatter(n int) *Schedule {
	s := newSchedule(ReduceScatter, "ring", n, n)
	for i := range n {
		s.Ranks[i] = ringSteps(n, i, -1, Add)
	}
	return s
}

// RingAllGather takes n-1 steps; rank i sends B - b_{i+1} bytes and receives
// B - b_i.
func RingAllGather(n int) *Schedule {
	s := newSchedule(AllGather, "ring", n, n)
	for i := range n {
		s.Ranks[i] = ringSteps(n, i, 0, Copy)
	}
	return s
}

// PairwiseAllGather takes one step in which rank i sends b_i to each of the others, the
// next one first: n-1 messages that nothing has to wait for. It is for values so small that
// the time before the first byte is all that counts.
func PairwiseAllGather(n int) *Schedule {
	s := newSchedule(AllGather, "pairwise", n, n)
	for i := range n {
		for d := 1; d < n; d++ {
			from := mod(i-d, n)
			s.Ranks[i] = append(s.Ranks[i], Step{
				To: mod(i+d, n), Send: Range{i, i + 1}, From: from, Recv: Range{from, from + 1}, Action: Copy,
			})
		}
	}
	return s
}

// RingAllReduce is RingReduceScatter, then RingAllGather: 2(n-1) steps; rank i
// sends 2B - b_i - b_{i+1} bytes, the least that any all-reduce can do, and
// receives 2B - b_{i-1} - b_i. Every rank ends with the same bits, since each
// chunk is summed on one path and then copied.
//
// Source: P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms
// for clusters of workstations", 2009.
func RingAllReduce(n int) *Schedule {
	s := newSchedule(AllReduce, "ring", n, n)
	for i := range n {
		s.Ranks[i] = append(ringSteps(n, i, -1, Add), ringSteps(n, i, 0, Copy)...)
	}
	return s
}

// newSchedule makes an empty schedule of an algorithm; it panics unless n is positive.
func newSchedule(g Goal, name string, n, chunks int) *Schedule {
	if n < 1 {
		panic(fmt.Sprintf("collective: %v over %d ranks", g, n))
	}
	return &Schedule{Goal: g, Name: name, N: n, Chunks: chunks, Ranks: make([][]Step, n)}
}

// mod is the remainder in [0, n).
func mod(a, n int) int { return ((a % n) + n) % n }
