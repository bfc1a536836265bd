package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// send gives a value to a peer.
type send struct {
	operands
	endpoint transport.Endpoint
	peer     int
	tag      uint32
	bytes    int64
}

func (b *binder) send(t *plan.Task, io operands) (op, error) {
	if b.e.cfg.Endpoint == nil {
		return nil, errors.New("no Endpoint")
	}
	return &send{operands: io, endpoint: b.e.cfg.Endpoint, peer: t.Peer, tag: t.Tag}, io.counts(1, 0)
}

func (o *send) run(ctx context.Context, _ int64, c int) error {
	mem := o.in[c][0].Bytes()
	o.bytes = int64(len(mem))
	return o.endpoint.Send(ctx, o.peer, o.tag, nil, mem)
}

func (o *send) moved() int64 { return o.bytes }

// recv takes a value from a peer. A value may have one dynamic dim, whose size
// follows from the length of the message.
type recv struct {
	operands
	endpoint transport.Endpoint
	receive  transport.Receive
	into     *tensor.Tensor
	shape    tensor.Shape // scratch
	dynamic  int          // the dynamic dim, or -1
	unit     int          // bytes for each of it, or of the whole
}

func (b *binder) recv(t *plan.Task, io operands) (op, error) {
	if b.e.cfg.Endpoint == nil {
		return nil, errors.New("no Endpoint")
	}
	if err := io.counts(0, 1); err != nil {
		return nil, err
	}
	v := &b.e.cfg.Plan.Values[t.Out[0].Value]
	o := &recv{operands: io, endpoint: b.e.cfg.Endpoint, shape: v.Shape.Clone(), dynamic: -1, unit: v.DType.Size()}
	for i, d := range v.Shape {
		switch {
		case d != tensor.Dynamic:
			o.unit *= d
		case o.dynamic >= 0:
			return nil, fmt.Errorf("value %q has shape %v: only one dynamic dim can be received", v.Name, v.Shape)
		default:
			o.dynamic = i
		}
	}
	o.receive.Peer, o.receive.Tag = t.Peer, t.Tag
	if o.dynamic >= 0 {
		if o.unit == 0 {
			return nil, fmt.Errorf("value %q has shape %v: its size cannot be told from its bytes", v.Name, v.Shape)
		}
		o.receive.Grow = func(n int) []byte {
			o.resize((n + o.unit - 1) / o.unit)
			return o.into.Bytes()
		}
	}
	return o, nil
}

// resize sets the dynamic dim.
func (o *recv) resize(n int) {
	o.shape[o.dynamic] = n
	o.into.Resize(o.shape...)
}

func (o *recv) run(ctx context.Context, _ int64, c int) error {
	o.into = o.out[c][0]
	o.receive.Buf = o.into.Bytes()
	if o.dynamic >= 0 {
		o.receive.Buf = nil // so that Grow is asked for just the size of the message
		o.resize(0)
	}
	if err := o.endpoint.Post(&o.receive); err != nil {
		return err
	}
	if err := o.receive.Wait(ctx); err != nil {
		return err
	}
	if want := len(o.into.Bytes()); o.receive.N != want {
		return fmt.Errorf("%d bytes from rank %d for a value of %d: %w", o.receive.N, o.receive.Peer, want, transport.ErrCorrupt)
	}
	return nil
}

func (o *recv) moved() int64 { return int64(o.receive.N) }
