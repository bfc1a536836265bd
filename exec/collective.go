package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// runner performs a dense collective in place.
type runner interface {
	Run(ctx context.Context, t *tensor.Tensor) error
	Bytes() int64
}

// group performs a collective on dense values of known size.
type group struct {
	operands
	runner runner
	// whole is where it runs: nil is Out itself.
	whole *tensor.Tensor
	// give and take are the ranges of the whole, in bytes, that In is copied to
	// and Out from.
	give, take span
}

// span is bytes [lo, hi).
type span struct{ lo, hi int }

func (b *binder) collective(t *plan.Task, io operands) (op, error) {
	party, err := b.party(t)
	if err != nil {
		return nil, err
	}
	if t.Order != plan.Any {
		return nil, fmt.Errorf("order %v is not supported", t.Order)
	}
	if t.Op == plan.AllGatherRows {
		return b.rows(t, io, party)
	}
	if err := io.counts(1, 1); err != nil {
		return nil, err
	}
	in, out := &b.e.cfg.Plan.Values[t.In[0].Value], &b.e.cfg.Plan.Values[t.Out[0].Value]
	if in.DType != out.DType || !in.Shape.Static() || !out.Shape.Static() {
		return nil, fmt.Errorf("%v %v into %v %v: want one type and static shapes", in.DType, in.Shape, out.DType, out.Shape)
	}
	n := len(party.Group)
	elems := max(in.Shape.Elems(), out.Shape.Elems())
	part := func(v *plan.Value) (span, error) {
		size := v.DType.Size()
		lo, hi := collective.Bound(party.Index, n, elems), collective.Bound(party.Index+1, n, elems)
		switch v.Shape.Elems() {
		case elems:
			return span{0, elems * size}, nil
		case hi - lo:
			return span{lo * size, hi * size}, nil
		}
		return span{}, fmt.Errorf("value %q of %d elements is neither all %d nor part %d of %d of them",
			v.Name, v.Shape.Elems(), elems, party.Index, n)
	}
	o := &group{operands: io}
	if o.give, err = part(in); err != nil {
		return nil, err
	}
	if o.take, err = part(out); err != nil {
		return nil, err
	}
	if o.take.hi-o.take.lo < elems*in.DType.Size() {
		o.whole = tensor.New(in.DType, elems)
	}
	same := in.Shape.Elems() == out.Shape.Elems()
	s, err := scheduleOf(t.Op, n, same)
	if err != nil {
		return nil, err
	}
	whole := out // of the whole value, which is the same on all ranks
	if out.Shape.Elems() < elems {
		whole = in
	}
	o.runner, err = collective.NewRunner(party, s, in.DType, elems, collective.Options{Name: whole.Name, Shape: whole.Shape})
	return o, err
}

// scheduleOf chooses the schedule of an op; same says that In and Out are of
// one size.
func scheduleOf(op plan.Op, n int, same bool) (*collective.Schedule, error) {
	switch op {
	case plan.AllReduce:
		if same {
			return collective.RingAllReduce(n), nil
		}
	case plan.Broadcast:
		if same {
			return collective.BinomialBroadcast(n), nil
		}
	case plan.ReduceScatter:
		return collective.RingReduceScatter(n), nil
	case plan.AllGather:
		return collective.RingAllGather(n), nil
	case plan.NoOp, plan.AllGatherRows:
	}
	return nil, fmt.Errorf("no collective %v of values of such sizes", op)
}

func (o *group) run(ctx context.Context, _ int64, c int) error {
	in, out := o.in[c][0], o.out[c][0]
	whole := o.whole
	if whole == nil {
		whole = out
	}
	if whole != in {
		copy(whole.Bytes()[o.give.lo:o.give.hi], in.Bytes())
	}
	if err := o.runner.Run(ctx, whole); err != nil {
		return err
	}
	if whole != out {
		copy(out.Bytes(), whole.Bytes()[o.take.lo:o.take.hi])
	}
	return nil
}

func (o *group) moved() int64 { return o.runner.Bytes() }

// rows sums sparse values.
type rows struct {
	operands
	sum *collective.Rows
}

func (b *binder) rows(t *plan.Task, io operands, party collective.Party) (op, error) {
	if err := io.counts(2, 2); err != nil {
		return nil, err
	}
	in, out := &b.e.cfg.Plan.Values[t.In[1].Value], &b.e.cfg.Plan.Values[t.Out[1].Value]
	if len(in.Shape) != 2 || len(out.Shape) != 2 || !in.Shape[1:].Equal(out.Shape[1:]) || !in.Shape[1:].Static() {
		return nil, fmt.Errorf("rows %v into %v: want [? D] both", in.Shape, out.Shape)
	}
	if t.In[0] == t.Out[0] || t.In[1] == t.Out[1] {
		return nil, errors.New("rows cannot be summed in place")
	}
	sum, err := collective.NewRows(party, in.DType, in.Shape[1])
	return &rows{operands: io, sum: sum}, err
}

func (o *rows) run(ctx context.Context, _ int64, c int) error {
	in, out := o.in[c], o.out[c]
	return o.sum.Run(ctx, in[0], in[1], out[0], out[1])
}

func (o *rows) moved() int64 { return o.sum.Bytes() }
