package feature

import (
	"math"
	"strconv"
	"strings"

	"github.com/gangline/gangline/data/table"
)

// tester is a test, benchmark or property.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// field declares a field as name:kind or name:kind:width.
func field(s string) table.Field {
	p := strings.Split(s, ":")
	f := table.Field{Name: p[0], Kind: table.Kind(p[1])}
	if len(p) > 2 {
		f.Width, _ = strconv.Atoi(p[2])
	}
	return f
}

func fieldsOf(list string) []table.Field {
	var out []table.Field
	for s := range strings.FieldsSeq(list) {
		out = append(out, field(s))
	}
	return out
}

// block makes a block of cells: "?" is missing, elements of lists are parted by
// spaces, entries are id:value.
func block(t tester, fields []table.Field, rows ...string) *table.Block {
	t.Helper()
	b := &table.Block{Rows: len(rows), Columns: make([]table.Column, len(fields)), File: "dir/rows.csv", First: 1}
	for j, f := range fields {
		c := &b.Columns[j]
		c.Missing = make([]bool, len(rows))
		if listed(f.Kind) {
			c.Offsets = []int{0}
		}
		for i, row := range rows {
			cells := strings.Split(row, ",")
			if len(cells) != len(fields) {
				t.Fatalf("row %q has %d cells, want %d", row, len(cells), len(fields))
			}
			c.Missing[i] = cells[j] == "?"
			addCell(t, c, f.Kind, cells[j])
		}
	}
	return b
}

func addCell(t tester, c *table.Column, kind table.Kind, cell string) {
	t.Helper()
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	gone := cell == "?"
	if gone {
		cell = ""
	}
	switch kind {
	case table.Number:
		if gone {
			c.Numbers = append(c.Numbers, math.NaN())
			return
		}
		c.Numbers = append(c.Numbers, number(cell))
	case table.Integer:
		v, _ := strconv.ParseInt(cell, 10, 64)
		c.Integers = append(c.Integers, v)
	case table.Text:
		c.Bytes = append(c.Bytes, cell...)
		c.Ends = append(c.Ends, len(c.Bytes))
	case table.Numbers:
		for s := range strings.FieldsSeq(cell) {
			c.Numbers = append(c.Numbers, number(s))
		}
		c.Offsets = append(c.Offsets, len(c.Numbers))
	case table.Texts:
		for s := range strings.FieldsSeq(cell) {
			c.Bytes = append(c.Bytes, s...)
			c.Ends = append(c.Ends, len(c.Bytes))
		}
		c.Offsets = append(c.Offsets, len(c.Ends))
	case table.Entries:
		for s := range strings.FieldsSeq(cell) {
			id, value, _ := strings.Cut(s, ":")
			v, err := strconv.ParseUint(id, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			c.Integers = append(c.Integers, int64(v))
			c.Numbers = append(c.Numbers, number(value))
		}
		c.Offsets = append(c.Offsets, len(c.Integers))
	}
}

// fit fits a pipeline to blocks.
func fit(t tester, s Spec, fields []table.Field, blocks ...*table.Block) *Fitted {
	t.Helper()
	f, err := NewFitter(s, fields)
	for _, b := range blocks {
		if err == nil {
			err = f.Add(b)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	fitted, err := f.Fitted()
	if err != nil {
		t.Fatal(err)
	}
	return fitted
}

// apply makes the features of a block.
func apply(t tester, f *Fitted, fields []table.Field, b *table.Block) *Rows {
	t.Helper()
	return applyWith(t, f, fields, b, Options{})
}

func applyWith(t tester, f *Fitted, fields []table.Field, b *table.Block, o Options) *Rows {
	t.Helper()
	a, err := f.Bind(fields, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &Rows{}
	a.Apply(b, r)
	return r
}

// ids are those of a row.
func (r *Rows) ids(row int) []int32 { return r.IDs[r.Offsets[row]:r.Offsets[row+1]] }

// mustEncode is the document of a pipeline.
func mustEncode(t tester, f *Fitted) string {
	t.Helper()
	text, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
