package tree

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// Rows sums sparse values of all slices: each rank gives, for each of its slices, ascending
// distinct keys and a row for each; each ends with the union of the keys, ascending, and
// for each key the rows summed in the order of the slices. All ranks have the rows of all
// slices then, so that nothing but that order counts. It uses the party's Endpoint.
type Rows struct {
	party  collective.Party
	slices int
	dtype  tensor.DType
	dim    int
	sum    *collective.RowSum
	mine   plan.Branch
	in     []*tensor.Tensor    // keys and rows of every slice; own ones are the caller's
	head   *tensor.Tensor      // i64: how many keys each own slice has, then their keys
	body   *tensor.Tensor      // their rows
	boxes  []transport.Receive // what others send, by index in the group: head and body
	bytes  int64
	broken error
}

// NewRows binds a sum of rows of dim elements of type d.
func NewRows(p collective.Party, slices int, d tensor.DType, dim int) (*Rows, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	n := len(p.Group)
	if slices < n || slices > plan.MaxSlices {
		return nil, fmt.Errorf("tree: %d slices on %d ranks: want as many as ranks at least, and at most %d", slices, n, plan.MaxSlices)
	}
	if p.Endpoint == nil && n > 1 {
		return nil, fmt.Errorf("tree: no endpoint for a group of %d", n)
	}
	sum, err := collective.NewRowSum(slices, d, dim)
	if err != nil {
		return nil, err
	}
	r := &Rows{
		party: p, slices: slices, dtype: d, dim: dim, sum: sum, mine: plan.Part(slices, n, p.Index),
		in: make([]*tensor.Tensor, 2*slices), head: tensor.New(tensor.I64, 0), body: tensor.New(d, 0), boxes: make([]transport.Receive, n),
	}
	for s := range slices {
		if s < r.mine.Lo || s >= r.mine.Hi {
			r.in[2*s], r.in[2*s+1] = tensor.New(tensor.I64, 0), tensor.New(d, 0, dim)
		}
	}
	for i := range r.boxes {
		r.boxes[i].Grow = func(n int) []byte { return make([]byte, n+n/2) }
	}
	return r, nil
}

// Bytes is what the last Run moved: sent plus received.
func (r *Rows) Bytes() int64 { return r.bytes }

// Run sums the pairs (keys, rows) of this rank's slices, from the left, and those of all
// others into (outKeys, outRows), which are resized to [K] and [K dim] and must be none of
// them. ctx bounds every wait; an error names the rank that was missing or wrong, and the
// runner is then used up.
func (r *Rows) Run(ctx context.Context, own []*tensor.Tensor, outKeys, outRows *tensor.Tensor) error {
	if want := r.mine.Hi - r.mine.Lo; len(own) != 2*want {
		return fmt.Errorf("tree: sum of rows given %d tensors where rank %d has %d of %d slices, two a slice", len(own), r.rank(), want, r.slices)
	}
	if r.broken != nil {
		return fmt.Errorf("%w: %w", collective.ErrUsedUp, r.broken)
	}
	r.bytes = 0
	copy(r.in[2*r.mine.Lo:], own)
	err := r.gather(ctx, own)
	if err == nil {
		if err = r.sum.Run(r.in, outKeys, outRows); err != nil {
			err = fmt.Errorf("slices (in place of ranks): %w", err)
		}
	}
	if err != nil {
		r.broken = fmt.Errorf("tree: sum of rows over ranks %v: %w", r.party.Group, err)
	}
	return r.broken
}

func (r *Rows) rank() int { return r.party.Group[r.party.Index] }

