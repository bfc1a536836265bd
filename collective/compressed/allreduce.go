// Package compressed sums float32 vectors over a group of ranks in fewer bytes than they
// have, by the codecs of package compress. All ranks end with the same bits.
//
// AllReduce works with any codec; PowerSGD by factors of low rank. What a step loses comes
// with a later one: both keep residuals, which State and Restore carry through
// checkpoints and to groups of another size.
//
// # Steps that are skipped
//
// If any value of any rank is NaN or infinite, or a sum is too large, so is part of
// the result, on all ranks alike: a Commit sees it and skips the step. The residuals
// are then left as they were before the Run, without a word from the caller. If a step is
// skipped for another reason (the gradient of another parameter), the caller says Revert
// on all ranks before the next Run: then that gradient leaves no trace.
//
// # Costs
//
// For n ranks, and a vector cut into chunks of which E_j are the bytes of chunk j encoded:
//
//	           steps       bytes that rank i sends           memory beside the vector
//	AllReduce  2           E - E_i + (n-1) E_i, E all E_j     with feedback 2 vectors and 3 chunks
//	PowerSGD   4 (n-1)     2(n-1)/n of P, and of Q            2 vectors
//
// A group of one sends nothing and loses nothing: it gives out what residuals there are.
//
// Duties of the caller are those of package collective. Once warm, a Run allocates nothing.
// Nothing here is safe for concurrent use.
package compressed

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// AllReduce sums vectors by a codec, in two steps in which each rank sends to all others
// directly. In the first, each gives to rank j its part of chunk j, encoded; rank j adds
// up the parts in the order of the group, its own not encoded. In the second it gives the
// sum to all, encoded, and all decode it, rank j too. With feedback, what the encoding of
// a part loses is added to the part in the next Run, and what that of a sum loses to the
// next sum.
//
// Source: F. Seide et al., 2014 (see compress.OneBit), section 3.2: data-parallel exchange
// of sub-gradients with quantization before each of its two stages.
type AllReduce struct {
	collective.Party
	codec  compress.Codec
	elems  int
	bounds []int // elements at which chunks begin
	sizes  []int // of chunks, encoded
	// first and second are nil without feedback.
	first, second *compress.Feedback
	parts, sums   inbox
	out           []byte // what is being sent
	sum           []float32
	bytes         int64
	lost          loss
	look          bool // at what this run loses
	report        compress.Report
	broken        error
}

// inbox is a receive from each rank, with memory of its own.
type inbox []transport.Receive

// NewAllReduce binds the sum of vectors of elems elements by a codec, which must be the
// same on all ranks and this runner's alone. Without feedback what is lost is lost: that
// suits F16 and BF16. It fails if the group has no place for this rank, or if a
// chunk is larger than a message can be.
func NewAllReduce(p collective.Party, c compress.Codec, elems int, feedback bool) (*AllReduce, error) {
	if err := validate(&p, elems); err != nil {
		return nil, err
	}
	n := len(p.Group)
	a := &AllReduce{Party: p, codec: c, elems: elems, parts: make(inbox, n), sums: make(inbox, n)}
	for j := range n + 1 {
		a.bounds = append(a.bounds, collective.Bound(j, n, elems))
	}
	longest := 0
	for j := range n {
		size := c.Bytes(a.width(j))
		if size > transport.MaxMessage {
			return nil, fmt.Errorf("compressed: chunk of %d elements is %d bytes by %v, a message has at most %d: sum the vector in parts",
				a.width(j), size, c, transport.MaxMessage)
		}
		a.sizes = append(a.sizes, size)
		longest = max(longest, size)
	}
	if feedback {
		a.first, a.second = compress.NewFeedback(c, elems), compress.NewFeedback(c, a.width(p.Index))
	}
	if n > 1 {
		a.allocate(longest)
	}
	return a, nil
}

// validate checks what both collectives need.
func validate(p *collective.Party, elems int) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.Endpoint == nil && len(p.Group) > 1 {
		return fmt.Errorf("compressed: no endpoint for a group of %d", len(p.Group))
	}
	if elems < 0 {
		return fmt.Errorf("compressed: vector of %d elements", elems)
	}
	return nil
}

// allocate makes the memory of messages and counts their bytes.
func (a *AllReduce) allocate(longest int) {
	me, n := a.Index, int64(len(a.Group))
	a.out = make([]byte, longest)
	a.sum = make([]float32, a.width(me))
	if a.first == nil {
		a.lost.rest = make([]float32, a.elems/len(a.Group)+1) // as long as the longest chunk
	}
	for j := range a.Group {
		if j == me {
			continue
		}
		a.parts[j].Buf = make([]byte, a.sizes[me])
		a.sums[j].Buf = make([]byte, a.sizes[j])
		a.bytes += 2 * int64(a.sizes[j]) // a part sent, a sum received
	}
	a.bytes += 2 * (n - 1) * int64(a.sizes[me])
	a.report.Plain = plainBytes(a.Index, len(a.Group), a.elems)
}

