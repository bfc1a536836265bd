// Package tree sums over ranks in an order that does not depend on how many ranks there
// are: that of one binary tree over the slices of a batch (plan.Branch). With the same
// slices, 1 rank and 64 end with the same bits.
//
// Each rank brings the sums of its branches: those whose slices are all its own. An
// AllReduce brings branches together and sums what is left of the tree. It has two ways.
// By ring, rank j takes chunk j of all branches of all ranks, sums it, and the sums go
// round a ring. By exchange, branches go round whole and every rank sums all of them:
// one round in place of two, for small buffers. Rows merges sparse values in the order of
// the slices, which needs no tree, since it has them all.
//
// # Costs
//
// For n ranks, of which rank i has m_i branches, M in all, m at most, and a buffer of B
// bytes cut into chunks b_j:
//
//	           rounds   bytes that rank i sends            and receives                memory beside
//	by ring    2(n-1)   m_i (B - b_i) + B - b_{i+1}        (M - m_i) b_i + B - b_i     M b_i, and m_i B if m_i > 1
//	exchange   n-1      (n-1) m B                          (n-1) m B                   n m B
//	Rows       1        (n-1) times its keys and rows      those of all others         those of all, twice
//
// Where m_i is 1 for all ranks, as with 12 slices on 2, 4, 6 or 12 ranks, the first is what
// a ring all-reduce sends, and no less is possible. Branches of one rank are never summed
// here: that is done already, or they are no two halves of one.
//
// Duties of the caller are those of package collective. A type must be a float for
// order to matter; any that package reduce can sum is taken. Once warm, an AllReduce
// allocates nothing. Nothing here is safe for concurrent use.
package tree

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/reduce"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// blockBytes is how much is summed at once before the next block of the buffer: all
// operands of it stay in the cache next to the core.
const blockBytes = 16 << 10

// join is one sum of the tree: piece right is added to piece left.
type join struct{ left, right int }

// joins returns the sums that are left of the tree over slices when n ranks have summed
// their branches, which are numbered from the left, and how many branches each rank has.
// The sums end in piece 0. It panics unless every rank has a slice.
func joins(slices, n int) (all []join, branches []int) {
	if n < 1 || slices < n {
		panic(fmt.Sprintf("tree: %d slices on %d ranks", slices, n))
	}
	var stack []plan.Branch
	var pieces []int // of the stack: where each sum is
	next := 0
	for i := range n {
		mine := plan.Branches(slices, plan.Part(slices, n, i))
		branches = append(branches, len(mine))
		for _, b := range mine {
			var joined int
			stack, joined = plan.Fold(slices, stack, b)
			pieces = append(pieces, next)
			next++
			for range joined {
				last := len(pieces) - 1
				all = append(all, join{pieces[last-1], pieces[last]})
				pieces = pieces[:last]
			}
		}
	}
	return all, branches
}

// Config says what an AllReduce sums.
type Config struct {
	// Slices are those of the whole batch; each rank of the group has plan.Part of them.
	Slices int
	// Algorithm is plan.ByRing or plan.ByExchange.
	Algorithm plan.Algorithm
	DType     tensor.DType
	Elems     int
	// Name is what partners compare beside all else, and what errors name.
	Name string
}

// AllReduce sums the branches of all ranks, again and again.
type AllReduce struct {
	Config
	party    collective.Party
	branches []int  // of each rank
	joins    []join // of what is in all
	kernel   *reduce.Kernel

	move    *collective.AllToAllRunner // chunks to their owners; nil unless by ring
	spread  *collective.Runner         // sums to all, or whole branches to all
	all     *tensor.Tensor             // pieces: branches from the left
	give    *tensor.Tensor             // own branches by chunk, if they are several
	piece   []int                      // where each piece begins in all, in bytes
	lo, hi  int                        // bytes of the buffer that this rank sums
	ownFrom int                        // of an exchange: where own branches go
}

