package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	// runs is, for each copy, the memory of all values together, where it sums several.
	runs []*tensor.Tensor
	// whole is where it runs otherwise: nil is Out itself.
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
	if t.Order == plan.Tree {
		return b.tree(t, io, party)
	}
	if t.Codec != "" {
		return b.compressed(t, io, party)
	}
	if t.Op == plan.AllGatherRows {
		return b.rows(t, io, party)
	}
	if t.Op == plan.AllReduce && len(t.In) > 1 {
		return b.fused(t, io, party)
	}
	if b.isSharded(t) {
		return b.sharded(t, io, party)
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
	s, err := b.scheduleOf(t, party.Group, same)
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

// fused sums several values at once, as the run of bytes that they are in their
// arena. What is between them is zero on all ranks, and stays it.
func (b *binder) fused(t *plan.Task, io operands, party collective.Party) (op, error) {
	if !slices.Equal(t.In, t.Out) {
		return nil, errors.New("several values can be summed in place only")
	}
	o, _, err := b.run(t, t.In, io, party)
	return o, err
}

// run binds a collective on the run of bytes that values are in their arena, of which
// it returns the first.
func (b *binder) run(t *plan.Task, whole []plan.Ref, io operands, party collective.Party) (o *group, lo int, err error) {
	runs, lo, err := b.runs(whole)
	if err != nil {
		return nil, 0, err
	}
	s, err := b.scheduleOf(t, party.Group, true)
	if err != nil {
		return nil, 0, err
	}
	o = &group{operands: io, runs: runs}
	o.runner, err = collective.NewRunner(party, s, runs[0].DType(), runs[0].Elems())
	return o, lo, err
}

// runs is, for each copy, the memory of values together, which must be one run of their
// arena, and where in it that begins.
func (b *binder) runs(refs []plan.Ref) (runs []*tensor.Tensor, lo int, err error) {
	lo, hi, err := b.e.cfg.Plan.Span(refs)
	if err != nil {
		return nil, 0, fmt.Errorf("values are no run: %w", err)
	}
	v := &b.e.cfg.Plan.Values[refs[0].Value]
	for _, mem := range b.e.values.Arena(v.Arena) {
		run, err := tensor.Wrap(v.DType, mem[lo:hi], (hi-lo)/v.DType.Size())
		if err != nil {
			return nil, 0, err
		}
		runs = append(runs, run)
	}
	return runs, lo, nil
}

// scheduleOf is the schedule of a task; same says that In and Out are of one size.
func (b *binder) scheduleOf(t *plan.Task, group []int, same bool) (*collective.Schedule, error) {
	n := len(group)
	switch t.Op {
	case plan.AllReduce:
		if same {
			return collective.AllReduceBy(t.Algorithm, n, b.e.cfg.Plan.HostsOf(group))
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
	return nil, fmt.Errorf("no collective %v of values of such sizes", t.Op)
}

func (o *group) run(ctx context.Context, _ int64, c int) error {
	if o.runs != nil {
		return o.runner.Run(ctx, o.runs[c])
	}
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
	table := 0 // of a size that is not known
	if in.State != plan.NoState {
		if v := &b.e.cfg.Plan.Values[in.State]; len(v.Shape) == 2 && v.Shape.Static() {
			table = v.Shape[0]
		}
	}
	sum, err := collective.NewRows(party, in.DType, in.Shape[1], table)
	return &rows{operands: io, sum: sum}, err
}

func (o *rows) run(ctx context.Context, _ int64, c int) error {
	in, out := o.in[c], o.out[c]
	return o.sum.Run(ctx, in[0], in[1], out[0], out[1])
}

func (o *rows) moved() int64 { return o.sum.Bytes() }
