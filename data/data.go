// Package data reads training examples and says which rows form which step.
//
// A Source holds rows that can be read in any order. An Order is a pure
// function from (seed, epoch, step) to rows: which rows form step t does not
// depend on the number of ranks, and the position in the data is one number.
package data

import (
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/table"
)

// ColumnKind says how a column is stored.
type ColumnKind = rows.ColumnKind

// The kinds of columns.
const (
	// DenseColumn has Dim floats a row.
	DenseColumn = rows.DenseColumn
	// RaggedColumn has any number of (id, weight) entries a row.
	RaggedColumn = rows.RaggedColumn
)

// ColumnSpec describes one column. By convention the target is named "label".
type ColumnSpec = rows.ColumnSpec

// Column is the part of a batch that one ColumnSpec describes.
type Column = rows.Column

// Batch is some rows, one Column a ColumnSpec in the order of the schema. It is
// reused: a warm batch allocates nothing.
type Batch = rows.Batch

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
