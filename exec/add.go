package exec

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/exec/internal/sum"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// add sums dense values.
type add struct {
	still
	operands
	sum interface {
		Run(out *tensor.Tensor, in []*tensor.Tensor) error
	}
}

func (b *binder) add(t *plan.Task, io operands) (op, error) {
	if len(t.Out) == 2 && len(t.In) > 0 && len(t.In)%2 == 0 {
		return b.addRows(t, io)
	}
	if len(t.Out) != 1 || len(t.In) == 0 && len(t.Factors) == 0 {
		return nil, fmt.Errorf("%d values in and %d out, want some and 1", len(t.In), len(t.Out))
	}
	o, in, out, err := &add{operands: io}, io.in[0], io.out[0][0], error(nil)
	if len(t.Factors) > 0 {
		o.sum, err = sum.NewWeighted(out, in, t.Factors)
	} else {
		o.sum, err = sum.NewPlain(out, in)
	}
	return o, err
}

func (o *add) run(_ context.Context, _ int64, c int) error { return o.sum.Run(o.out[c][0], o.in[c]) }

// addRows sums sparse values: In is pairs of keys and rows, Out one pair.
type addRows struct {
	still
	operands
	sum *collective.RowSum
}

func (b *binder) addRows(t *plan.Task, io operands) (op, error) {
	v := &b.e.cfg.Plan.Values[t.Out[1].Value]
	if len(v.Shape) != 2 || v.Shape[1] < 1 {
		return nil, fmt.Errorf("rows %q have shape %v, want [? D]", v.Name, v.Shape)
	}
	sum, err := collective.NewRowSum(len(t.In)/2, v.DType, v.Shape[1])
	return &addRows{operands: io, sum: sum}, err
}

func (o *addRows) run(_ context.Context, _ int64, c int) error {
	return o.sum.Run(o.in[c], o.out[c][0], o.out[c][1])
}
