package native_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/compute/computetest"
	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// TestConformance proves that native computes what ref does.
func TestConformance(t *testing.T) { computetest.Run(t, native.New(), tensor.F32, tensor.F64) }

// TestConformanceOfFallback proves the same of portable Go on threads.
func TestConformanceOfFallback(t *testing.T) {
	computetest.Run(t, native.New(native.Fallback(), native.Threads(2)), tensor.F32, tensor.F64)
}

// TestConformanceOfAVX2 proves the same of the tiles for AVX2 on threads, which a
// machine with AVX-512 would not use.
func TestConformanceOfAVX2(t *testing.T) {
	if !native.Assembly() {
		t.Skip("this machine cannot run the assembly")
	}
	computetest.Run(t, native.NewAVX2(native.Threads(2)), tensor.F32)
}

// TestRowsDoNotDependOnBatch proves that a row of a product has the same bits
// in a batch of any size, over several blocks in every dim: two ranks that cut
// a batch differently compute the same rows.
func TestRowsDoNotDependOnBatch(t *testing.T) {
	const m, k, n = 133, 1100, 9
	for _, tb := range []bool{false, true} {
		run := func(x []float32) []float32 {
			g := graph.New(tensor.F32)
			shape := []int{k, n}
			if tb {
				shape = []int{n, k}
			}
			p, in, out := whole(t, g, nil, g.MatMulT(g.Input("x", k), g.Variable("w", graph.Init{}, shape...), false, tb))
			in[0] = tensor.From(x, len(x)/k, k)
			if err := p.Run(0, in, out); err != nil {
				t.Fatal(err)
			}
			return out[0].F32()
		}
		x := make([]float32, m*k)
		for i := range x {
			x[i] = float32(i%1013) / 977
		}
		all := run(x)
		for _, cut := range [][2]int{{0, 1}, {1, 4}, {127, 129}, {3, 133}} {
			got, want := run(x[cut[0]*k:cut[1]*k]), all[cut[0]*n:cut[1]*n]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rows %v differ: %s", cut, diff)
			}
		}
	}
}
