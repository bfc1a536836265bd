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
// Over the party's streams, if it has any, it is a Runner of PairwiseAllGather, with its
// duties; or else messages of the Endpoint.
//
// Once warm, a Run allocates nothing. It is not safe for concurrent use.
type Exchange struct {
	Party
	size   int
	all    []byte
	recv   []transport.Receive
	broken error

	// Over streams.
	runner *Runner
	words  *tensor.Tensor // what each rank gives, in whole words
}

// NewExchange binds an exchange of size bytes a rank.
func NewExchange(p Party, size int) (*Exchange, error) {
	validate := p.validateEndpoint
	if p.Streams != nil {
		validate = p.Validate
	}
	if err := validate(); err != nil {
		return nil, err
	}
	if size <= 0 {
		return nil, fmt.Errorf("collective: exchange of %d bytes", size)
	}
	n := len(p.Group)
	all := tensor.New(tensor.I64, (n*size+7)/8).Bytes() // aligned, for who reads numbers in it
	x := &Exchange{Party: p, size: size, all: all[:n*size], recv: make([]transport.Receive, n)}
	if p.Streams == nil {
		return x, nil
	}
	x.words = tensor.New(tensor.I64, n*((size+7)/8))
	var err error
	x.runner, err = NewRunner(p, PairwiseAllGather(n), tensor.I64, x.words.Elems(), Options{Name: "exchange"})
	return x, err
}

// Bytes is what one Run moves: sent plus received.
func (x *Exchange) Bytes() int64 {
	if x.runner != nil {
		return x.runner.Bytes()
	}
	return int64(2 * (len(x.Group) - 1) * x.size)
}

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
	run := x.run
	if x.runner != nil {
		run = x.runStreams
	}
	if err := run(ctx, mine); err != nil {
		x.broken = fmt.Errorf("collective: exchange over ranks %v: %w", x.Group, err)
		return nil, x.broken
	}
	return x.all, nil
}

// runStreams is run over streams.
func (x *Exchange) runStreams(ctx context.Context, mine []byte) error {
	b := x.words.Bytes()
	stride := len(b) / len(x.Group)
	copy(b[x.Index*stride:], mine)
	if err := x.runner.Run(ctx, x.words); err != nil {
		return err
	}
	for i := range x.Group {
		copy(x.all[i*x.size:(i+1)*x.size], b[i*stride:])
	}
	return nil
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
