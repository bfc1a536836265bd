package table

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var fields = []Field{
	{Name: "number", Kind: Number},
	{Name: "integer", Kind: Integer},
	{Name: "text", Kind: Text},
	{Name: "numbers", Kind: Numbers},
	{Name: "entries", Kind: Entries},
	{Name: "texts", Kind: Texts},
}

// add appends a row to the first columns; a negative size is a missing value.
func add(b *Block, columns, size int) {
	for i := range fields[:columns] {
		c, kind := &b.Columns[i], fields[i].Kind
		if size < 0 {
			c.AddMissing(kind, b.Rows)
			continue
		}
		for range size {
			c.Numbers, c.Integers = append(c.Numbers, 1), append(c.Integers, 2)
			c.Bytes = append(c.Bytes, "ab"...)
			c.Ends = append(c.Ends, len(c.Bytes))
			if !kind.List() {
				break
			}
		}
		switch {
		case kind.List():
			c.EndList(c.elements(kind))
		case size == 0: // a value all the same
			c.Numbers, c.Integers, c.Ends = append(c.Numbers, 0), append(c.Integers, 0), append(c.Ends, len(c.Bytes))
			c.AddPresent()
		default:
			c.AddPresent()
		}
		switch kind { // what the kind does not use stays empty
		case Number, Numbers:
			c.Integers, c.Bytes, c.Ends = c.Integers[:0], c.Bytes[:0], c.Ends[:0]
		case Integer:
			c.Numbers, c.Bytes, c.Ends = c.Numbers[:0], c.Bytes[:0], c.Ends[:0]
		case Entries:
			c.Bytes, c.Ends = c.Bytes[:0], c.Ends[:0]
		case Text, Texts:
			c.Numbers, c.Integers = c.Numbers[:0], c.Integers[:0]
		}
	}
}

// A block from which half a row was cut is as if that row had never been.
func TestCut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var with, without Block
		with.Reset(fields, "f")
		without.Reset(fields, "f")
		for _, size := range rapid.SliceOfN(rapid.IntRange(-1, 3), 0, 8).Draw(rt, "rows") {
			add(&with, rapid.IntRange(0, len(fields)).Draw(rt, "columns of half a row"), rapid.IntRange(0, 3).Draw(rt, "size"))
			with.Cut(fields, with.Rows)
			add(&with, len(fields), size)
			add(&without, len(fields), size)
			with.Rows, without.Rows = with.Rows+1, without.Rows+1
		}
		with.Finish(fields)
		without.Finish(fields)
		if err := with.Check(fields); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(without, with, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
			rt.Fatalf("(-without +with):\n%s", diff)
		}
	})
}

// Check finds what is wrong.
func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(b *Block){
		"columns": func(b *Block) { b.Columns = b.Columns[:5] },
		"lines":   func(b *Block) { b.Lines = []int{1} },
		"numbers": func(b *Block) { b.Columns[0].Numbers = nil },
		"bytes":   func(b *Block) { b.Columns[2].Bytes = nil },
		"offsets": func(b *Block) { b.Columns[3].Offsets[2]++ },
		"first":   func(b *Block) { b.Columns[4].Offsets[0]++ },
		"values":  func(b *Block) { b.Columns[4].Numbers = b.Columns[4].Numbers[:1] },
		"missing": func(b *Block) { b.Columns[5].Missing = []bool{true} },
		"extra":   func(b *Block) { b.Columns[0].Offsets = []int{0} },
	} {
		var b Block
		b.Reset(fields, "f")
		for range 2 {
			add(&b, len(fields), 2)
			b.Rows++
		}
		b.Finish(fields)
		if err := b.Check(fields); err != nil {
			t.Fatal(err)
		}
		if spoil(&b); b.Check(fields) == nil {
			t.Errorf("%s: nothing was found", name)
		}
	}
}

// A block keeps its memory from file to file.
func TestReset(t *testing.T) {
	var b Block
	b.Reset(fields, "f")
	for range 100 {
		add(&b, len(fields), 2)
		b.Rows++
	}
	b.Finish(fields)
	before := unsafe.SliceData(b.Columns[0].Numbers)
	b.Reset(fields, "g")
	if b.Rows != 0 || b.File != "g" || unsafe.SliceData(b.Columns[0].Numbers) != before {
		t.Errorf("got %+v", b)
	}
}
