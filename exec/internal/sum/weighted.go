package sum

import (
	"fmt"

	"github.com/gangline/gangline/tensor"
)

// Weighted adds up tensors, each times its factor, and perhaps a number, in this
// order: first = f0·in0, then each other product is added to it, rounded both times,
// so that every rank and every machine finds the same bits.
type Weighted struct {
	factors []float64
}

// NewWeighted makes a sum of tensors like these, whose shapes do not change. A factor
// more than tensors is the number to add. Out may be the first of them.
func NewWeighted(out *tensor.Tensor, in []*tensor.Tensor, factors []float64) (*Weighted, error) {
	if n := len(factors) - len(in); n != 0 && n != 1 {
		return nil, fmt.Errorf("%d factors for %d values, want one each, and perhaps a number to add", len(factors), len(in))
	}
	for i, t := range in {
		if t.DType() != out.DType() || !t.DType().IsFloat() || !t.Shape().Equal(out.Shape()) {
			return nil, fmt.Errorf("cannot add %v %v to %v %v", t.DType(), t.Shape(), out.DType(), out.Shape())
		}
		if i > 0 && t == out {
			return nil, overwrites()
		}
	}
	return &Weighted{factors}, nil
}

// Run is out = Σ factors·in.
func (w *Weighted) Run(out *tensor.Tensor, in []*tensor.Tensor) error {
	if out.DType() == tensor.F32 {
		combine(out.F32(), w.factors, in, (*tensor.Tensor).F32)
	} else {
		combine(out.F64(), w.factors, in, (*tensor.Tensor).F64)
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
