package format

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/data/table"
)

// begin empties a block for the columns of a file, keeping its memory.
func begin(b *table.Block, fields []table.Field, location string) {
	b.Rows, b.File, b.First = 0, location, 0
	b.Lines = b.Lines[:0]
	for len(b.Columns) < len(fields) {
		b.Columns = append(b.Columns, table.Column{})
	}
	b.Columns = b.Columns[:len(fields)]
	for i, f := range fields {
		c := &b.Columns[i]
		*c = table.Column{
			Numbers: c.Numbers[:0], Integers: c.Integers[:0], Bytes: c.Bytes[:0],
			Ends: c.Ends[:0], Offsets: c.Offsets[:0], Missing: c.Missing[:0],
		}
		if listKind(f.Kind) {
			c.Offsets = append(c.Offsets, 0)
		}
	}
}

func listKind(k table.Kind) bool {
	return k == table.Numbers || k == table.Entries || k == table.Texts
}

// finish gives a block the form that table.Block describes: nil where there is
// nothing.
func finish(b *table.Block, fields []table.Field) {
	for i, f := range fields {
		c := &b.Columns[i]
		if len(c.Missing) == 0 {
			c.Missing = nil
		}
		// What another file left in the block is not of this one.
		if f.Kind != table.Number && f.Kind != table.Numbers && len(c.Numbers) == 0 {
			c.Numbers = nil
		}
		if f.Kind != table.Integer && f.Kind != table.Entries {
			c.Integers = nil
		}
		if f.Kind != table.Text && f.Kind != table.Texts {
			c.Bytes, c.Ends = nil, nil
		}
		if !listKind(f.Kind) {
			c.Offsets = nil
		}
	}
	if len(b.Lines) == 0 {
		b.Lines = nil
	}
}

// cut takes back what was appended after so many rows.
func cut(b *table.Block, fields []table.Field, rows int) {
	for i, f := range fields {
		c := &b.Columns[i]
		if len(c.Missing) > rows {
			c.Missing = c.Missing[:rows]
		}
		switch f.Kind {
		case table.Number:
			c.Numbers = c.Numbers[:min(rows, len(c.Numbers))]
		case table.Integer:
			c.Integers = c.Integers[:min(rows, len(c.Integers))]
		case table.Text:
			c.Ends = c.Ends[:min(rows, len(c.Ends))]
			c.Bytes = c.Bytes[:lastEnd(c)]
		case table.Numbers, table.Entries, table.Texts:
			c.Offsets = c.Offsets[:min(rows+1, len(c.Offsets))]
			cutElements(c, f.Kind, c.Offsets[len(c.Offsets)-1])
		}
	}
}

// cutElements takes back the elements of a list column after so many.
func cutElements(c *table.Column, kind table.Kind, n int) {
	switch kind { //nolint:exhaustive // the others have no elements
	case table.Numbers:
		c.Numbers = c.Numbers[:n]
	case table.Entries:
		c.Integers = c.Integers[:n]
		c.Numbers = c.Numbers[:min(n, len(c.Numbers))]
	case table.Texts:
		c.Ends = c.Ends[:n]
		c.Bytes = c.Bytes[:lastEnd(c)]
	}
}

func lastEnd(c *table.Column) int {
	if len(c.Ends) == 0 {
		return 0
	}
	return c.Ends[len(c.Ends)-1]
}

// missing appends a row without a value; rows were there before.
func missing(c *table.Column, kind table.Kind, rows int) {
	mark(c, rows)
	switch kind {
	case table.Number:
		c.Numbers = append(c.Numbers, math.NaN())
	case table.Integer:
		c.Integers = append(c.Integers, 0)
	case table.Text:
		c.Ends = append(c.Ends, len(c.Bytes))
	case table.Numbers, table.Entries, table.Texts:
		c.Offsets = append(c.Offsets, c.Offsets[len(c.Offsets)-1])
	}
}

// mark notes that row rows has no value. Rows that have one are marked only
// once some other has none: present does that.
func mark(c *table.Column, rows int) {
	for len(c.Missing) < rows {
		c.Missing = append(c.Missing, false)
	}
	c.Missing = append(c.Missing, true)
}

// present notes that a row has a value.
func present(c *table.Column) {
	if len(c.Missing) > 0 {
		c.Missing = append(c.Missing, false)
	}
}

// quote shows a piece of bad input, cut to a readable length.
func quote(b []byte) string {
	const most = 32
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}

// wordSet is a set of short words.
type wordSet struct {
	words   map[string]bool
	longest int
}

func newWordSet(words []string) wordSet {
	s := wordSet{words: map[string]bool{}}
	for _, w := range words {
		s.words[w] = true
		s.longest = max(s.longest, len(w))
	}
	return s
}

// has reports whether a text is one of the words. Most are too long to be.
func (s *wordSet) has(text []byte) bool {
	return len(text) <= s.longest && s.words[string(text)]
}
