package rows

import (
	"math"
	"runtime"
	"slices"
)

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

// Read fills out with the given rows of consecutive blocks, each of which but the
// last has 2^shift rows. Only the blocks that hold one of the rows need be there.
// Cost: one copy of every value.
func Read(specs []ColumnSpec, blocks []*Block, shift uint, at []int, out *Batch) {
	out.Reset(len(at), len(specs))
	for i := range specs {
		c := &out.Columns[i]
		if specs[i].Kind == DenseColumn {
			readDense(&specs[i], i, blocks, shift, at, c)
		} else {
			readRagged(&specs[i], i, blocks, shift, at, c)
		}
	}
}

func readDense(spec *ColumnSpec, column int, blocks []*Block, shift uint, at []int, out *Column) {
	dim, mask := spec.Dim, 1<<shift-1
	out.Values, out.Offsets, out.IDs = Resize(out.Values, len(at)*dim), out.Offsets[:0], out.IDs[:0]
	for i, row := range at {
		if dim > line && i%group == 0 {
			touchFloats(dim, column, blocks, shift, at[i:min(i+group, len(at))])
		}
		c := &blocks[row>>shift].Columns[column]
		from := (row & mask) * dim
		switch {
		case c.Bytes != nil:
			dst := out.Values[i*dim : (i+1)*dim]
			for j, b := range c.Bytes[from : from+dim] {
				dst[j] = c.Table[b]
			}
		case dim == 1:
			out.Values[i] = c.Values[from]
		default:
			copy(out.Values[i*dim:(i+1)*dim], c.Values[from:from+dim])
		}
	}
}

func readRagged(spec *ColumnSpec, column int, blocks []*Block, shift uint, at []int, out *Column) {
	out.Offsets = Resize(out.Offsets, len(at)+1)
	out.Offsets[0] = 0
	ids, values := out.IDs[:0], out.Values[:0]
	var ragged [group]entries
	for first := 0; first < len(at); first += group {
		some := ragged[:min(group, len(at)-first)]
		from := len(ids)
		to := from + findEntries(spec, column, blocks, shift, at[first:], some)
		ids, values = Resize(ids, to), Resize(values, to)
		for i := range some {
			e := &some[i]
			dst := ids[from : from+len(e.ids)]
			for j, id := range e.ids {
				dst[j] = int64(id)
			}
			if e.values != nil {
				copy(values[from:from+len(e.ids)], e.values)
			} else {
				Ones(values[from : from+len(e.ids)])
			}
			from += len(e.ids)
			out.Offsets[first+i+1] = int64(from)
		}
	}
	out.IDs, out.Values = ids, values
}

// Rows of a batch are anywhere in memory: copying one would wait for every cache line
// of it in turn. So the lines of a group of rows are loaded first, all at once, as
// nothing but their number limits how many loads a core has under way.
const (
	group = 16
	// line is how many elements of 4 bytes a cache line has.
	line = 16
)

// entries are those of one row, without values if all are 1.
type entries struct {
	ids    []int32
	values []float32
}

// findEntries finds those of the first rows of at, loads their cache lines, and
// returns how many there are.
func findEntries(spec *ColumnSpec, column int, blocks []*Block, shift uint, at []int, found []entries) int {
	mask, n, sum := 1<<shift-1, 0, uint32(0)
	for i := range found {
		c := &blocks[at[i]>>shift].Columns[column]
		r := at[i] & mask
		lo, hi := c.start(spec, r), c.start(spec, r+1)
		e := entries{ids: c.IDs[lo:hi]}
		if c.Values != nil {
			e.values = c.Values[lo:hi]
		}
		for j := 0; j < len(e.ids); j += line {
			sum |= uint32(e.ids[j])
			if e.values != nil {
				sum |= math.Float32bits(e.values[j])
			}
		}
		n += len(e.ids)
		found[i] = e
	}
	runtime.KeepAlive(sum)
	return n
}

// touchFloats loads the cache lines of rows of a dense column.
func touchFloats(dim, column int, blocks []*Block, shift uint, at []int) {
	mask, sum := 1<<shift-1, uint32(0)
	for _, row := range at {
		c := &blocks[row>>shift].Columns[column]
		from := (row & mask) * dim
		if c.Bytes != nil {
			sum |= uint32(c.Bytes[from])
			continue
		}
		values := c.Values[from : from+dim]
		for j := 0; j < len(values); j += line {
			sum |= math.Float32bits(values[j])
		}
	}
	runtime.KeepAlive(sum)
}
