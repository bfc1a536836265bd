package stats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/table"
)

// chunk is how many rows are read at once.
const chunk = 4096

// samplesMax is how many malformed rows are kept to show.
const samplesMax = 5

// OfTable reads a table to its end. Malformed rows are counted, the first few of
// them kept; any other error ends it.
func OfTable(ctx context.Context, r table.Reader) (*Table, error) {
	fields := r.Fields()
	if len(fields) > columnsMax {
		return nil, fmt.Errorf("stats: %d columns are more than %d", len(fields), columnsMax)
	}
	columns := make([]column, len(fields))
	for i, f := range fields {
		columns[i] = column{
			name: f.Name, kind: string(f.Kind), counts: counts{limit: each(len(fields))}, numeric: isNumeric(f.Kind),
			list: f.Kind == table.Numbers || f.Kind == table.Entries || f.Kind == table.Texts,
		}
	}
	t, seen := &Table{}, rows{}
	var b table.Block
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		b.Rows = 0
		err := r.Read(&b, chunk)
		hashes := make([]uint64, b.Rows)
		for i, f := range fields {
			columns[i].block(f, &b.Columns[i], b.Rows, hashes)
		}
		for _, h := range hashes {
			seen.add(h)
		}
		bad, malformed := errors.AsType[*table.RowError](err)
		switch {
		case errors.Is(err, io.EOF):
			return t.close(&seen, columns), nil
		case malformed:
			t.bad(bad.Error())
		case err != nil:
			return nil, err
		}
	}
}

func (t *Table) bad(why string) {
	if t.BadRows++; len(t.BadSamples) < samplesMax {
		t.BadSamples = append(t.BadSamples, why)
	}
}

// close sums up.
func (t *Table) close(seen *rows, columns []column) *Table {
	t.Rows = seen.n
	t.Duplicates, t.DuplicatesExact = seen.duplicates()
	for i := range columns {
		t.Columns = append(t.Columns, columns[i].result())
	}
	return t
}

// block takes the rows of a block and folds them into the hashes of the rows.
func (c *column) block(f table.Field, from *table.Column, n int, hashes []uint64) {
	for i := range n {
		h := &hashes[i]
		if from.Missing != nil && from.Missing[i] {
			c.missing++
			fold(h, noValue)
			fold(h, noValue) // once would be a whole number, too
			continue
		}
		switch f.Kind {
		case table.Number:
			c.number(from.Numbers[i])
			fold(h, math.Float64bits(from.Numbers[i]))
		case table.Integer:
			c.integer(from.Integers[i])
			fold(h, uint64(from.Integers[i]))
		case table.Text:
			text := textAt(from, i)
			c.text(text)
			fold(h, hashBytes(text))
		case table.Numbers, table.Entries, table.Texts:
			c.elements(f, from, i, h)
		}
	}
}

// elements takes the list of one row.
func (c *column) elements(f table.Field, from *table.Column, row int, h *uint64) {
	lo, hi := from.Offsets[row], from.Offsets[row+1]
	c.lengths.add(float64(hi - lo))
	fold(h, uint64(hi-lo))
	for e := lo; e < hi; e++ {
		switch f.Kind {
		case table.Numbers:
			c.number(from.Numbers[e])
			fold(h, math.Float64bits(from.Numbers[e]))
		case table.Entries:
			c.id(from.Integers[e])
			fold(h, uint64(from.Integers[e]))
			if from.Numbers != nil {
				fold(h, math.Float64bits(from.Numbers[e]))
			}
		case table.Texts, table.Text, table.Number, table.Integer: // of lists, texts alone
			text := textAt(from, e)
			c.text(text)
			fold(h, hashBytes(text))
		}
	}
}

// textAt is text i of a column.
func textAt(c *table.Column, i int) []byte {
	lo := 0
	if i > 0 {
		lo = c.Ends[i-1]
	}
	return c.Bytes[lo:c.Ends[i]]
}

// partsMax is the numbers or entries a row up to which a column of a source is
// taken apart, number by number.
const partsMax = 64

// part says where the values of a source's column go.
type part struct {
	spec    data.ColumnSpec
	columns []column // one, or one a number or entry
	values  column   // the values of ragged entries, unless all are 1
	valued  bool
}

// OfSource reads all rows of a source, in which features are dense numbers and
// entries. Columns of a few numbers a row are taken apart.
func OfSource(ctx context.Context, src data.Source) (*Table, error) {
	var parts []part
	total := 0
	for _, s := range src.Columns() {
		p := newPart(s)
		total += len(p.columns)
		parts = append(parts, p)
	}
	for i := range parts {
		for j := range parts[i].columns {
			parts[i].columns[j].counts.limit = each(total)
		}
		parts[i].values.counts.limit = valuesLeast
	}
	seen := rows{}
	var b data.Batch
	numbers := make([]int, 0, chunk)
	for lo := 0; lo < src.Rows(); lo += chunk {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		numbers = numbers[:0]
		for r := lo; r < min(lo+chunk, src.Rows()); r++ {
			numbers = append(numbers, r)
		}
		if err := src.Read(numbers, &b); err != nil {
			return nil, err
		}
		hashes := make([]uint64, b.Rows)
		for i := range parts {
			parts[i].take(&b.Columns[i], hashes)
		}
		for _, h := range hashes {
			seen.add(h)
		}
	}
	var columns []column
	for _, p := range parts {
		if columns = append(columns, p.columns...); p.valued {
			columns = append(columns, p.values)
		}
	}
	t := (&Table{}).close(&seen, columns)
	if r, ok := src.(data.Reporter); ok {
		t.BadRows = int64(r.BadRows())
		for _, e := range r.BadSamples() {
			t.BadSamples = append(t.BadSamples, e.Error())
		}
	}
	return t, nil
}

// newPart prepares for a column of a source.
func newPart(s data.ColumnSpec) part {
	p := part{spec: s, values: column{name: s.Name + " values", kind: "number", numeric: true}}
	size, kind := s.Dim, "number"
	if s.Kind == data.RaggedColumn {
		size, kind = s.PerRow, "id"
	}
	if size == 0 || size > partsMax || size == 1 {
		p.columns = []column{{name: s.Name, kind: kind, numeric: kind == "number", list: size != 1}}
		return p
	}
	for i := range size {
		p.columns = append(p.columns, column{name: fmt.Sprintf("%s.%d", s.Name, i), kind: kind, numeric: kind == "number"})
	}
	return p
}

// take takes the rows of a batch.
func (p *part) take(c *data.Column, hashes []uint64) {
	for i := range hashes {
		lo, hi := i*p.spec.Dim, (i+1)*p.spec.Dim
		if p.spec.Kind == data.RaggedColumn {
			lo, hi = int(c.Offsets[i]), int(c.Offsets[i+1])
			fold(&hashes[i], uint64(hi-lo))
		}
		if p.columns[0].list {
			p.columns[0].lengths.add(float64(hi - lo))
		}
		for e := lo; e < hi; e++ {
			to := &p.columns[0]
			if len(p.columns) > 1 {
				to = &p.columns[e-lo]
			}
			fold(&hashes[i], uint64(math.Float32bits(c.Values[e])))
			if p.spec.Kind != data.RaggedColumn {
				to.short(c.Values[e])
				continue
			}
			fold(&hashes[i], uint64(c.IDs[e]))
			to.id(c.IDs[e])
			p.values.short(c.Values[e])
			p.valued = p.valued || c.Values[e] != 1
		}
	}
}
