package table

import (
	"fmt"
	"math"
)

// List reports whether a field of this kind has any number of elements a row.
func (k Kind) List() bool { return k == Numbers || k == Entries || k == Texts }

// Reset empties a block for the fields of a file and keeps its memory. Readers
// call it first, append to the columns, and call Finish.
func (b *Block) Reset(fields []Field, file string) {
	b.Rows, b.File, b.First = 0, file, 0
	b.Lines = b.Lines[:0]
	for len(b.Columns) < len(fields) {
		b.Columns = append(b.Columns, Column{})
	}
	b.Columns = b.Columns[:len(fields)]
	for i, f := range fields {
		c := &b.Columns[i]
		*c = Column{
			Numbers: c.Numbers[:0], Integers: c.Integers[:0], Bytes: c.Bytes[:0],
			Ends: c.Ends[:0], Offsets: c.Offsets[:0], Missing: c.Missing[:0],
		}
		if f.Kind.List() {
			c.Offsets = append(c.Offsets, 0)
		}
	}
}

// Finish gives a block the form that is promised: nil where there is nothing,
// and nothing that another file left there.
func (b *Block) Finish(fields []Field) {
	for i, f := range fields {
		c := &b.Columns[i]
		if len(c.Missing) == 0 {
			c.Missing = nil
		}
		if f.Kind != Number && f.Kind != Numbers && len(c.Numbers) == 0 {
			c.Numbers = nil
		}
		if f.Kind != Integer && f.Kind != Entries {
			c.Integers = nil
		}
		if f.Kind != Text && f.Kind != Texts {
			c.Bytes, c.Ends = nil, nil
		}
		if !f.Kind.List() {
			c.Offsets = nil
		}
	}
	if len(b.Lines) == 0 {
		b.Lines = nil
	}
}

// Cut takes back what was appended to the columns after so many rows: part of a
// row that turned out to be in error.
func (b *Block) Cut(fields []Field, rows int) {
	for i, f := range fields {
		c := &b.Columns[i]
		if len(c.Missing) > rows {
			c.Missing = c.Missing[:rows]
		}
		switch f.Kind {
		case Number:
			c.Numbers = c.Numbers[:min(rows, len(c.Numbers))]
		case Integer:
			c.Integers = c.Integers[:min(rows, len(c.Integers))]
		case Text:
			c.Ends = c.Ends[:min(rows, len(c.Ends))]
			c.Bytes = c.Bytes[:c.lastEnd()]
		case Numbers, Entries, Texts:
			c.Offsets = c.Offsets[:min(rows+1, len(c.Offsets))]
			c.cutElements(f.Kind, c.Offsets[len(c.Offsets)-1])
		}
	}
}

// cutElements takes back the elements of a list column after so many.
func (c *Column) cutElements(kind Kind, n int) {
	switch kind { //nolint:exhaustive // the others have no elements
	case Numbers:
		c.Numbers = c.Numbers[:n]
	case Entries:
		c.Integers = c.Integers[:n]
		c.Numbers = c.Numbers[:min(n, len(c.Numbers))]
	case Texts:
		c.Ends = c.Ends[:n]
		c.Bytes = c.Bytes[:c.lastEnd()]
	}
}

func (c *Column) lastEnd() int {
	if len(c.Ends) == 0 {
		return 0
	}
	return c.Ends[len(c.Ends)-1]
}

// AddMissing appends a row without a value to a column of so many rows.
func (c *Column) AddMissing(kind Kind, rows int) {
	// Rows that have a value are marked only once some other has none.
	for len(c.Missing) < rows {
		c.Missing = append(c.Missing, false)
	}
	c.Missing = append(c.Missing, true)
	switch kind {
	case Number:
		c.Numbers = append(c.Numbers, math.NaN())
	case Integer:
		c.Integers = append(c.Integers, 0)
	case Text:
		c.Ends = append(c.Ends, len(c.Bytes))
	case Numbers, Entries, Texts:
		c.Offsets = append(c.Offsets, c.Offsets[len(c.Offsets)-1])
	}
}

// AddPresent notes that the row whose value was just appended has one.
func (c *Column) AddPresent() {
	if len(c.Missing) > 0 {
		c.Missing = append(c.Missing, false)
	}
}

// EndList ends the row of a list column at the elements that it has now, and
// notes that it has a value.
func (c *Column) EndList(elements int) {
	c.Offsets = append(c.Offsets, elements)
	c.AddPresent()
}

// Quote shows a piece of bad input in a reason, cut to a readable length.
func Quote(b []byte) string {
	const most = 32
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}

// Check demands of a block what its description promises. Tests of readers call
// it.
func (b *Block) Check(fields []Field) error {
	if len(b.Columns) != len(fields) || b.Lines != nil && len(b.Lines) != b.Rows {
		return fmt.Errorf("%d columns of %d fields, %d lines of %d rows", len(b.Columns), len(fields), len(b.Lines), b.Rows)
	}
	for i, f := range fields {
		c := &b.Columns[i]
		elements := b.Rows
		if f.Kind.List() {
			if len(c.Offsets) != b.Rows+1 || c.Offsets[0] != 0 {
				return fmt.Errorf("column %q: offsets %v of %d rows", f.Name, c.Offsets, b.Rows)
			}
			elements = c.Offsets[b.Rows]
		} else if c.Offsets != nil {
			return fmt.Errorf("column %q of %s has offsets", f.Name, f.Kind)
		}
		if got := c.elements(f.Kind); got != elements {
			return fmt.Errorf("column %q of %s has %d elements, want %d", f.Name, f.Kind, got, elements)
		}
		if c.Missing != nil && len(c.Missing) != b.Rows || c.lastEnd() != len(c.Bytes) ||
			f.Kind == Entries && c.Numbers != nil && len(c.Numbers) != elements {
			return fmt.Errorf("column %q: %d missing marks of %d rows, %d bytes to %d, %d values", f.Name, len(c.Missing), b.Rows, len(c.Bytes), c.lastEnd(), len(c.Numbers))
		}
	}
	return nil
}

// elements is the number of elements of a column.
func (c *Column) elements(kind Kind) int {
	switch kind { //nolint:exhaustive // the others are text
	case Number, Numbers:
		return len(c.Numbers)
	case Integer, Entries:
		return len(c.Integers)
	}
	return len(c.Ends)
}
