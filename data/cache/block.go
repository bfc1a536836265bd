package cache

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/gangline/gangline/data/rows"
)

// A block is its columns one after the other. A column is
//
//	form 1 | width 1 | weights 1 | lengths 1 | elements 4 | table | lengths | ids or bytes | values
//
// where elements are the floats or entries of the column.
const columnBytes = 8

// The forms of a column, and whether entries have weights of their own.
const (
	formFloats  = 1 // float32 values (dense)
	formBytes   = 2 // bytes that number the values of a table (dense)
	formEntries = 3 // ids, and weights (ragged)
	allOnes     = 0
	eachItsOwn  = 1
)

// encode appends a block.
func encode(dst []byte, b *rows.Block, specs []rows.ColumnSpec) []byte {
	for i := range specs {
		c := &b.Columns[i]
		switch {
		case specs[i].Kind == rows.RaggedColumn:
			dst = encodeEntries(dst, c, &specs[i])
		case c.Bytes != nil:
			dst = head(dst, formBytes, 1, allOnes, 0, len(c.Bytes))
			dst = appendFloats(dst, c.Table[:])
			dst = append(dst, c.Bytes...)
		default:
			dst = head(dst, formFloats, 4, allOnes, 0, len(c.Values))
			dst = appendFloats(dst, c.Values)
		}
	}
	return dst
}

func head(dst []byte, form, width, weights, lengths byte, elements int) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, form, width, weights, lengths), uint32(elements))
}

func appendFloats(dst []byte, v []float32) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

func encodeEntries(dst []byte, c *rows.Packed, spec *rows.ColumnSpec) []byte {
	all := int32(0)
	for _, id := range c.IDs {
		all |= id
	}
	most := int32(0)
	for i := 1; i < len(c.Offsets); i++ {
		most = max(most, c.Offsets[i]-c.Offsets[i-1])
	}
	weights, lengths := byte(allOnes), byte(0)
	if len(c.Values) > 0 {
		weights = eachItsOwn
	}
	if spec.PerRow == 0 {
		lengths = byte(width(most))
	}
	dst = head(dst, formEntries, byte(width(all)), weights, lengths, len(c.IDs))
	if spec.PerRow == 0 {
		for i := 1; i < len(c.Offsets); i++ {
			dst = appendInt(dst, c.Offsets[i]-c.Offsets[i-1], int(lengths))
		}
	}
	w := width(all)
	for _, id := range c.IDs {
		dst = appendInt(dst, id, w)
	}
	return appendFloats(dst, c.Values)
}

// width is the bytes that a number takes, at least 1.
func width(v int32) int { return max(1, (bits.Len32(uint32(v))+7)/8) }

func appendInt(dst []byte, v int32, width int) []byte {
	switch width {
	case 1:
		return append(dst, byte(v))
	case 2:
		return append(dst, byte(v), byte(v>>8))
	case 3:
		return append(dst, byte(v), byte(v>>8), byte(v>>16))
	}
	return append(dst, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

// decoder takes a block apart. What does not fit is noted and ends it.
type decoder struct {
	rest []byte
	err  error
}

// take cuts n bytes off.
func (d *decoder) take(n int) []byte {
	if d.err == nil && (n < 0 || n > len(d.rest)) {
		d.err = bad("it ends within a column: %d bytes wanted, %d there", n, len(d.rest))
	}
	if d.err != nil {
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// decode makes a block of n rows of its bytes, in the memory of b. Memory is that of
// the result, which is at most four times as large as the bytes.
func decode(src []byte, specs []rows.ColumnSpec, n int, b *rows.Block) error {
	d := decoder{rest: src}
	b.Rows, b.Columns = n, rows.Resize(b.Columns, len(specs))
	for i := range specs {
		h := d.take(columnBytes)
		if d.err != nil {
			return d.err
		}
		elements := int(binary.LittleEndian.Uint32(h[4:]))
		c, spec := &b.Columns[i], &specs[i]
		switch form := h[0]; {
		case form == formEntries && spec.Kind == rows.RaggedColumn:
			d.entries(c, spec, h, n, elements)
		case form == formBytes && spec.Kind == rows.DenseColumn && elements == n*spec.Dim && h[1] == 1:
			c.Table = new([256]float32)
			if raw := d.take(4 * len(c.Table)); d.err == nil {
				floats(c.Table[:], raw)
			}
			c.Values, c.Bytes = c.Values[:0], append(c.Bytes[:0], d.take(elements)...)
		case form == formFloats && spec.Kind == rows.DenseColumn && elements == n*spec.Dim && h[1] == 4:
			if raw := d.take(4 * elements); d.err == nil {
				c.Values = sized(c.Values, elements)
				floats(c.Values, raw)
			}
		default:
			d.err = bad("column %q has the form %d with %d elements in %d rows", spec.Name, form, elements, n)
		}
		if d.err == nil && h[0] != formEntries && (h[2] != allOnes || h[3] != 0) {
			d.err = bad("column %q is dense and has weights or lengths", spec.Name)
		}
		if d.err != nil {
			return d.err
		}
	}
	if len(d.rest) > 0 {
		return bad("%d bytes stand behind its columns", len(d.rest))
	}
	return nil
}

// entries reads a ragged column of n rows.
func (d *decoder) entries(c *rows.Packed, spec *rows.ColumnSpec, h []byte, n, elements int) {
	w, weights, lengths := int(h[1]), h[2], int(h[3])
	if w < 1 || w > 4 || weights > eachItsOwn || lengths > 4 || (lengths == 0) != (spec.PerRow > 0) {
		d.err = bad("column %q has ids of %d bytes, lengths of %d, weights %d", spec.Name, w, lengths, weights)
		return
	}
	if spec.PerRow > 0 && elements != n*spec.PerRow {
		d.err = bad("column %q has %d entries in %d rows of %d", spec.Name, elements, n, spec.PerRow)
		return
	}
	if raw := d.take(n * lengths); lengths > 0 && d.err == nil {
		if c.Offsets = offsets(c.Offsets, raw, n, lengths); c.Offsets == nil || int(c.Offsets[n]) != elements {
			d.err = bad("the rows of column %q do not add up to its %d entries", spec.Name, elements)
			return
		}
	}
	raw := d.take(elements * w)
	if d.err != nil {
		return
	}
	if c.IDs = sized(c.IDs, elements); !widen(c.IDs, raw, w, int64(spec.Dim-1)) {
		d.err = bad("column %q has an id that is not in [0,%d)", spec.Name, spec.Dim)
		return
	}
	if weights == allOnes {
		c.Values = nil
		return
	}
	if raw := d.take(4 * elements); d.err == nil {
		c.Values = sized(c.Values, elements)
		floats(c.Values, raw)
	}
}

// offsets adds lengths up, in the memory of out; nil if they are too many.
func offsets(out []int32, raw []byte, n, width int) []int32 {
	total := int64(0)
	out = sized(out, n+1)
	out[0] = 0
	for i := range n {
		v := uint32(0)
		for j, b := range raw[i*width : (i+1)*width] {
			v |= uint32(b) << (8 * j)
		}
		if total += int64(v); total > math.MaxInt32 {
			return nil
		}
		out[i+1] = int32(total)
	}
	return out
}

// sized is s with n elements, in new memory if s has too little: exactly as much, since
// what a pool holds is counted.
func sized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n)
}
