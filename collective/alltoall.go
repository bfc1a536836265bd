package collective

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/collective/reduce"
	"github.com/gangline/gangline/tensor"
)

// PairwiseAllToAll takes n-1 steps: at step t rank i gives to rank i+t what is for it,
// and takes from rank i-t what is for i. Of 2n chunks, chunk c is what rank i gives to
// rank c and chunk n+c what rank c gave to it; nothing is sent twice, so rank i
// sends and receives what it is to, and no less.
func PairwiseAllToAll(n int) *Schedule {
	s := newSchedule(AllToAll, "pairwise", n, 2*n)
	for i := range n {
		for t := 1; t < n; t++ {
			to, from := mod(i+t, n), mod(i-t, n)
			s.Ranks[i] = append(s.Ranks[i], Step{
				To: to, Send: Range{to, to + 1}, From: from, Recv: Range{n + from, n + from + 1}, Action: Copy,
			})
		}
	}
	return s
}

// DisseminationBarrier takes ceil(log2 n) steps: at step t a rank tells the one 2^t above
// it, round the end, of all that it has heard of. It runs on a buffer of one element,
// which is to be combined by what does not count, such as reduce.Max: that of a
// rank may come twice.
//
// Source: D. Hensgen, R. Finkel and U. Manber, "Two algorithms for barrier
// synchronization", 1988.
func DisseminationBarrier(n int) *Schedule {
	s := newSchedule(Barrier, "dissemination", n, 1)
	for i := range n {
		for d := 1; d < n; d *= 2 {
			s.Ranks[i] = append(s.Ranks[i], Step{
				To: mod(i+d, n), Send: Range{0, 1}, From: mod(i-d, n), Recv: Range{0, 1}, Action: Add,
			})
		}
	}
	return s
}

// AllToAllRunner performs an all-to-all for one rank, again and again. Once warm, a Run
// allocates nothing. It is not safe for concurrent use.
type AllToAllRunner struct {
	run        *Runner
	give, take []int // elements
	in, out    int   // elements in all
	self       [2]int
}

// NewAllToAll binds an all-to-all to a place in a group: this rank gives give[c] elements
// to rank c of the group and takes take[c] from it, which is what that one gives. What
// it gives itself is as long as what it takes from itself.
func NewAllToAll(p Party, d tensor.DType, give, take []int, o ...Options) (*AllToAllRunner, error) {
	n := len(p.Group)
	if len(give) != n || len(take) != n || d.Size() == 0 {
		return nil, fmt.Errorf("collective: all-to-all of %v over %d ranks with %d sizes to give and %d to take", d, n, len(give), len(take))
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if give[p.Index] != take[p.Index] {
		return nil, fmt.Errorf("collective: all-to-all: rank %d gives itself %d elements and takes %d", p.rank(), give[p.Index], take[p.Index])
	}
	l := layout{split: n, size: d.Size(), segment: SegmentBytes, bounds: []int{0}}
	a := &AllToAllRunner{give: give, take: take}
	end := 0
	for c, elems := range append(append([]int(nil), give...), take...) {
		if elems < 0 {
			return nil, fmt.Errorf("collective: all-to-all of %d elements", elems)
		}
		switch c {
		case p.Index:
			a.self[0] = end
		case n + p.Index:
			a.self[1] = end - a.in*d.Size()
		}
		if c < n {
			a.in += elems
		} else {
			a.out += elems
		}
		end += elems * d.Size()
		l.bounds = append(l.bounds, end)
	}
	var err error
	if a.run, err = newRunner(p, PairwiseAllToAll(n), d, 0, l, o); err != nil {
		return nil, err
	}
	// Partners compare how much goes each way, which is of this pair alone.
	for i := range a.run.engine.lines {
		ln := &a.run.engine.lines[i]
		o := a.run.opening
		o.Elems = give[ln.index]
		o.encode(&ln.mine)
		o.Elems = take[ln.index]
		o.encode(&ln.due)
	}
	return a, nil
}

// Bytes is what one Run moves: sent plus received.
func (a *AllToAllRunner) Bytes() int64 { return a.run.Bytes() }

// Run gives what is in in, by rank, and takes into out, by rank. They must not be the
// same. Errors are those of a Runner's Run.
func (a *AllToAllRunner) Run(ctx context.Context, in, out *tensor.Tensor) error {
	d := a.run.opening.DType
	if in.DType() != d || out.DType() != d || in.Elems() != a.in || out.Elems() != a.out || in == out {
		return fmt.Errorf("collective: all-to-all of %d into %d %v elements given %d %v and %d %v",
			a.in, a.out, d, in.Elems(), in.DType(), out.Elems(), out.DType())
	}
	from, to := in.Bytes(), out.Bytes()
	mine := a.give[a.run.Index] * d.Size()
	copy(to[a.self[1]:a.self[1]+mine], from[a.self[0]:a.self[0]+mine])
	return a.run.run(ctx, from, to)
}

// BarrierRunner performs a barrier for one rank, again and again. It is not safe for
// concurrent use.
type BarrierRunner struct {
	run  *Runner
	word *tensor.Tensor
}

// NewBarrier binds a barrier to a place in a group.
func NewBarrier(p Party, o ...Options) (*BarrierRunner, error) {
	var opt Options
	if len(o) > 0 {
		opt = o[0]
	}
	opt.Reduction = reduce.Max
	run, err := NewRunner(p, DisseminationBarrier(len(p.Group)), tensor.I32, 1, opt)
	if err != nil {
		return nil, err
	}
	return &BarrierRunner{run: run, word: tensor.New(tensor.I32, 1)}, nil
}

// Run returns when all ranks of the group have called it. Errors are those of a
// Runner's Run.
func (b *BarrierRunner) Run(ctx context.Context) error { return b.run.Run(ctx, b.word) }
