package rows

import "math"

// PackBatch makes a block of a batch of such columns. The block shares the batch's
// values and has ids of its own: those beyond 32 bits become the largest there is.
func PackBatch(specs []ColumnSpec, b *Batch) *Block {
	block := &Block{Rows: b.Rows, Columns: make([]Packed, len(specs))}
	for i := range specs {
		from, to := &b.Columns[i], &block.Columns[i]
		to.Values = from.Values
		if specs[i].Kind == DenseColumn {
			continue
		}
		to.IDs = make([]int32, len(from.IDs))
		for j, id := range from.IDs {
			to.IDs[j] = int32(min(id, math.MaxInt32))
		}
		if specs[i].PerRow == 0 {
			for _, o := range from.Offsets {
				to.Offsets = append(to.Offsets, int32(o))
			}
		}
	}
	return block
}
