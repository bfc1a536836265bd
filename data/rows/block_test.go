package rows

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func testSpecs() []ColumnSpec {
	return []ColumnSpec{
		{Name: "label", Kind: DenseColumn, Dim: 1},
		{Name: "pixels", Kind: DenseColumn, Dim: 3},
		{Name: "cat", Kind: RaggedColumn, Dim: 100, PerRow: 2},
		{Name: "x", Kind: RaggedColumn, Dim: 100},
	}
}

// draw appends n rows as a reader does; with ones, all weights are 1.
func draw(b *Block, r *rand.Rand, n int, ones bool) {
	c := b.Columns
	if c[1].Table == nil {
		c[1].Table = new([256]float32)
		for i := range c[1].Table {
			c[1].Table[i] = float32(i) / 255
		}
		c[1].Bytes = []uint8{}
	}
	for range n {
		c[0].Values = append(c[0].Values, r.Float32())
		for range 3 {
			c[1].Bytes = append(c[1].Bytes, byte(r.Uint32()))
		}
		c[2].IDs = append(c[2].IDs, int32(r.IntN(100)), int32(r.IntN(100)))
		for range r.IntN(4) {
			v := float32(1)
			if !ones {
				v = r.Float32()
			}
			c[3].IDs, c[3].Values = append(c[3].IDs, int32(r.IntN(100))), append(c[3].Values, v)
		}
		c[3].Offsets = append(c[3].Offsets, int32(len(c[3].IDs)))
	}
	b.Rows += n
}

// all reads every row of a block.
func all(b *Block) Batch {
	at := make([]int, b.Rows)
	for i := range at {
		at[i] = i
	}
	var out Batch
	Read(testSpecs(), []*Block{b}, 40, at, &out)
	return out
}

// TestBlocks: however rows are cut into blocks, dropped, appended and read, they are
// the same rows.
func TestBlocks(t *testing.T) {
	specs := testSpecs()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(1, 40).Draw(t, "rows")
		ones := rapid.Bool().Draw(t, "ones")
		var whole Block
		whole.Reset(specs)
		draw(&whole, r, n, ones)
		want := all(&whole)
		shift := uint(rapid.IntRange(0, 4).Draw(t, "shift"))
		var blocks []*Block
		for lo := 0; lo < n; lo += 1 << shift {
			blocks = append(blocks, whole.Slice(specs, lo, min(n, lo+1<<shift)))
			if last := blocks[len(blocks)-1]; ones && last.Columns[3].Values != nil {
				t.Fatal("weights that are all 1 were kept")
			}
		}
		at := r.Perm(n)
		var got Batch
		Read(specs, blocks, shift, at, &got)
		picked := pick(&want, at)
		if diff := cmp.Diff(picked, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("rows %v of blocks of %d:\n%s", at, 1<<shift, diff)
		}
		var joined Block
		joined.Reset(specs)
		for _, b := range blocks {
			cut := r.IntN(b.Rows + 1)
			joined.Append(specs, b, 0, cut)
			joined.Append(specs, b, cut, b.Rows)
		}
		if diff := cmp.Diff(want, all(&joined), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("appended again:\n%s", diff)
		}
		var taken Block
		taken.Reset(specs)
		for range 3 { // the second and third time into the arrays that Take leaves
			taken.Append(specs, &whole, 0, n)
			if diff := cmp.Diff(want, all(taken.Take(specs)), cmpopts.EquateEmpty()); diff != "" || taken.Rows != 0 {
				t.Fatalf("taken, %d left:\n%s", taken.Rows, diff)
			}
		}
		drop := r.IntN(n + 1)
		joined.Drop(specs, drop)
		joined.Truncate(specs, joined.Rows)
		rest := whole.Slice(specs, drop, n)
		if diff := cmp.Diff(all(rest), all(&joined), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("without the first %d:\n%s", drop, diff)
		}
	})
}

// pick takes rows out of a batch, the plain way.
func pick(b *Batch, at []int) Batch {
	out := Batch{Columns: make([]Column, len(b.Columns))}
	for _, row := range at {
		one := Batch{Rows: 1, Columns: make([]Column, len(b.Columns))}
		for i, spec := range testSpecs() {
			c, from := &one.Columns[i], &b.Columns[i]
			lo, hi := row*spec.Dim, (row+1)*spec.Dim
			if spec.Kind == RaggedColumn {
				lo, hi = int(from.Offsets[row]), int(from.Offsets[row+1])
				c.Offsets, c.IDs = []int64{0, int64(hi - lo)}, from.IDs[lo:hi]
				if out.Rows == 0 {
					out.Columns[i].Offsets = []int64{0}
				}
			}
			c.Values = from.Values[lo:hi]
		}
		out.Append(&one)
	}
	return out
}

// A malformed row is cut off again, whatever was appended of it.
func TestTruncate(t *testing.T) {
	specs := testSpecs()
	var b Block
	b.Reset(specs)
	draw(&b, rand.New(rand.NewPCG(1, 1)), 5, false)
	want := all(&b)
	b.Columns[0].Values = append(b.Columns[0].Values, 7)
	b.Columns[3].IDs = append(b.Columns[3].IDs, 9)
	b.Truncate(specs, b.Rows)
	if diff := cmp.Diff(want, all(&b)); diff != "" || len(b.Columns[0].Values) != 5 || len(b.Columns[3].IDs) != len(b.Columns[3].Values) {
		t.Error(diff)
	}
	if err := Check([]int{0, 4}, 5); err != nil {
		t.Error(err)
	}
	for _, row := range []int{-1, 5} {
		if Check([]int{row}, 5) == nil {
			t.Errorf("row %d of 5 is there", row)
		}
	}
}

// Rows of the size of those taken before are handed over, not copied, though the first
// were in arrays with much room.
func TestTakeHands(t *testing.T) {
	specs := testSpecs()
	var b Block
	b.Reset(specs)
	b.Columns[0].Values = make([]float32, 0, 10_000)
	b.Columns[3].IDs = make([]int32, 0, 10_000)
	fill := func() {
		r := rand.New(rand.NewPCG(1, 1))
		draw(&b, r, 1000, false)
	}
	fill()
	if first := b.Take(specs); cap(first.Columns[0].Values) > 1200 || cap(first.Columns[3].IDs) > 2000 {
		t.Error("a block keeps the room that it did not need")
	}
	fill()
	values, ids, offsets := &b.Columns[0].Values[0], &b.Columns[3].IDs[0], &b.Columns[3].Offsets[0]
	c := b.Take(specs).Columns
	if &c[0].Values[0] != values || &c[3].IDs[0] != ids || &c[3].Offsets[0] != offsets {
		t.Error("rows of the same size were copied")
	}
}
