// Package computetest is the suite that every backend passes.
//
// A backend is compared with ref in float64 on the same values. Tolerances are
// stated a case: bit-equal where values only move; units in the last place
// where every element is computed alone; and for sums, a multiple of the sum of
// the magnitudes of what is added, since that is what rounding is relative to.
//
//	func TestConformance(t *testing.T) {
//		computetest.Run(t, native.New(), tensor.F32, tensor.F64)
//	}
package computetest

import (
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/computetest/gradtest"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Run runs the whole suite for each of the dtypes. Gradients are compared with
// differences only if F64 is among them; with F32 come graphs of mixed precision.
func Run(t *testing.T, b compute.Backend, dtypes ...tensor.DType) {
	t.Helper()
	for _, d := range dtypes {
		t.Run(d.String(), func(t *testing.T) {
			t.Run("forward", func(t *testing.T) { forward(t, b, d) })
			t.Run("by hand", func(t *testing.T) { computedByHand(t, b, d) })
			t.Run("formulas", func(t *testing.T) { agree(t, b, d) })
			t.Run("dropout", func(t *testing.T) { dropout(t, b, d) })
			t.Run("graphs", func(t *testing.T) { graphs(t, b, d) })
			t.Run("errors", func(t *testing.T) { runErrors(t, b, d) })
			t.Run("compile", func(t *testing.T) { compileErrors(t, b, d) })
			t.Run("update", func(t *testing.T) { updates(t, b, d) })
			t.Run("learn", func(t *testing.T) { learn(t, b, d) })
			if d == tensor.F64 {
				t.Run("gradients", func(t *testing.T) { gradtest.Run(t, b) })
				return
			}
			for _, low := range []tensor.DType{tensor.BF16, tensor.F16} {
				t.Run(low.String(), func(t *testing.T) { gradtest.RunHalves(t, b, ref.New(), low) })
			}
		})
	}
}

// RunShapes runs what applies to a backend that computes nothing: results have
// the right shape and are zero, updates change nothing, nothing is allocated.
func RunShapes(t *testing.T, b compute.Backend, dtypes ...tensor.DType) {
	t.Helper()
	for _, d := range dtypes {
		t.Run(d.String(), func(t *testing.T) {
			t.Run("shapes", func(t *testing.T) { shapes(t, b, d) })
			t.Run("compile", func(t *testing.T) { compileErrors(t, b, d) })
			t.Run("step", func(t *testing.T) { idleStep(t, b, d) })
		})
	}
}

// segmentOf makes a segment of one node with inputs of wholly dynamic shape, so
// that one program runs on every size.
func segmentOf(op graph.Op, attr graph.Attr, d tensor.DType, in []*tensor.Tensor) *graph.Segment {
	n := &graph.Node{ID: len(in), Name: "the-node", Op: op, DType: d, Attr: attr}
	if op == graph.ArgMax {
		n.DType = tensor.I64
	}
	seg := &graph.Segment{Name: "seg", Nodes: []*graph.Node{n}}
	for i, t := range in {
		src := &graph.Node{ID: i, Name: "in" + string(rune('0'+i)), Op: graph.Input, DType: t.DType()}
		if src.DType.IsFloat() {
			src.DType = d
		}
		for range t.Shape() {
			src.Shape = append(src.Shape, tensor.Dynamic)
		}
		n.In = append(n.In, src)
	}
	seg.In = n.In
	seg.Out = []*graph.Node{n}
	return seg
}

func compile(t *testing.T, b compute.Backend, seg *graph.Segment) compute.Program {
	t.Helper()
	p, err := b.Compile(seg)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return p
}

// convert returns the values of t, if they are floats, as dtype d.
func convert(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	if !t.DType().IsFloat() || t.DType() == d {
		return t.Clone()
	}
	c := tensor.New(d, t.Shape()...)
	if d == tensor.F32 {
		for i, v := range t.F64() {
			c.F32()[i] = float32(v)
		}
		return c
	}
	for i, v := range t.F32() {
		c.F64()[i] = float64(v)
	}
	return c
}

func convertAll(in []*tensor.Tensor, d tensor.DType) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(in))
	for i, t := range in {
		out[i] = convert(t, d)
	}
	return out
}

// dirty makes a tensor whose memory is not zero, to catch kernels that trust it.
func dirty(d tensor.DType) *tensor.Tensor {
	t := tensor.New(d, 64)
	for i := range t.Bytes() {
		t.Bytes()[i] = 0x7f
	}
	return t
}
