// Package rows holds prepared rows by column: as a batch that is fed to a step,
// and as blocks that are kept in memory or in a file.
package rows

import "fmt"

// ColumnKind says how a column is stored.
type ColumnKind string

// The kinds of columns.
const (
	// DenseColumn has Dim floats a row.
	DenseColumn ColumnKind = "dense"
	// RaggedColumn has any number of (id, weight) entries a row.
	RaggedColumn ColumnKind = "ragged"
)

// MaxID bounds ids and the Dim of ragged columns: ids are kept in 32 bits.
const MaxID = 1<<31 - 1

// ColumnSpec describes one column. By convention the target is named "label".
type ColumnSpec struct {
	Name string     `json:"name"`
	Kind ColumnKind `json:"kind"`
	// Dim is the floats a row (dense), or the number of possible ids (ragged):
	// every id is in [0, Dim).
	Dim int `json:"dim"`
	// PerRow is the exact number of entries a row of a ragged column has, or 0
	// if it varies.
	PerRow int `json:"per_row,omitempty"`
}

// Column is the part of a batch that one ColumnSpec describes.
type Column struct {
	// Values is rows x Dim (dense), or one weight an entry (ragged).
	Values []float32
	// Offsets and IDs are of ragged columns: row i owns entries
	// Offsets[i] to Offsets[i+1].
	Offsets []int64
	IDs     []int64
	// Ones, if it is not nil, says how many of the first elements of the memory of
	// Values, whatever its length, are 1 and need not be written to become 1. Read keeps
	// it true.
	Ones *int
}

// Batch is some rows, one Column a ColumnSpec in the order of the schema. It is
// reused: a warm batch allocates nothing.
type Batch struct {
	Rows    int
	Columns []Column
}

// Reset makes room for a number of columns and keeps their memory.
func (b *Batch) Reset(rows, columns int) {
	b.Rows = rows
	b.Columns = Resize(b.Columns, columns)
}

// Append adds the rows of another batch of the same columns.
func (b *Batch) Append(o *Batch) {
	for i := range b.Columns {
		c, from := &b.Columns[i], &o.Columns[i]
		if len(c.Offsets) > 0 {
			base := c.Offsets[len(c.Offsets)-1]
			for _, end := range from.Offsets[1:] {
				c.Offsets = append(c.Offsets, base+end)
			}
			c.IDs = append(c.IDs, from.IDs...)
		}
		c.Values = append(c.Values, from.Values...)
	}
	b.Rows += o.Rows
}

// Check tells whether all rows are in [0, n).
func Check(rows []int, n int) error {
	for _, row := range rows {
		if uint(row) >= uint(n) {
			return fmt.Errorf("data: row %d is not in [0,%d)", row, n)
		}
	}
	return nil
}

// Resize sets the length of s and keeps its memory where it is large enough. The
// elements are undefined after it.
func Resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	// By half again, so that batches of slowly growing size settle quickly.
	grown := make([]T, n, n+n/2)
	copy(grown, s[:cap(s)])
	return grown
}

// Ones fills s with 1: the weight of entries for which a file gives none.
func Ones(s []float32) {
	n := min(len(s), 16)
	for i := range n {
		s[i] = 1
	}
	// Copying what is there already fills whole vectors at a time.
	for n < len(s) {
		n += copy(s[n:], s[:min(n, 1<<10)])
	}
}

// Names returns the names of columns.
func Names(columns []ColumnSpec) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.Name
	}
	return all
}