// NewAllReduce binds a sum to a place in a group. It fails if there are fewer slices than
// ranks, or if the type cannot be summed. By ring without streams it uses the
// party's tag and that tag with collective.DenseTag set.
func NewAllReduce(p collective.Party, c Config) (*AllReduce, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	n := len(p.Group)
	switch {
	case c.Slices < n || c.Slices > plan.MaxSlices:
		return nil, fmt.Errorf("tree: %d slices on %d ranks: want as many as ranks at least, and at most %d", c.Slices, n, plan.MaxSlices)
	case c.Elems < 0 || c.DType.Size() == 0:
		return nil, fmt.Errorf("tree: sum of %d elements of type %v", c.Elems, c.DType)
	}
	a := &AllReduce{Config: c, party: p}
	a.joins, a.branches = joins(c.Slices, n)
	var err error
	if a.kernel, err = reduce.For(reduce.Sum, c.DType, n); err != nil {
		return nil, fmt.Errorf("tree: %w", err)
	}
	switch {
	case n == 1:
	case c.Algorithm == plan.ByRing:
		err = a.byRing()
	case c.Algorithm == plan.ByExchange:
		err = a.byExchange()
	default:
		err = fmt.Errorf("tree: %v is no way to sum in the order of a tree", c.Algorithm)
	}
	return a, err
}

// Branches is how many branches this rank brings.
func (a *AllReduce) Branches() int { return a.branches[a.party.Index] }

// byRing prepares to send chunks to their owners, and sums round a ring.
func (a *AllReduce) byRing() error {
	me, n, size := a.party.Index, len(a.party.Group), a.DType.Size()
	bound := func(c int) int { return collective.Bound(c, n, a.Elems) }
	width := bound(me+1) - bound(me)
	a.lo, a.hi = bound(me)*size, bound(me+1)*size
	give, take := make([]int, n), make([]int, n)
	total := 0
	for j := range n {
		give[j] = a.branches[me] * (bound(j+1) - bound(j))
		take[j] = a.branches[j] * width
		for range a.branches[j] {
			a.piece = append(a.piece, total*width*size)
			total++
		}
	}
	a.all = tensor.New(a.DType, total*width)
	if a.branches[me] > 1 {
		a.give = tensor.New(a.DType, a.branches[me]*a.Elems)
	}
	var err error
	o := collective.Options{Name: a.Name}
	if a.move, err = collective.NewAllToAll(a.party, a.DType, give, take, o); err != nil {
		return err
	}
	p := a.party
	p.Tag |= collective.DenseTag
	a.spread, err = collective.NewRunner(p, collective.RingAllGather(n), a.DType, a.Elems, o)
	return err
}

// byExchange prepares to send all branches to all. Every rank has room for as many as the
// one that has most.
func (a *AllReduce) byExchange() error {
	me, n, size := a.party.Index, len(a.party.Group), a.DType.Size()
	most := 0
	for _, m := range a.branches {
		most = max(most, m)
	}
	for j, m := range a.branches {
		for k := range m {
			a.piece = append(a.piece, (j*most+k)*a.Elems*size)
		}
	}
	a.ownFrom = me * most * a.Elems * size
	a.hi = a.Elems * size
	a.all = tensor.New(a.DType, n*most*a.Elems)
	var err error
	a.spread, err = collective.NewRunner(a.party, collective.RingAllGather(n), a.DType, n*most*a.Elems, collective.Options{Name: a.Name})
	return err
}

// Bytes is what one Run moves: sent plus received, without the openings of streams.
func (a *AllReduce) Bytes() int64 {
	n := int64(0)
	if a.move != nil {
		n += a.move.Bytes()
	}
	if a.spread != nil {
		n += a.spread.Bytes()
	}
	return n
}