// plainBytes is what a ring all-reduce of float32 moves for a rank.
func plainBytes(i, n, elems int) int64 {
	sent, received := collective.RingAllReduce(n).Traffic(i, elems, tensor.F32.Size())
	return sent + received
}

// width is the number of elements of a chunk.
func (a *AllReduce) width(j int) int { return a.bounds[j+1] - a.bounds[j] }

// chunk is the elements of chunk j.
func (a *AllReduce) chunk(v []float32, j int) []float32 { return v[a.bounds[j]:a.bounds[j+1]] }

// Bytes is what one Run moves: sent plus received. With E the bytes of all chunks encoded,
// and E_i those of this rank's, it is 2E + 2(n-2)E_i; if chunks are alike, 4(n-1)/n E.
func (a *AllReduce) Bytes() int64 { return a.bytes }

// Run sums t, an f32 tensor of elems elements, over the group in place. It blocks until this
// rank's part is done; ctx bounds every wait. An error names the rank that was missing, or
// whose bytes are none of the codec; t is then undefined and the runner used up.
func (a *AllReduce) Run(ctx context.Context, t *tensor.Tensor) error {
	if err := fits(t, a.elems, a.broken); err != nil {
		return err
	}
	v := t.F32()
	if a.look = a.first == nil && a.report.Runs%lookEvery == 0; a.look {
		a.lost.input, a.lost.first, a.lost.second = 0, 0, 0
	}
	finite, err := a.run(ctx, v)
	if err != nil {
		a.broken = fmt.Errorf("compressed: all-reduce by %v over ranks %v: %w", a.codec, a.Group, err)
		return a.broken
	}
	a.report.Runs++
	if !finite {
		a.report.Skipped++
	}
	switch {
	case a.first == nil:
		if finite && a.look {
			a.report.Input, a.report.First, a.report.Second = a.lost.norms()
		}
	case finite:
		a.report.Input = a.first.Input()
		a.first.Keep()
		a.second.Keep()
	default:
		a.first.Drop()
		a.second.Drop()
	}
	return nil
}

// lookEvery is in how many runs a runner without feedback, which has no residuals, looks once
// at what it loses.
const lookEvery = 64

// loss is what a run loses that keeps nothing of it.
type loss struct {
	rest                 []float32 // memory of a chunk
	input, first, second float64   // squares
}

// encode encodes v, adds to lost the square of what that loses, and to input that of v.
func (l *loss) encode(c compress.Codec, dst []byte, v []float32, input, lost *float64) int {
	rest := l.rest[:len(v)]
	copy(rest, v)
	n := c.EncodeRest(dst, rest)
	was, is := compress.Norm(v), compress.Norm(rest)
	*input += was * was
	*lost += is * is
	return n
}

func (l *loss) norms() (input, first, second float64) {
	return math.Sqrt(l.input), math.Sqrt(l.first), math.Sqrt(l.second)
}

// fits checks what both collectives are given.
func fits(t *tensor.Tensor, elems int, broken error) error {
	if t.DType() != tensor.F32 || t.Elems() != elems {
		return fmt.Errorf("compressed: sum of %d f32 elements given %d %v", elems, t.Elems(), t.DType())
	}
	if broken != nil {
		return fmt.Errorf("%w: %w", collective.ErrUsedUp, broken)
	}
	return nil
}

func (a *AllReduce) run(ctx context.Context, v []float32) (finite bool, err error) {
	own := a.chunk(v, a.Index)
	if len(a.Group) == 1 {
		if a.first != nil {
			a.first.Add(own, 0)
			a.second.Add(own, 0)
		}
		return compress.Finite(own), nil
	}
	if err := a.post(); err != nil {
		return false, err
	}
	if err := a.give(ctx, v); err != nil {
		return false, err
	}
	if a.first != nil {
		a.first.Add(own, a.bounds[a.Index])
	}
	if err := a.add(ctx, own); err != nil {
		return false, err
	}
	if err := a.publish(ctx, own); err != nil {
		return false, err
	}
	return a.gather(ctx, v)
}

// post offers the memory of all messages of a Run. Those of one rank arrive in order: its
// part, then its sum. Empty chunks are not sent; both ends know that.
func (a *AllReduce) post() error {
	for _, box := range []inbox{a.parts, a.sums} {
		for d := 1; d < len(a.Group); d++ {
			j := (a.Index + d) % len(a.Group)
			rc := &box[j]
			if len(rc.Buf) == 0 {
				continue
			}
			rc.Peer, rc.Tag = a.Group[j], a.Tag
			if err := a.Endpoint.Post(rc); err != nil {
				return a.fail("receive from", j, err)
			}
		}
	}
	return nil
}

