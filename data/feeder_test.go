package data

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/data/parse"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/tensor"
)

// clickInputs are all parts of Criteo-shaped rows.
func clickInputs(float tensor.DType) []InputSpec {
	return []InputSpec{
		{"label", "dense", float, 1},
		{"label", "dense", float, 2},
		{"num", "dense", float, 2},
		{"cat", "offsets", tensor.I64, 1},
		{"cat", "ids", tensor.I64, 1},
		{"cat", "weights", float, 1},
		{"cat", "keys", tensor.I64, 1},
		{"cat", "pos", tensor.I64, 1},
		{"batch", "index", tensor.I64, 1},
	}
}

func outputs(inputs []InputSpec) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(inputs))
	for i, in := range inputs {
		out[i] = tensor.New(in.DType, make([]int, in.Dims)...)
	}
	return out
}

// TestFeed holds every part, in both float types, against the batch that the
// source reads for the same rows, with more ranks than rows too.
func TestFeed(t *testing.T) {
	src := testSource(t, 50, 1)
	for _, float := range []tensor.DType{tensor.F32, tensor.F64} {
		for _, ranks := range []int{1, 3, 20} {
			order := Order{Seed: 3, Rows: 50, Batch: 16, Shuffle: true}
			inputs := clickInputs(float)
			var seen [9]int64 // rows of each step that lower ranks had
			for rank := range ranks {
				feeder, err := NewFeeder(src, order, rank, ranks, inputs)
				if err != nil {
					t.Fatal(err)
				}
				out := outputs(inputs)
				for step := range int64(9) {
					if err := feeder.Feed(step, out); err != nil {
						t.Fatal(err)
					}
					checkFeed(t, src, order.RankRows(step, rank, ranks, nil), out)
					for _, at := range out[8].I64() {
						if at != seen[step] {
							t.Fatalf("step %d, rank %d of %d: index %d, want %d", step, rank, ranks, at, seen[step])
						}
						seen[step]++
					}
				}
			}
		}
	}
}

func checkFeed(t *testing.T, src Source, rows []int, out []*tensor.Tensor) {
	t.Helper()
	var b Batch
	if err := src.Read(rows, &b); err != nil {
		t.Fatal(err)
	}
	n, e := len(rows), len(rows)*parse.CriteoCats
	shapes := []tensor.Shape{{n}, {n, 1}, {n, parse.CriteoNums}, {n + 1}, {e}, {e}, out[6].Shape(), {e}, {n}}
	for i, want := range shapes {
		if !out[i].Shape().Equal(want) {
			t.Fatalf("input %d has shape %v, want %v", i, out[i].Shape(), want)
		}
	}
	cat := b.Columns[2]
	for i, want := range [][]float32{b.Columns[0].Values, b.Columns[0].Values, b.Columns[1].Values, nil, nil, cat.Values} {
		if want != nil && !slices.Equal(floats(out[i]), want) {
			t.Fatalf("input %d is %v, want %v", i, floats(out[i]), want)
		}
	}
	keys, pos := out[6].I64(), out[7].I64()
	if !slices.Equal(out[3].I64(), cat.Offsets) || !slices.Equal(out[4].I64(), cat.IDs) {
		t.Fatal("offsets or ids differ from the batch")
	}
	distinctIDs := slices.Compact(slices.Sorted(slices.Values(cat.IDs)))
	if !slices.Equal(keys, distinctIDs) {
		t.Fatalf("keys %v, want %v", keys, distinctIDs)
	}
	for i, p := range pos {
		if keys[p] != cat.IDs[i] {
			t.Fatalf("entry %d has id %d, but key %d", i, cat.IDs[i], keys[p])
		}
	}
}

func floats(t *tensor.Tensor) []float32 {
	if t.DType() == tensor.F32 {
		return t.F32()
	}
	var v []float32
	for _, x := range t.F64() {
		v = append(v, float32(x))
	}
	return v
}