// Run sums the branches of all ranks into the first of this one's, which are given from
// the left; the others are left as they are. It blocks until this rank's part is
// done; ctx bounds every wait. Errors are those of a collective.Runner.
func (a *AllReduce) Run(ctx context.Context, branches []*tensor.Tensor) error {
	if len(branches) != a.Branches() {
		return fmt.Errorf("tree: %d branches where rank %d has %d of %d slices", len(branches), a.party.Group[a.party.Index], a.Branches(), a.Slices)
	}
	for _, b := range branches {
		if b.DType() != a.DType || b.Elems() != a.Elems {
			return fmt.Errorf("tree: sum of %d %v elements given %d %v", a.Elems, a.DType, b.Elems(), b.DType())
		}
	}
	out := branches[0]
	switch {
	case len(a.party.Group) == 1:
		return nil
	case a.move == nil:
		for k, b := range branches {
			copy(a.all.Bytes()[a.ownFrom+k*a.hi:], b.Bytes())
		}
		if err := a.spread.Run(ctx, a.all); err != nil {
			return err
		}
		a.fold(out.Bytes())
		return nil
	}
	if err := a.move.Run(ctx, a.byChunk(branches), a.all); err != nil {
		return err
	}
	a.fold(out.Bytes()[a.lo:a.hi])
	return a.spread.Run(ctx, out)
}

// byChunk returns chunk after chunk of all branches: one branch alone is so already.
func (a *AllReduce) byChunk(branches []*tensor.Tensor) *tensor.Tensor {
	if a.give == nil {
		return branches[0]
	}
	n, size, at := len(a.party.Group), a.DType.Size(), 0
	dst := a.give.Bytes()
	for c := range n {
		lo, hi := collective.Bound(c, n, a.Elems)*size, collective.Bound(c+1, n, a.Elems)*size
		for _, b := range branches {
			at += copy(dst[at:], b.Bytes()[lo:hi])
		}
	}
	return a.give
}

// fold sums the pieces into out, a block of all of them at a time.
func (a *AllReduce) fold(out []byte) {
	mem := a.all.Bytes()
	for lo := 0; lo < len(out); lo += blockBytes {
		hi := min(lo+blockBytes, len(out))
		at := func(piece int) []byte { return mem[a.piece[piece]+lo : a.piece[piece]+hi] }
		last := len(a.joins) - 1
		for _, j := range a.joins[:last] {
			a.kernel.Combine(at(j.left), at(j.left), at(j.right))
		}
		a.kernel.Combine(out[lo:hi], at(a.joins[last].left), at(a.joins[last].right))
	}
}

// Traffic returns the bytes that rank i of n sends and receives in a Run: the formulas of
// the package.
func Traffic(c Config, n, i int) (sent, received int64) {
	_, branches := joins(c.Slices, n)
	size := int64(c.DType.Size())
	whole, most, total := int64(c.Elems)*size, 0, 0
	for _, m := range branches {
		most, total = max(most, m), total+m
	}
	if c.Algorithm == plan.ByExchange {
		all := int64(n-1) * int64(most) * whole
		return all, all
	}
	chunk := func(c2 int) int64 {
		c2 %= n
		return int64(collective.Bound(c2+1, n, c.Elems)-collective.Bound(c2, n, c.Elems)) * size
	}
	mine := int64(branches[i])
	if n == 1 {
		return 0, 0
	}
	return mine*(whole-chunk(i)) + whole - chunk(i+1), (int64(total)-mine)*chunk(i) + whole - chunk(i)
}

// Work returns what a Run on n ranks costs the rank that does most: rounds of messages, bytes
// sent, and bytes that are added or copied.
func Work(c Config, n int) (rounds int, sent, summed int64) {
	_, branches := joins(c.Slices, n)
	most, total := 0, 0
	for i, m := range branches {
		most, total = max(most, m), total+m
		s, _ := Traffic(c, n, i)
		sent = max(sent, s)
	}
	if n == 1 {
		return 0, 0, 0
	}
	whole := int64(c.Elems) * int64(c.DType.Size())
	if c.Algorithm == plan.ByExchange {
		return n - 1, sent, int64(total-1+most) * whole
	}
	summed = int64(total-1) * ((whole + int64(n) - 1) / int64(n))
	if most > 1 {
		summed += int64(most) * whole
	}
	return 2 * (n - 1), sent, summed
}
