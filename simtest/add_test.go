package simtest

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// numbers reads a tensor of any float type: every such number is a float64 exactly.
func numbers(t *tensor.Tensor) []float64 {
	v := make([]float64, t.Elems())
	switch h := compute.HalfOf(t.DType()); {
	case t.DType() == tensor.F64:
		copy(v, t.F64())
	case t.DType() == tensor.F32:
		for i, x := range t.F32() {
			v[i] = float64(x)
		}
	case h != nil:
		wide := make([]float32, t.Elems())
		h.Widen(wide, t.Halves())
		for i, x := range wide {
			v[i] = float64(x)
		}
	}
	return v
}

// finite reports whether all numbers of a tensor are.
func finite(t *tensor.Tensor) bool {
	for _, v := range numbers(t) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// ruin makes the first number of a tensor infinite, or none at all.
func ruin(t *tensor.Tensor, inf bool) {
	v := math.NaN()
	if inf {
		v = math.Inf(1)
	}
	switch h := compute.HalfOf(t.DType()); {
	case t.DType() == tensor.F64:
		t.F64()[0] = v
	case t.DType() == tensor.F32:
		t.F32()[0] = float32(v)
	case h != nil:
		h.Narrow(t.Halves()[:1], []float32{float32(v)})
	}
}

// addable fails on an Add that the simulation cannot do.
func addable(b *task) error {
	if len(b.Out) > 2 || len(b.Out) == 2 && (len(b.In) == 0 || len(b.In)%2 != 0 || len(b.Factors) > 0) {
		return fmt.Errorf("an Add of %d values into %d", len(b.In), len(b.Out))
	}
	return nil
}

// add does what an Add task says: package exec does the same faster.
func (t *task) add(p *plan.Plan, c int) error {
	in, out := t.in[c], t.out[c]
	if len(out) == 2 {
		v := &p.Values[t.Out[1].Value]
		sum, err := collective.NewRowSum(len(in)/2, v.DType, v.Shape[1])
		if err != nil {
			return err
		}
		return sum.Run(in, out[0], out[1])
	}
	factors := t.Factors
	if len(factors) == 0 {
		out[0].Resize(in[0].Shape()...)
	}
	if out[0].DType() == tensor.F64 {
		combine(tensor.Data[float64](out[0]), in, factors)
		return nil
	}
	sum := make([]float32, out[0].Elems()) // to be rounded once if it goes into 16 bits
	combine(sum, in, factors)
	if h := compute.HalfOf(out[0].DType()); h != nil {
		h.Narrow(out[0].Halves(), sum)
	} else {
		copy(out[0].F32(), sum)
	}
	return nil
}

// combine is dst = Σ factors·in, from the left, and the factor that is left; no factors are
// ones. dst may be the memory of the first.
func combine[T tensor.Float](dst []T, in []*tensor.Tensor, factors []float64) {
	for i := range dst {
		sum := T(0)
		for k, t := range in {
			x := T(at(t, i))
			if len(factors) > 0 {
				x = T(T(factors[k]) * x) //nolint:unconvert // it forbids a fused multiply-add
			}
			if sum += x; k == 0 {
				sum = x // -0 stays
			}
		}
		if len(factors) > len(in) {
			sum += T(factors[len(in)])
		}
		dst[i] = sum
	}
}

// at is one number of a tensor.
func at(t *tensor.Tensor, i int) float64 {
	switch h := compute.HalfOf(t.DType()); {
	case t.DType() == tensor.F64:
		return t.F64()[i]
	case h != nil:
		wide := []float32{0}
		h.Widen(wide, t.Halves()[i:i+1])
		return float64(wide[0])
	}
	return float64(t.F32()[i])
}