// TestFeedNoAlloc: once warm, feeding allocates nothing, from memory and from
// the generator.
func TestFeedNoAlloc(t *testing.T) {
	planted := testSource(t, 4096, 1)
	read := mustOpen(t, Spec{Format: "criteo", Path: tempFile(t, criteoText(t, planted, 0, 4096)), Buckets: 500})
	for name, src := range map[string]Source{"generated": planted, "criteo": read} {
		inputs := clickInputs(tensor.F32)
		feeder, err := NewFeeder(src, Order{Seed: 1, Rows: 4096, Batch: 512, Shuffle: true}, 0, 2, inputs)
		if err != nil {
			t.Fatal(err)
		}
		out, step := outputs(inputs), int64(0)
		feed := func() {
			if err := feeder.Feed(step, out); err != nil {
				t.Fatal(err)
			}
			step++
		}
		feed()
		if n := testing.AllocsPerRun(20, feed); n != 0 {
			t.Errorf("%s: %v allocations a step", name, n)
		}
	}
}

// TestNewFeederErrors: what cannot be fed is refused, naming what there is.
func TestNewFeederErrors(t *testing.T) {
	src := testSource(t, 10, 1)
	fits := Order{Rows: 10, Batch: 2}
	tests := []struct {
		want  string
		order Order
		input InputSpec
		rank  int
	}{
		{`no column "cats": did you mean "cat"? There are label, num, cat`, fits, InputSpec{"cats", "ids", tensor.I64, 1}, 0},
		{`ragged column cat has no part "dense"`, fits, InputSpec{"cat", "dense", tensor.F32, 2}, 0},
		{`has no part "key": did you mean "keys"? There are offsets, ids, weights, keys, pos`, fits, InputSpec{"cat", "key", tensor.I64, 1}, 0},
		{`dense column num has no part "ids"`, fits, InputSpec{"num", "ids", tensor.I64, 1}, 0},
		{"dense of column num cannot be i64, want f32 or f64", fits, InputSpec{"num", "dense", tensor.I64, 2}, 0},
		{"ids of column cat cannot be f32, want i64", fits, InputSpec{"cat", "ids", tensor.F32, 1}, 0},
		{"pos of column cat cannot be i32, want i64", fits, InputSpec{"cat", "pos", tensor.I32, 1}, 0},
		{"dense of column num (dim 13) cannot have 1 dims", fits, InputSpec{"num", "dense", tensor.F32, 1}, 0},
		{"ids of column cat (dim 500) cannot have 2 dims", fits, InputSpec{"cat", "ids", tensor.I64, 2}, 0},
		{"an index cannot be f32 with 1 dims", fits, InputSpec{"batch", "index", tensor.F32, 1}, 0},
		{"an order of 11 rows does not fit a source of 10", Order{Rows: 11, Batch: 2}, InputSpec{"num", "dense", tensor.F32, 2}, 0},
		{"above 0", Order{Rows: 10}, InputSpec{"num", "dense", tensor.F32, 2}, 0},
		{"rank 2 is not in [0,2)", fits, InputSpec{"num", "dense", tensor.F32, 2}, 2},
	}
	for _, test := range tests {
		_, err := NewFeeder(src, test.order, test.rank, 2, []InputSpec{test.input})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

// TestFeedOutOfRange: an id that a source should not have delivered is an error
// that names its row, rows without entries before it notwithstanding.
func TestFeedOutOfRange(t *testing.T) {
	for _, id := range []int32{5, -1} {
		src := newMemory(&rows.Block{Rows: 4, Columns: []rows.Packed{{
			Offsets: []int32{0, 2, 2, 2, 4},
			IDs:     []int32{0, 4, id, 2},
		}}}, badRows{}, ColumnSpec{Name: "x", Kind: RaggedColumn, Dim: 5})
		feeder, err := NewFeeder(src, Order{Rows: 4, Batch: 4}, 0, 1, []InputSpec{{"x", "keys", tensor.I64, 1}})
		if err != nil {
			t.Fatal(err)
		}
		err = feeder.Feed(0, []*tensor.Tensor{tensor.New(tensor.I64, 0)})
		if err == nil || !strings.Contains(err.Error(), "row 3: id") || !strings.Contains(err.Error(), "not in [0,5)") {
			t.Errorf("id %d: %v", id, err)
		}
	}
}

// TestReadRows: a row that the source does not have is an error.
func TestReadRows(t *testing.T) {
	text := tempFile(t, []byte("1 1:1\n"))
	for _, src := range []Source{testSource(t, 5, 1), mustOpen(t, Spec{Format: "libsvm", Path: text})} {
		for _, row := range []int{-1, src.Rows()} {
			if err := src.Read([]int{0, row}, new(Batch)); err == nil {
				t.Errorf("row %d of %d was read", row, src.Rows())
			}
		}
	}
}
