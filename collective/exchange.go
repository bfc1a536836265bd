package collective

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// Exchange gives a few bytes of each rank to all ranks, directly: one step, in
// which a rank sends n-1 messages and receives n-1. Every rank ends with the
// same bytes in the same order, so what each computes from them is the same to
// the bit. It suits sizes where latency rules; larger values go round a ring.
//
// Once warm, a Run allocates nothing. It is not safe for concurrent use.
type Exchange struct {
	Party
	size   int
	all    []byte
	recv   []transport.Receive
	broken error
}

// NewExchange binds an exchange of size bytes a rank.
func NewExchange(p Party, size int) (*Exchange, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if size <= 0 {
		return nil, fmt.Errorf("collective: exchange of %d bytes", size)
	}
	n := len(p.Group)
	all := tensor.New(tensor.I64, (n*size+7)/8).Bytes() // aligned, for who reads numbers in it
	return &Exchange{Party: p, size: size, all: all[:n*size], recv: make([]transport.Receive, n)}, nil
}

// Bytes is what one Run moves: sent plus received.
func (x *Exchange) Bytes() int64 { return int64(2 * (len(x.Group) - 1) * x.size) }

// Run gives mine and returns the bytes of all ranks in the order of the group,
// valid until the next Run. An error names the rank that was missing; the
// exchange is then used up.
func (x *Exchange) Run(ctx context.Context, mine []byte) ([]byte, error) {
	if len(mine) != x.size {
		return nil, fmt.Errorf("collective: exchange of %d bytes given %d", x.size, len(mine))
	}
	if x.broken != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsedUp, x.broken)
	}
	if err := x.run(ctx, mine); err != nil {
		x.broken = fmt.Errorf("collective: exchange over ranks %v: %w", x.Group, err)
		return nil, x.broken
	}
	return x.all, nil
}

// Direct is an all-reduce of a small buffer: an Exchange whose parts every rank
// adds up in the order of the group. It takes one step where a ring takes
// 2(n-1), and a rank sends (n-1)B bytes where it would send about 2B, so it pays
// while latency rules: below some kilobytes.
//
// Once warm, a Run allocates nothing. It is not safe for concurrent use.
type Direct struct {
	exchange *Exchange // nil if there is nothing to add
	dtype    tensor.DType
	elems    int
}

// NewDirect binds a sum of elems elements of type d.
func NewDirect(p Party, d tensor.DType, elems int) (*Direct, error) {
	if !d.IsFloat() || elems < 0 {
		return nil, fmt.Errorf("collective: sum of %d elements of type %v", elems, d)
	}
	r := &Direct{dtype: d, elems: elems}
	if elems == 0 {
		return r, p.Validate()
	}
	var err error
	r.exchange, err = NewExchange(p, elems*d.Size())
	return r, err
}

// Bytes is what one Run moves: sent plus received.
func (r *Direct) Bytes() int64 {
	if r.exchange == nil {
		return 0
	}
	return r.exchange.Bytes()
}

// Run sums t over the group, in place. Errors are those of Runner.Run.
func (r *Direct) Run(ctx context.Context, t *tensor.Tensor) error {
	if t.DType() != r.dtype || t.Elems() != r.elems {
		return fmt.Errorf("collective: sum of %d %v elements given %d %v", r.elems, r.dtype, t.Elems(), t.DType())
	}
	if r.exchange == nil {
		return nil
	}
	all, err := r.exchange.Run(ctx, t.Bytes())
	if err != nil {
		return err
	}
	if r.dtype == tensor.F32 {
		sumParts(t.F32(), floats[float32](all))
	} else {
		sumParts(t.F64(), floats[float64](all))
	}
	return nil
}

// sumParts is dst = the sum of the parts of all, in order.
func sumParts[T tensor.Float](dst, all []T) {
	n := len(dst)
	copy(dst, all)
	for all = all[n:]; len(all) > 0; all = all[n:] {
		add(dst, all[:n])
	}
}

// run posts all, sends all, then waits for all. Ranks start with their next
// neighbour so that not all call on the same one.
func (x *Exchange) run(ctx context.Context, mine []byte) error {
	n := len(x.Group)
	copy(x.all[x.Index*x.size:], mine)
	for d := 1; d < n; d++ {
		i := mod(x.Index-d, n)
		rc := &x.recv[i]
		rc.Peer, rc.Tag, rc.Buf = x.Group[i], x.Tag, x.all[i*x.size:(i+1)*x.size]
		if err := x.Endpoint.Post(rc); err != nil {
			return x.fail("receive from", rc.Peer, err)
		}
	}
	for d := 1; d < n; d++ {
		peer := x.Group[mod(x.Index+d, n)]
		if err := x.Endpoint.Send(ctx, peer, x.Tag, nil, mine); err != nil {
			return x.fail("send to", peer, err)
		}
	}
	for d := 1; d < n; d++ {
		rc := &x.recv[mod(x.Index-d, n)]
		if err := rc.Wait(ctx); err != nil {
			return x.fail("receive from", rc.Peer, err)
		}
		if rc.N != x.size {
			return x.fail("receive from", rc.Peer, fmt.Errorf("%d bytes where %d were due: %w", rc.N, x.size, transport.ErrCorrupt))
		}
	}
	return nil
}
