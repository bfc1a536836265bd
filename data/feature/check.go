package feature

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/data/table"
)

// checker tells good rows from bad ones, alike when fitting and when applying, and
// reads what belongs to a row: label, weight.
type checker struct {
	fields   []table.Field
	label    int // index of the column, -1: rows have none
	labels   *labels
	weight   int // -1: none
	features []bound

	filter Filter // nil: all rows are meant

	kept    []int // rows that are meant and good
	bad     []table.RowError
	target  []float32 // label of every kept row
	weights []float32 // weight of every kept row, with a weight column
}

// newChecker finds the columns of label and weight.
func newChecker(s *Spec, c *columns, labelled bool) (*checker, error) {
	k := &checker{fields: c.fields, label: -1, weight: -1}
	var err error
	if labelled {
		if k.label, err = c.find("label.column", s.Label.Column); err != nil {
			return nil, err
		}
		if k.labels, err = newLabels(s, c.fields[k.label]); err != nil {
			return nil, err
		}
	}
	if s.Weight != "" && labelled {
		if k.weight, err = c.find("weight", s.Weight); err != nil {
			return nil, err
		}
		if f := c.fields[k.weight]; f.Kind != table.Number && f.Kind != table.Integer {
			return nil, &DeclError{"weight", fmt.Sprintf("%q is %s: a weight is a number", f.Name, f.Kind)}
		}
	}
	return k, nil
}

// Filter says whether a row is meant, as one of the training rows: those that are
// not count for nothing. With a reason it says that this cannot be told, and by
// which column, which makes a bad row.
type Filter func(b *table.Block, row int) (column int, keep bool, reason string)

// rows sorts the rows of a block into kept and bad.
func (k *checker) rows(b *table.Block) {
	k.kept, k.bad, k.target, k.weights = k.kept[:0], k.bad[:0], k.target[:0], k.weights[:0]
	for row := range b.Rows {
		column, keep, reason := 0, true, ""
		if k.filter != nil {
			column, keep, reason = k.filter(b, row)
		}
		if !keep && reason == "" {
			continue
		}
		if reason == "" {
			column, reason = k.row(b, row)
		}
		if reason != "" {
			k.bad = append(k.bad, table.RowError{File: b.File, Line: line(b, row), Column: k.fields[column].Name, Reason: reason})
			continue
		}
		k.kept = append(k.kept, row)
	}
}

// line is where a row stands in its file.
func line(b *table.Block, row int) int {
	if b.Lines != nil {
		return b.Lines[row]
	}
	return b.First + row
}

// row notes label and weight of a good row, or says what is wrong and where.
func (k *checker) row(b *table.Block, row int) (column int, reason string) {
	for i := range k.features {
		f := &k.features[i]
		if f.Kind == Cross {
			if field, reason := f.partValues(b, row); reason != "" {
				return field, reason
			}
			continue
		}
		if reason := values(&b.Columns[f.field], f.kind, f.width, row); reason != "" {
			return f.field, reason
		}
	}
	weight := float32(1)
	if k.weight >= 0 {
		w := numberAt(&b.Columns[k.weight], k.fields[k.weight].Kind, row)
		if missing(&b.Columns[k.weight], row) || !(w >= 0 && w <= math.MaxFloat32) {
			return k.weight, fmt.Sprintf("the weight %v is not a finite number from 0", w)
		}
		weight = float32(w)
	}
	target := float32(math.NaN())
	if k.label >= 0 {
		if target, reason = k.labels.of(&b.Columns[k.label], row); reason != "" {
			return k.label, reason
		}
	}
	k.target = append(k.target, target)
	if k.weight >= 0 {
		k.weights = append(k.weights, weight)
	}
	return 0, ""
}

// numberAt is a row's value in a column of numbers.
func numberAt(c *table.Column, kind table.Kind, row int) float64 {
	if kind == table.Integer {
		return float64(c.Integers[row])
	}
	return c.Numbers[row]
}

// partValues says what is wrong with the numbers that a cross reads.
func (b *bound) partValues(block *table.Block, row int) (field int, reason string) {
	for _, p := range b.parts {
		if p.feature < 0 && p.kind == table.Number {
			if reason := values(&block.Columns[p.field], p.kind, 1, row); reason != "" {
				return p.field, reason
			}
		}
	}
	return 0, ""
}

// values says what is wrong with the numbers of a row.
func values(c *table.Column, kind table.Kind, width, row int) (reason string) {
	lo, hi := row, row+1
	switch {
	case kind == table.Entries && c.Numbers != nil, kind == table.Numbers:
		lo, hi = c.Offsets[row], c.Offsets[row+1]
	case kind != table.Number, missing(c, row):
		return ""
	}
	if kind == table.Numbers && hi-lo != width && !missing(c, row) {
		return fmt.Sprintf("the row has %d numbers, want %d", hi-lo, width)
	}
	for _, v := range c.Numbers[lo:hi] {
		if !(math.Abs(v) <= math.MaxFloat32) {
			return fmt.Sprintf("%v is not a finite number of 32 bits", v)
		}
	}
	return ""
}
