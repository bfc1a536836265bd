package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// addOp sums its inputs, in their order. Those of 16 bits are added in float32, and a sum
// of 16 bits is rounded once, at the end.
type addOp struct {
	still
	operands
	wide [2]*tensor.Tensor // a sum and a term in float32, where they are not; nil: there are no 16 bits
}

func (b *binder) add(t *plan.Task, io operands) (op, error) {
	if len(t.Out) == 2 && len(t.In) > 0 && len(t.In)%2 == 0 {
		return b.addRows(t, io)
	}
	if len(t.Factors) > 0 && len(t.Out) == 1 {
		return b.combine(t, io)
	}
	if len(t.In) == 0 || len(t.Out) != 1 {
		return nil, fmt.Errorf("%d values in and %d out, want some and 1", len(t.In), len(t.Out))
	}
	d, o := io.out[0][0].DType(), &addOp{operands: io}
	for i, in := range io.in[0] {
		mixed := in.DType().IsHalf() || d.IsHalf()
		full := func(d tensor.DType) bool { return d == tensor.F32 || d.IsHalf() }
		switch {
		case mixed && full(d) && full(in.DType()):
			o.wide = [2]*tensor.Tensor{tensor.New(tensor.F32, 0), tensor.New(tensor.F32, 0)}
		case in.DType() != d || !d.IsFloat():
			return nil, fmt.Errorf("cannot add %v to %v", in.DType(), d)
		}
		if i > 0 && in == io.out[0][0] {
			return nil, errors.New("the sum may overwrite only its first value")
		}
	}
	return o, nil
}

func (o *addOp) run(_ context.Context, _ int64, c int) error {
	in, out := o.in[c], o.out[c][0]
	sum := out
	if o.wide[0] != nil && out.DType().IsHalf() {
		sum = o.wide[0]
	}
	if sum != in[0] {
		sum.Resize(in[0].Shape()...)
		copyTo(sum, in[0])
	}
	if err := o.add(sum, in[1:]); err != nil || sum == out {
		return err
	}
	out.Resize(sum.Shape()...)
	compute.HalfOf(out.DType()).Narrow(out.Halves(), sum.F32())
	return nil
}

// copyTo copies values, of 16 bits as floats.
func copyTo(dst, src *tensor.Tensor) {
	if h := compute.HalfOf(src.DType()); h != nil {
		h.Widen(dst.F32(), src.Halves())
		return
	}
	copy(dst.Bytes(), src.Bytes())
}

// add adds terms to a sum.
func (o *addOp) add(out *tensor.Tensor, terms []*tensor.Tensor) error {
	for i, t := range terms {
		if !t.Shape().Equal(out.Shape()) {
			return fmt.Errorf("value %d of the sum has shape %v, the first %v", i+1, t.Shape(), out.Shape())
		}
		if t.DType().IsHalf() {
			o.wide[1].Resize(t.Shape()...)
			copyTo(o.wide[1], t)
			t = o.wide[1]
		}
		if t.DType() == tensor.F32 {
			addTo(out.F32(), t.F32())
		} else {
			addTo(out.F64(), t.F64())
		}
	}
	return nil
}

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

// addTo is dst += src.
func addTo[T tensor.Float](dst, src []T) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}
