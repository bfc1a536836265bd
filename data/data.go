// Package data reads training examples and says which rows form which step.
//
// A Source holds rows that can be read in any order. An Order is a pure
// function from (seed, epoch, step) to rows: which rows form step t does not
// depend on the number of ranks, and the position in the data is one number.
package data

import "github.com/gangline/gangline/data/table"

// ColumnKind says how a column is stored.
type ColumnKind string

// The kinds of columns.
const (
	// DenseColumn has Dim floats a row.
	DenseColumn ColumnKind = "dense"
	// RaggedColumn has any number of (id, weight) entries a row.
	RaggedColumn ColumnKind = "ragged"
)

// ColumnSpec describes one column. By convention the target is named "label".
type ColumnSpec struct {
	Name string
	Kind ColumnKind
	// Dim is the floats a row (dense), or the number of possible ids (ragged):
	// every id is in [0, Dim).
	Dim int
	// PerRow is the exact number of entries a row of a ragged column has, or 0
	// if it varies.
	PerRow int
}

// Column is the part of a batch that one ColumnSpec describes.
type Column struct {
	// Values is rows x Dim (dense), or one weight an entry (ragged).
	Values []float32
	// Offsets and IDs are of ragged columns: row i owns entries
	// Offsets[i] to Offsets[i+1].
	Offsets []int64
	IDs     []int64
}

// Batch is some rows, one Column a ColumnSpec in the order of the schema. It is
// reused: a warm batch allocates nothing.
type Batch struct {
	Rows    int
	Columns []Column
}

// Source holds rows that can be read in any order. It is safe for concurrent
// use once opened.
type Source interface {
	// Columns describes what Read delivers.
	Columns() []ColumnSpec
	// Rows is the number of rows.
	Rows() int
	// Read fills b with the given rows, in the given order.
	Read(rows []int, b *Batch) error
	// Close releases files.
	Close() error
}

// RowError says where bad input stands.
type RowError = table.RowError
