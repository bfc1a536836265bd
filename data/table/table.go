// Package table holds rows of a file by column, as a reader finds them and
// before any feature is made of them: numbers, text, lists of entries, and what
// is missing.
package table

import "fmt"

// Kind says what a field holds.
type Kind string

// The kinds of fields.
const (
	// Number has one float64 a row. Whole numbers beyond 2^53 are not kept
	// exactly: those are Text or Integer.
	Number Kind = "number"
	// Integer has one int64 a row.
	Integer Kind = "integer"
	// Text has some bytes a row, UTF-8 where the format says so.
	Text Kind = "text"
	// Numbers has any number of float64 a row: embeddings, lists.
	Numbers Kind = "numbers"
	// Entries has any number of (id, value) pairs a row: sparse features. Ids
	// are as the file has them, any 64 bits.
	Entries Kind = "entries"
	// Texts has any number of texts a row: lists of categories.
	Texts Kind = "texts"
)

// Field describes one column of a file.
type Field struct {
	Name string
	Kind Kind
	// Width is the exact number of elements a row of a Numbers or Entries field
	// has, 0 if it varies.
	Width int
}

// Column is the part of a block that one Field describes. Only the slices that
// the kind needs are used; the others stay nil.
type Column struct {
	Numbers  []float64 // Number; Numbers; values of Entries (nil: all are 1)
	Integers []int64   // Integer; ids of Entries
	Bytes    []byte    // Text and Texts, one after the other
	// Ends says where each text of Bytes ends: one a row (Text), or one an
	// element (Texts).
	Ends []int
	// Offsets are rows+1 positions in the elements (Numbers, Entries, Texts).
	Offsets []int
	// Missing marks the rows without a value; nil: there are none. A missing
	// Number is NaN, a missing Integer 0, a missing Text empty.
	Missing []bool
}

// Block is some consecutive rows of one file, one Column a Field. It is reused:
// a warm block allocates nothing.
type Block struct {
	Rows    int
	Columns []Column
	File    string
	// Lines says where each row stands: the line of its beginning (text formats)
	// or its number (binary ones), from 1. nil: First, First+1, ...
	Lines []int
	First int
}

// Reader reads a file from beginning to end. It is used by one goroutine.
type Reader interface {
	// Fields describes the columns; it is known before the first Read.
	Fields() []Field
	// Read fills b with at most n rows and returns io.EOF after the last. A
	// malformed row is a *RowError: nothing of that row is in b, rows before it
	// are (b.Rows says how many), and Read may be called again to go on after it.
	// Any other error ends the reader.
	Read(b *Block, n int) error
	// Close releases the file.
	Close() error
}

// RowError says where bad input stands.
type RowError struct {
	File   string
	Line   int    // 1-based; for binary files the row
	Column string // name of the field at fault; "" if it is the row
	Reason string // what is wrong and what was expected
}

// Error implements error.
func (e *RowError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s:%d: column %q: %s", e.File, e.Line, e.Column, e.Reason)
}
