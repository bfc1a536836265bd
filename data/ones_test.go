package data

import (
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/tensor"
)

// halves is a source of ragged rows of which those of every other block have weights.
func halves(t *testing.T, n int) *memory {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	m := &memory{specs: []ColumnSpec{{Name: "x", Kind: RaggedColumn, Dim: 50}}, shift: 2, rows: n}
	for at := 0; at < n; at += 4 {
		b := &rows.Block{Rows: min(4, n-at), Columns: make([]rows.Packed, 1)}
		c := &b.Columns[0]
		c.Offsets = []int32{0}
		for range b.Rows {
			for range r.IntN(6) {
				c.IDs = append(c.IDs, int32(r.IntN(50)))
				if at/4%2 == 1 {
					c.Values = append(c.Values, r.Float32())
				}
			}
			c.Offsets = append(c.Offsets, int32(len(c.IDs)))
		}
		if at/4%2 == 1 && c.Values == nil {
			c.Values = []float32{}
		}
		m.blocks = append(m.blocks, b)
	}
	return m
}

// Weights that are left as they are, are right: rows with weights and without, batches
// that grow and shrink, tensors in turns and new ones between.
func TestOnesAreOnes(t *testing.T) {
	const n, steps = 61, 400
	src := halves(t, n)
	order := Order{Rows: n, Batch: 7, Seed: 3, Shuffle: true}
	inputs := []InputSpec{{"x", partWeights, tensor.F32, 1}, {"x", partIDs, tensor.I64, 1}, {"x", partOffsets, tensor.I64, 1}}
	f, err := NewFeeder(src, order, 0, 1, inputs)
	if err != nil {
		t.Fatal(err)
	}
	make3 := func() []*tensor.Tensor {
		return []*tensor.Tensor{tensor.New(tensor.F32, 0), tensor.New(tensor.I64, 0), tensor.New(tensor.I64, 0)}
	}
	turns := [][]*tensor.Tensor{make3(), make3(), make3()}
	r := rand.New(rand.NewPCG(5, 6))
	for step := range int64(steps) {
		i := r.IntN(len(turns))
		if r.IntN(20) == 0 {
			turns[i] = make3()
		}
		out := turns[i]
		if err := f.Feed(step, out); err != nil {
			t.Fatal(err)
		}
		var want Batch
		if err := src.Read(f.Rows(), &want); err != nil {
			t.Fatal(err)
		}
		got := out[0].F32()
		if len(got) != len(want.Columns[0].Values) {
			t.Fatalf("step %d: %d weights, want %d", step, len(got), len(want.Columns[0].Values))
		}
		for k, v := range want.Columns[0].Values {
			if got[k] != v {
				t.Fatalf("step %d: weight %d of %d is %v, want %v", step, k, len(got), got[k], v)
			}
		}
	}
}

// What is known to be 1 is not written: a mark in it stays.
func TestOnesAreNotWritten(t *testing.T) {
	m := halves(t, 4) // one block, without weights
	order := Order{Rows: 4, Batch: 4}
	f, err := NewFeeder(m, order, 0, 1, []InputSpec{{"x", partWeights, tensor.F32, 1}})
	if err != nil {
		t.Fatal(err)
	}
	out := []*tensor.Tensor{tensor.New(tensor.F32, 0)}
	for step := range int64(3) { // the first gives the tensor its size, the second its memory is read into
		if err := f.Feed(step, out); err != nil {
			t.Fatal(err)
		}
	}
	out[0].F32()[0] = 9
	if err := f.Feed(3, out); err != nil || out[0].F32()[0] != 9 {
		t.Errorf("written again: %v, %v", out[0].F32(), err)
	}
}
