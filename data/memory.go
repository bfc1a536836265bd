package data

import (
	"fmt"
	"slices"
)

// stored is one column in memory. What a format does not need stays nil: bytes
// instead of values for images, no offsets where every row has PerRow entries,
// no weights where all are 1.
type stored struct {
	spec    ColumnSpec
	values  []float32 // dense floats, or one weight an entry; nil: all weights are 1
	bytes   []uint8   // dense floats as table[byte]
	table   *[256]float32
	offsets []int64 // ragged: rows+1, or nil if spec.PerRow > 0
	ids     []int32
}

// entries returns the range of entries that a row owns.
func (s *stored) entries(row int) (lo, hi int64) {
	if s.offsets != nil {
		return s.offsets[row], s.offsets[row+1]
	}
	n := int64(s.spec.PerRow)
	return int64(row) * n, int64(row+1) * n
}

// read fills c with the given rows. Cost: one copy of every value.
func (s *stored) read(rows []int, c *Column) {
	if s.spec.Kind == DenseColumn {
		s.readDense(rows, c)
		return
	}
	c.Offsets = resize(c.Offsets, len(rows)+1)
	c.Offsets[0] = 0
	total := int64(0)
	for i, row := range rows {
		lo, hi := s.entries(row)
		total += hi - lo
		c.Offsets[i+1] = total
	}
	c.IDs = resize(c.IDs, int(total))
	c.Values = resize(c.Values, int(total))
	for i, row := range rows {
		lo, hi := s.entries(row)
		at := c.Offsets[i]
		dst := c.IDs[at : at+hi-lo]
		for j, id := range s.ids[lo:hi] {
			dst[j] = int64(id)
		}
		if s.values != nil {
			copy(c.Values[at:at+hi-lo], s.values[lo:hi])
		}
	}
	if s.values == nil {
		ones(c.Values)
	}
}

func (s *stored) readDense(rows []int, c *Column) {
	dim := s.spec.Dim
	c.Values = resize(c.Values, len(rows)*dim)
	for i, row := range rows {
		dst := c.Values[i*dim : (i+1)*dim]
		if s.bytes == nil {
			copy(dst, s.values[row*dim:(row+1)*dim])
			continue
		}
		for j, b := range s.bytes[row*dim : (row+1)*dim] {
			dst[j] = s.table[b]
		}
	}
}

// memory is a Source whose rows are all in memory.
type memory struct {
	badRows
	columns []stored
	specs   []ColumnSpec
	rows    int
}

func newMemory(rows int, bad badRows, columns ...stored) *memory {
	m := &memory{badRows: bad, columns: columns, rows: rows}
	for i := range columns {
		m.specs = append(m.specs, columns[i].spec)
	}
	return m
}

func (m *memory) Columns() []ColumnSpec { return slices.Clone(m.specs) }
func (m *memory) Rows() int             { return m.rows }
func (m *memory) Close() error          { return nil }

func (m *memory) Read(rows []int, b *Batch) error {
	if err := checkRows(rows, m.rows); err != nil {
		return err
	}
	b.reset(len(rows), len(m.columns))
	for i := range m.columns {
		m.columns[i].read(rows, &b.Columns[i])
	}
	return nil
}

// reset makes room for a number of columns and keeps their memory.
func (b *Batch) reset(rows, columns int) {
	b.Rows = rows
	b.Columns = resize(b.Columns, columns)
}

// checkRows tells whether all rows are in [0, n).
func checkRows(rows []int, n int) error {
	for _, row := range rows {
		if uint(row) >= uint(n) {
			return fmt.Errorf("data: row %d is not in [0,%d)", row, n)
		}
	}
	return nil
}

// resize sets the length of s and keeps its memory where it is large enough.
// The elements are undefined after it.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	// By half again, so that batches of slowly growing size settle quickly.
	grown := make([]T, n, n+n/2)
	copy(grown, s[:cap(s)])
	return grown
}

// ones is the weight of entries for which the file gives none.
func ones(s []float32) {
	for i := range s {
		s[i] = 1
	}
}