// give encodes and sends the parts, to the next rank first.
func (a *AllReduce) give(ctx context.Context, v []float32) error {
	for d := 1; d < len(a.Group); d++ {
		j := (a.Index + d) % len(a.Group)
		if a.sizes[j] == 0 {
			continue
		}
		n := a.encode(j, a.chunk(v, j))
		if err := a.send(ctx, j, a.out[:n]); err != nil {
			return err
		}
	}
	return nil
}

// encode encodes this rank's part of chunk j, or, if that is its own, the sum, with feedback
// if there is any.
func (a *AllReduce) encode(j int, v []float32) int {
	switch sum := j == a.Index; {
	case a.first != nil && sum:
		return a.second.Encode(a.out, 0, v)
	case a.first != nil:
		return a.first.Encode(a.out, a.bounds[j], v)
	case a.look && sum:
		var input float64
		return a.lost.encode(a.codec, a.out, v, &input, &a.lost.second)
	case a.look:
		return a.lost.encode(a.codec, a.out, v, &a.lost.input, &a.lost.first)
	}
	return a.codec.Encode(a.out, v)
}

// add sums the parts of this rank's chunk in the order of the group.
func (a *AllReduce) add(ctx context.Context, own []float32) error {
	if len(own) == 0 {
		return nil
	}
	for j := range a.Group {
		if j == a.Index {
			if j == 0 {
				copy(a.sum, own)
			} else {
				plus(a.sum, own)
			}
			continue
		}
		part, err := a.take(ctx, a.parts, j)
		if err != nil {
			return err
		}
		if j == 0 {
			err = a.codec.Decode(a.sum, part)
		} else {
			err = a.codec.DecodeAdd(a.sum, part)
		}
		if err != nil {
			return a.bad(j, err)
		}
	}
	return nil
}

// publish encodes the sum of this rank's chunk, sends it to all and decodes it into own.
func (a *AllReduce) publish(ctx context.Context, own []float32) error {
	if len(own) == 0 {
		return nil
	}
	out := a.out[:a.encode(a.Index, a.sum)]
	for d := 1; d < len(a.Group); d++ {
		if err := a.send(ctx, (a.Index+d)%len(a.Group), out); err != nil {
			return err
		}
	}
	return a.codec.Decode(own, out)
}

// gather decodes the sums of the other ranks, as they come, and looks whether all is finite:
// the answer is the same on all ranks, since the bits are.
func (a *AllReduce) gather(ctx context.Context, v []float32) (finite bool, err error) {
	finite = compress.Finite(a.chunk(v, a.Index))
	for d := 1; d < len(a.Group); d++ {
		j := (a.Index + d) % len(a.Group)
		if a.sizes[j] == 0 {
			continue
		}
		sum, err := a.take(ctx, a.sums, j)
		if err != nil {
			return false, err
		}
		c := a.chunk(v, j)
		if err := a.codec.Decode(c, sum); err != nil {
			return false, a.bad(j, err)
		}
		finite = finite && compress.Finite(c)
	}
	return finite, nil
}

// send gives a message to index j.
func (a *AllReduce) send(ctx context.Context, j int, b []byte) error {
	if err := a.Endpoint.Send(ctx, a.Group[j], a.Tag, nil, b); err != nil {
		return a.fail("send to", j, err)
	}
	return nil
}

// take waits for a message of index j.
func (a *AllReduce) take(ctx context.Context, box inbox, j int) ([]byte, error) {
	rc := &box[j]
	if err := rc.Wait(ctx); err != nil {
		return nil, a.fail("receive from", j, err)
	}
	if rc.N != len(rc.Buf) {
		return nil, a.bad(j, fmt.Errorf("%d bytes where %d were due: the ranks disagree on size or codec", rc.N, len(rc.Buf)))
	}
	return rc.Buf, nil
}

// bad says that the bytes of index j are wrong.
func (a *AllReduce) bad(j int, err error) error {
	return a.fail("receive from", j, fmt.Errorf("%w: %w", transport.ErrCorrupt, err))
}

// fail makes sure that err names this rank and the one at index j.
func (a *AllReduce) fail(op string, j int, err error) error {
	if pe, ok := errors.AsType[*transport.PeerError](err); ok && pe.Rank == a.Group[a.Index] {
		return err
	}
	return &transport.PeerError{Rank: a.Group[a.Index], Peer: a.Group[j], Op: op, Tag: a.Tag, Err: err}
}

// plus is dst += src.
func plus(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}
