// Package sum adds up dense tensors.
package sum

import (
	"errors"
	"fmt"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/tensor"
)

// Plain sums tensors, in their order. Those of 16 bits are added in float32, and a sum
// of 16 bits is rounded once, at the end.
type Plain struct {
	wide [2]*tensor.Tensor // a sum and a term in float32, where they are not; nil: there are no 16 bits
}

// NewPlain makes a sum of tensors like these. Their shapes may change until Run. Out may
// be the first of them.
func NewPlain(out *tensor.Tensor, in []*tensor.Tensor) (*Plain, error) {
	d, p := out.DType(), &Plain{}
	full := func(d tensor.DType) bool { return d == tensor.F32 || d.IsHalf() }
	for i, t := range in {
		mixed := t.DType().IsHalf() || d.IsHalf()
		switch {
		case mixed && full(d) && full(t.DType()):
			p.wide = [2]*tensor.Tensor{tensor.New(tensor.F32, 0), tensor.New(tensor.F32, 0)}
		case t.DType() != d || !d.IsFloat():
			return nil, fmt.Errorf("cannot add %v to %v", t.DType(), d)
		}
		if i > 0 && t == out {
			return nil, overwrites()
		}
	}
	return p, nil
}

// overwrites is the error of a sum that would destroy a value before it is read.
func overwrites() error { return errors.New("the sum may overwrite only its first value") }

// Run is out = Σ in, in the shape of the first.
func (p *Plain) Run(out *tensor.Tensor, in []*tensor.Tensor) error {
	sum := out
	if p.wide[0] != nil && out.DType().IsHalf() {
		sum = p.wide[0]
	}
	if sum != in[0] {
		sum.Resize(in[0].Shape()...)
		copyTo(sum, in[0])
	}
	if err := p.add(sum, in[1:]); err != nil || sum == out {
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
func (p *Plain) add(sum *tensor.Tensor, terms []*tensor.Tensor) error {
	for i, t := range terms {
		if !t.Shape().Equal(sum.Shape()) {
			return fmt.Errorf("value %d of the sum has shape %v, the first %v", i+1, t.Shape(), sum.Shape())
		}
		if t.DType().IsHalf() {
			p.wide[1].Resize(t.Shape()...)
			copyTo(p.wide[1], t)
			t = p.wide[1]
		}
		if t.DType() == tensor.F32 {
			addTo(sum.F32(), t.F32())
		} else {
			addTo(sum.F64(), t.F64())
		}
	}
	return nil
}

// addTo is dst += src.
func addTo[T tensor.Float](dst, src []T) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}
