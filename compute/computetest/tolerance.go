package computetest

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// result is one comparison: what went in, what ref made of it in float64.
type result struct {
	op   graph.Op
	attr graph.Attr
	in   []*tensor.Tensor
	want *tensor.Tensor
}

// tolerance returns for element i the largest error allowed, in units of the
// rounding error of the dtype.
type tolerance func(t *testing.T, r *result) func(i int) float64

// exact allows nothing.
func exact(*testing.T, *result) func(int) float64 { return func(int) float64 { return 0 } }

// ulps allows n roundings of each element.
func ulps(n float64) tolerance {
	return func(_ *testing.T, r *result) func(int) float64 {
		want := r.want.F64()
		return func(i int) float64 { return n * math.Abs(want[i]) }
	}
}

// sums allows one rounding a term, and two more, of the sum of magnitudes. That
// sum is what ref makes of the magnitudes of the inputs, which holds for all
// operators that only multiply and add.
func sums(terms func(r *result) int) tolerance {
	return func(t *testing.T, r *result) func(int) float64 {
		in := convertAll(r.in, tensor.F64)
		for _, x := range in {
			if x.DType().IsFloat() {
				for i, v := range x.F64() {
					x.F64()[i] = math.Abs(v)
				}
			}
		}
		attr := r.attr
		magnitude := reference(t, r.op, attr, in).F64()
		n := float64(terms(r) + 2)
		return func(i int) float64 { return n * magnitude[i] }
	}
}

// of allows n roundings of a magnitude that the case states: the same for every
// element, from the inputs.
func of(n float64, magnitude func(in []*tensor.Tensor) float64) tolerance {
	return func(_ *testing.T, r *result) func(int) float64 {
		m := magnitude(r.in)
		return func(int) float64 { return n * m }
	}
}

// reference runs one operator on ref in float64.
func reference(t *testing.T, op graph.Op, attr graph.Attr, in []*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	seg := segmentOf(op, attr, tensor.F64, in)
	p, out := compile(t, ref.New(), seg), dirty(seg.Out[0].DType)
	if err := p.Run(0, in, []*tensor.Tensor{out}); err != nil {
		t.Fatalf("ref: %v", err)
	}
	return out
}

// epsilon is the rounding error of one operation.
func epsilon(d tensor.DType) float64 {
	if d == tensor.F32 {
		return 0x1p-23
	}
	return 0x1p-52
}

// compare reports the first element that is farther off than allowed. What ref
// rounds to a value that d cannot hold, or to one so small that d has fewer
// digits for it, is compared after the same rounding.
func compare(t *testing.T, got, want *tensor.Tensor, allowed func(i int) float64) {
	t.Helper()
	if !got.Shape().Equal(want.Shape()) {
		t.Fatalf("shape is %v, want %v", got.Shape(), want.Shape())
	}
	if got.DType() == tensor.I64 {
		if diff := cmp.Diff(want.I64(), got.I64()); diff != "" {
			t.Fatal(diff)
		}
		return
	}
	eps, tiny := epsilon(got.DType()), 0x1p-1000
	rounded := convert(want, got.DType())
	if got.DType() == tensor.F32 {
		tiny = 0x1p-126
	}
	g, w := convert(got, tensor.F64).F64(), convert(rounded, tensor.F64).F64()
	for i := range g {
		if g[i] == w[i] || math.IsNaN(g[i]) && math.IsNaN(w[i]) {
			continue
		}
		tol := allowed(i) * eps
		if tol > 0 {
			tol += tiny * eps * 2
		}
		if d := math.Abs(g[i] - w[i]); !(d <= tol) {
			t.Fatalf("element %d of %v is %v, want %v: off by %.3g, allowed %.3g", i, got.Shape(), g[i], w[i], d, tol)
		}
	}
}

// Magnitudes and numbers of terms that several cases use.

func maxAbs(t *tensor.Tensor) float64 {
	m := 0.0
	for _, v := range t.F64() {
		m = max(m, math.Abs(v))
	}
	return m
}

func sumAbs(t *tensor.Tensor) float64 {
	m := 0.0
	for _, v := range t.F64() {
		m += math.Abs(v)
	}
	return m
}

func elems(k int) func(*result) int {
	return func(r *result) int { return r.in[k].Elems() }
}