// gather brings the rows of all slices here: all receives are posted at once.
func (r *Rows) gather(ctx context.Context, own []*tensor.Tensor) error {
	n := len(r.party.Group)
	if n == 1 {
		return nil
	}
	if err := r.pack(own); err != nil {
		return err
	}
	for d := 1; d < n; d++ {
		i := (r.party.Index + n - d) % n
		b := &r.boxes[i]
		b.Peer, b.Tag = r.party.Group[i], r.party.Tag
		if err := r.party.Endpoint.Post(b); err != nil {
			return r.fail("receive from", i, err)
		}
	}
	for d := 1; d < n; d++ {
		i := (r.party.Index + d) % n
		if err := r.party.Endpoint.Send(ctx, r.party.Group[i], r.party.Tag, r.head.Bytes(), r.body.Bytes()); err != nil {
			return r.fail("send to", i, err)
		}
		r.bytes += int64(len(r.head.Bytes()) + len(r.body.Bytes()))
	}
	for d := 1; d < n; d++ {
		i := (r.party.Index + n - d) % n
		b := &r.boxes[i]
		if err := b.Wait(ctx); err != nil {
			return r.fail("receive from", i, err)
		}
		r.bytes += int64(b.N)
		if err := r.unpack(i, b.Buf[:b.N]); err != nil {
			return r.fail("receive from", i, fmt.Errorf("%w: %w", transport.ErrCorrupt, err))
		}
	}
	return nil
}

// pack puts what is to be sent side by side.
func (r *Rows) pack(own []*tensor.Tensor) error {
	keys := 0
	for s := 0; s < len(own); s += 2 {
		if own[s].DType() != tensor.I64 || own[s+1].DType() != r.dtype || own[s+1].Elems() != own[s].Elems()*r.dim {
			return fmt.Errorf("slice %d has %v %v keys and %v %v rows where %v rows of %d are summed", r.mine.Lo+s/2,
				own[s].DType(), own[s].Shape(), own[s+1].DType(), own[s+1].Shape(), r.dtype, r.dim)
		}
		keys += own[s].Elems()
	}
	r.head.Resize(len(own)/2 + keys)
	r.body.Resize(keys * r.dim)
	head, body := r.head.I64(), r.body.Bytes()
	at := len(own) / 2
	for s := 0; s < len(own); s += 2 {
		head[s/2] = int64(own[s].Elems())
		at += copy(head[at:], own[s].I64())
		body = body[copy(body, own[s+1].Bytes()):]
	}
	return nil
}

// unpack takes the slices of the rank at index i out of what it has sent.
func (r *Rows) unpack(i int, mem []byte) error {
	part := plan.Part(r.slices, len(r.party.Group), i)
	n := part.Hi - part.Lo
	if len(mem) < 8*n {
		return fmt.Errorf("%d bytes where %d slices have their counts", len(mem), n)
	}
	counts := make([]int, 0, plan.MaxSlices) // on the stack
	row, keys := r.dim*r.dtype.Size(), 0
	for s := range n {
		k := binary.LittleEndian.Uint64(mem[8*s:])
		if k > uint64(len(mem)) {
			return fmt.Errorf("a slice of %d keys in %d bytes", k, len(mem))
		}
		counts = append(counts, int(k))
		keys += int(k)
	}
	if want := 8*n + keys*(8+row); len(mem) != want {
		return fmt.Errorf("%d bytes where %d keys and their rows are %d", len(mem), keys, want)
	}
	rows := mem[8*(n+keys):]
	mem = mem[8*n:]
	for s, k := range counts {
		a, b := r.in[2*(part.Lo+s)], r.in[2*(part.Lo+s)+1]
		a.Resize(k)
		b.Resize(k, r.dim)
		mem = mem[copy(a.Bytes(), mem):]
		rows = rows[copy(b.Bytes(), rows):]
	}
	return nil
}

// fail makes sure that err names this rank and the one at index i.
func (r *Rows) fail(op string, i int, err error) error {
	if pe, ok := errors.AsType[*transport.PeerError](err); ok && pe.Rank == r.rank() {
		return err
	}
	return &transport.PeerError{Rank: r.rank(), Peer: r.party.Group[i], Op: op, Tag: r.party.Tag, Err: err}
}
