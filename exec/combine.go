package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// combineOp adds up its inputs, each times its factor, and perhaps a number, in this
// order: first = f0·in0, then each other product is added to it, rounded both times,
// so that every rank and every machine finds the same bits.
type combineOp struct {
	still
	operands
	factors []float64
}

func (b *binder) combine(t *plan.Task, io operands) (op, error) {
	if n := len(t.Factors) - len(t.In); n != 0 && n != 1 {
		return nil, fmt.Errorf("%d factors for %d values, want one each, and perhaps a number to add", len(t.Factors), len(t.In))
	}
	out := io.out[0][0]
	for i, in := range io.in[0] {
		if in.DType() != out.DType() || !in.DType().IsFloat() || !in.Shape().Equal(out.Shape()) {
			return nil, fmt.Errorf("cannot add %v %v to %v %v", in.DType(), in.Shape(), out.DType(), out.Shape())
		}
		if i > 0 && in == out {
			return nil, errors.New("the sum may overwrite only its first value")
		}
	}
	return &combineOp{operands: io, factors: t.Factors}, nil
}

func (o *combineOp) run(_ context.Context, _ int64, c int) error {
	in, out := o.in[c], o.out[c][0]
	if out.DType() == tensor.F32 {
		combine(out.F32(), o.factors, in, (*tensor.Tensor).F32)
	} else {
		combine(out.F64(), o.factors, in, (*tensor.Tensor).F64)
	}
	return nil
}

// combine is dst = Σ factors[i]·in[i], and the factor that is left. It is one pass
// over every input.
func combine[T tensor.Float](dst []T, factors []float64, in []*tensor.Tensor, of func(*tensor.Tensor) []T) {
	for k, t := range in {
		src, f := of(t)[:len(dst)], T(factors[k])
		switch {
		case k == 0 && f == 1:
			copy(dst, src)
		case k == 0:
			for i := range dst {
				dst[i] = f * src[i]
			}
		default:
			for i := range dst {
				dst[i] += T(f * src[i]) //nolint:unconvert // it forbids a fused multiply-add
			}
		}
	}
	if len(factors) == len(in) {
		return
	}
	last := T(factors[len(in)])
	for i := range dst {
		if len(in) == 0 {
			dst[i] = last
		} else {
			dst[i] += last
		}
	}
}
