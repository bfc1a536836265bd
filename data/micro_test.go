package data

import (
	"slices"
	"testing"

	"github.com/gangline/gangline/tensor"
)

// The micro-batches of all ranks, one after the other, are the rows of the step, and a
// rank's are those that it would read as one.
func TestMicroFeeder(t *testing.T) {
	src, err := Open(t.Context(), Spec{Format: "generated", Rows: 53, Buckets: 50, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	order := Order{Seed: 2, Rows: 53, Batch: 23, Shuffle: true}
	inputs := []InputSpec{{Column: "label", Part: partDense, DType: tensor.F64, Dims: 1}, {Part: partIndex, DType: tensor.I64, Dims: 1}}
	const ranks, micros = 3, 4
	for step := range int64(4) { // the third has 7 rows: fewer than pieces
		next := int64(0)
		for rank := range ranks {
			whole, err := NewFeeder(src, order, rank, ranks, inputs)
			if err != nil {
				t.Fatal(err)
			}
			cut, err := NewMicroFeeder(src, order, rank, ranks, micros, inputs)
			if err != nil {
				t.Fatal(err)
			}
			want := []*tensor.Tensor{tensor.New(tensor.F64, 0), tensor.New(tensor.I64, 0)}
			var out []*tensor.Tensor
			for range micros {
				out = append(out, tensor.New(tensor.F64, 0), tensor.New(tensor.I64, 0))
			}
			if err := whole.Feed(step, want); err != nil {
				t.Fatal(err)
			}
			if err := cut.Feed(step, out); err != nil {
				t.Fatal(err)
			}
			var labels []float64
			least, most := 99, 0
			for m := range micros {
				labels = append(labels, out[2*m].F64()...)
				least, most = min(least, out[2*m].Elems()), max(most, out[2*m].Elems())
				for _, at := range out[2*m+1].I64() {
					if at != next {
						t.Fatalf("step %d rank %d micro-batch %d: row %d of the step, want %d", step, rank, m, at, next)
					}
					next++
				}
			}
			if !slices.Equal(labels, want[0].F64()) || most-least > 1 {
				t.Errorf("step %d rank %d: labels %v in pieces of %d to %d, want %v", step, rank, labels, least, most, want[0].F64())
			}
		}
	}
	if _, err := NewMicroFeeder(src, order, 3, 3, 2, inputs); err == nil {
		t.Error("rank 3 of 3 is fed")
	}
}
