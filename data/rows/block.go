package rows

import "slices"

// Packed is one column of some consecutive rows, as small as the rows allow. What
// a column does not need stays nil.
type Packed struct {
	// Values is rows x Dim (dense), or one weight an entry (ragged; nil: all are 1).
	Values []float32
	// Bytes replaces Values in a dense column of at most 256 different values, such
	// as the pixels of images: value i is Table[Bytes[i]].
	Bytes []uint8
	Table *[256]float32
	// Offsets is where the entries of each row of a ragged column begin, rows+1 of
	// them; nil if every row has PerRow.
	Offsets []int32
	// IDs is one an entry (ragged).
	IDs []int32
}

// Block is some consecutive rows, one Packed a ColumnSpec.
type Block struct {
	Rows    int
	Columns []Packed
}

// Reset empties a block for columns of these specs and keeps its memory.
func (b *Block) Reset(specs []ColumnSpec) {
	b.Rows = 0
	b.Columns = Resize(b.Columns, len(specs))
	for i := range b.Columns {
		c := &b.Columns[i]
		c.Values, c.Bytes, c.IDs = c.Values[:0], c.Bytes[:0], c.IDs[:0]
		if specs[i].Kind == RaggedColumn && specs[i].PerRow == 0 {
			c.Offsets = append(c.Offsets[:0], 0)
		}
	}
}

// Truncate cuts a block to its first n rows. Columns may already reach further
// than b.Rows: readers cut off what they had of a malformed row.
func (b *Block) Truncate(specs []ColumnSpec, n int) {
	b.Rows = n
	for i := range b.Columns {
		c := &b.Columns[i]
		end := c.start(&specs[i], n)
		if specs[i].Kind == RaggedColumn {
			c.IDs = c.IDs[:end]
			if c.Offsets != nil {
				c.Offsets = c.Offsets[:n+1]
			}
		}
		if c.Bytes != nil {
			c.Bytes = c.Bytes[:end]
		}
		if c.Values != nil {
			c.Values = c.Values[:end]
		}
	}
}

// start is where the elements of a row begin, its floats or its entries.
func (c *Packed) start(spec *ColumnSpec, row int) int {
	switch {
	case spec.Kind == DenseColumn:
		return row * spec.Dim
	case c.Offsets != nil:
		return int(c.Offsets[row])
	}
	return row * spec.PerRow
}

// Bytes is the memory that the rows of a block take.
func (b *Block) Bytes() int64 {
	n := 0
	for i := range b.Columns {
		c := &b.Columns[i]
		n += 4*len(c.Values) + len(c.Bytes) + 4*len(c.Offsets) + 4*len(c.IDs)
	}
	return int64(n)
}

// Slice returns a copy of rows lo to hi, as small as they allow: weights that are
// all 1 are left out.
func (b *Block) Slice(specs []ColumnSpec, lo, hi int) *Block {
	out := &Block{Rows: hi - lo, Columns: make([]Packed, len(b.Columns))}
	for i := range b.Columns {
		from, to, spec := &b.Columns[i], &out.Columns[i], &specs[i]
		first, end := from.start(spec, lo), from.start(spec, hi)
		if from.Offsets != nil {
			to.Offsets = slices.Clone(from.Offsets[lo : hi+1])
			for j := range to.Offsets {
				to.Offsets[j] -= int32(first)
			}
		}
		if spec.Kind == RaggedColumn {
			to.IDs = slices.Clone(from.IDs[first:end])
		}
		if from.Bytes != nil {
			to.Bytes, to.Table = slices.Clone(from.Bytes[first:end]), from.Table
			continue
		}
		if len(from.Values) > 0 && (spec.Kind == DenseColumn || !allOnes(from.Values[first:end])) {
			to.Values = slices.Clone(from.Values[first:end])
		}
	}
	return out
}

// Take returns all rows as a block of their own and leaves b empty. Arrays that are
// nearly full are handed over, not copied. Either way b gets new ones of about the size
// of these rows, so that the next rows of that size need no copy.
func (b *Block) Take(specs []ColumnSpec) *Block {
	out := &Block{Rows: b.Rows, Columns: make([]Packed, len(b.Columns))}
	for i := range b.Columns {
		from, to, ragged := &b.Columns[i], &out.Columns[i], specs[i].Kind == RaggedColumn
		if from.Offsets != nil {
			to.Offsets = handed(&from.Offsets)
		}
		if ragged {
			to.IDs = handed(&from.IDs)
		}
		if from.Bytes != nil {
			to.Bytes, to.Table = handed(&from.Bytes), from.Table
			continue
		}
		if len(from.Values) > 0 && (!ragged || !allOnes(from.Values)) {
			to.Values = handed(&from.Values)
		}
	}
	b.Reset(specs)
	return out
}

// handed takes an array over, or a copy of it where it has much room left.
func handed[T any](s *[]T) []T {
	out := *s
	if cap(out)-len(out) > len(out)/8 {
		out = slices.Clone(out)
	}
	*s = make([]T, 0, len(out)+len(out)/32)
	return out
}

func allOnes(s []float32) bool {
	for _, v := range s {
		if v != 1 {
			return false
		}
	}
	return true
}

// Drop removes the first n rows and keeps the memory.
func (b *Block) Drop(specs []ColumnSpec, n int) {
	for i := range b.Columns {
		c, spec := &b.Columns[i], &specs[i]
		first := c.start(spec, n)
		c.Values = dropped(c.Values, first)
		c.Bytes = dropped(c.Bytes, first)
		if spec.Kind == RaggedColumn {
			c.IDs = dropped(c.IDs, first)
		}
		if c.Offsets != nil {
			c.Offsets = dropped(c.Offsets, n)
			for j := range c.Offsets {
				c.Offsets[j] -= int32(first)
			}
		}
	}
	b.Rows -= n
}

// dropped moves s[n:] to the front. What is empty stays so.
func dropped[T any](s []T, n int) []T {
	if len(s) == 0 {
		return s
	}
	return s[:copy(s, s[n:])]
}

// Append adds rows lo to hi of another block of these specs. b may have more columns,
// which the caller fills.
func (b *Block) Append(specs []ColumnSpec, from *Block, lo, hi int) {
	for i := range specs {
		to, c, spec := &b.Columns[i], &from.Columns[i], &specs[i]
		first, end := c.start(spec, lo), c.start(spec, hi)
		if spec.Kind == RaggedColumn {
			appendWeights(to, c, first, end)
			base := len(to.IDs)
			to.IDs = append(to.IDs, c.IDs[first:end]...)
			if c.Offsets != nil {
				for _, o := range c.Offsets[lo+1 : hi+1] {
					to.Offsets = append(to.Offsets, int32(base+int(o)-first))
				}
			}
			continue
		}
		if c.Bytes != nil {
			to.Bytes, to.Table = append(to.Bytes, c.Bytes[first:end]...), c.Table
			continue
		}
		to.Values = append(to.Values, c.Values[first:end]...)
	}
	b.Rows += hi - lo
}

// appendWeights adds the weights of entries of c to those of to, either of which
// may leave them out: all are 1.
func appendWeights(to, c *Packed, first, end int) {
	if len(c.Values) == 0 && len(to.Values) == 0 {
		return
	}
	fill := func(n int) {
		base := len(to.Values)
		to.Values = slices.Grow(to.Values, n)[:base+n]
		Ones(to.Values[base:])
	}
	fill(len(to.IDs) - len(to.Values))
	if len(c.Values) == 0 {
		fill(end - first)
		return
	}
	to.Values = append(to.Values, c.Values[first:end]...)
}
