package parquetio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gangline/gangline/data/table"
)

// column reads the values of a column of one row group after another.
type column struct {
	leaf
	kind   table.Kind
	index  int  // among the leaves of the schema
	nan    bool // NaN is a missing value
	in     *bufio.Reader
	pages  *pages // of the chunk
	source *parquet.FilePages
	page   parquet.Page
	values parquet.ValueReader // of page
	buf    []parquet.Value
	at, n  int // buf[at:n] is not used yet
}

// valuesAtOnce is the number of values that are taken from a page at once.
const valuesAtOnce = 1024

// begin opens the column in a row group.
func (c *column) begin(r *Reader, chunk *format.ColumnMetaData) (err error) {
	defer rescue(&err)
	c.release()
	if c.pages, err = newPages(r.f, chunk, &r.unpack, c.in); err != nil {
		return err
	}
	c.in, c.pages.blind = c.pages.in, r.blind
	library, ok := r.chunks.RowGroups()[r.group-1].ColumnChunks()[c.index].(*parquet.FileColumnChunk)
	if !ok {
		return errors.New("the library has no such column")
	}
	c.source = library.PagesFrom(c.pages)
	c.at, c.n, c.values = 0, 0, nil
	if need := int(min(valuesAtOnce, max(chunk.NumValues, 1))); len(c.buf) < need {
		c.buf = make([]parquet.Value, need)
	}
	return nil
}

// rescue turns a panic of the library about damaged data into an error.
func rescue(err *error) {
	if e := recover(); e != nil {
		*err = fmt.Errorf("the data are damaged: %v", e)
	}
}

// release gives back the page that was read last.
func (c *column) release() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page, c.values = nil, nil
	}
	c.source = nil
}

// fill gets more values; more is false after the last of the row group.
func (c *column) fill() (more bool, err error) {
	defer rescue(&err)
	for {
		if c.values != nil {
			n, err := c.values.ReadValues(c.buf)
			if err != nil && !errors.Is(err, io.EOF) {
				return false, err
			}
			if n > 0 {
				c.at, c.n = 0, n
				return true, nil
			}
		}
		if c.page != nil {
			parquet.Release(c.page)
			c.page, c.values = nil, nil
		}
		page, err := c.source.ReadPage()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if err := c.pages.agrees(page); err != nil {
			return false, err
		}
		c.page, c.values = page, page.Values()
	}
}

// peek returns the next value; ok is false after the last. The library does not
// look at the type of a value that it is asked for, and reads where there is
// nothing if it is another.
func (c *column) peek() (v parquet.Value, ok bool, err error) {
	if c.at == c.n {
		if ok, err = c.fill(); !ok {
			return v, false, err
		}
	}
	v = c.buf[c.at]
	if !v.IsNull() && v.Kind() != parquet.Kind(c.leaf.element.Type.V) {
		return v, false, fmt.Errorf("the data are damaged: a value of type %s where the schema has %s", v.Kind(), c.leaf.element.Type.V)
	}
	return v, true, nil
}

// row appends the next row to a column.
func (c *column) row(to *table.Column, rows int) (reason string, err error) {
	v, ok, err := c.peek()
	if err != nil {
		return "", err
	}
	if !ok {
		return "", errors.New("it has fewer values than the row group has rows")
	}
	if v.RepetitionLevel() != 0 {
		return "", errors.New("the data are damaged: a value goes on with a row that was not begun")
	}
	c.at++
	if !c.list {
		return c.scalar(to, v, rows)
	}
	return c.elements(to, v, rows)
}

// scalar appends a value that is a row.
func (c *column) scalar(to *table.Column, v parquet.Value, rows int) (reason string, err error) {
	defer rescue(&err)
	if v.DefinitionLevel() < c.maxDef || v.IsNull() {
		to.AddMissing(c.kind, rows)
		return "", nil
	}
	switch c.kind { //nolint:exhaustive // leaf.field makes no others without a list
	case table.Integer:
		i, reason := c.integer(v)
		to.Integers = append(to.Integers, i)
		if reason != "" {
			return reason, nil
		}
	case table.Number:
		x, reason := c.number(v)
		if math.IsNaN(x) && c.nan {
			to.AddMissing(c.kind, rows)
			return "", nil
		}
		to.Numbers = append(to.Numbers, x)
		if reason != "" || math.IsNaN(x) || math.IsInf(x, 0) {
			return orFinite(reason, x), nil
		}
	default:
		to.Bytes, reason = c.appendText(to.Bytes, v)
		to.Ends = append(to.Ends, len(to.Bytes))
		if reason != "" {
			return reason, nil
		}
	}
	to.AddPresent()
	return "", nil
}

// orFinite returns a reason, or that a number is not finite.
func orFinite(reason string, x float64) string {
	if reason == "" {
		return fmt.Sprintf("%v is not a finite number", x)
	}
	return reason
}

// elements appends a row that is a list, of which v is the first value.
func (c *column) elements(to *table.Column, v parquet.Value, rows int) (reason string, err error) {
	if v.DefinitionLevel() < c.listDef {
		// One level below an element is the empty list; further below there is none.
		if v.DefinitionLevel() == c.listDef-1 {
			to.EndList(to.Offsets[len(to.Offsets)-1])
			return "", nil
		}
		to.AddMissing(c.kind, rows)
		return "", nil
	}
	for i := 1; ; i++ {
		why, err := c.element(to, v)
		if err != nil {
			return "", err
		}
		if why != "" && reason == "" {
			reason = fmt.Sprintf("element %d: %s", i, why)
		}
		var ok bool
		if v, ok, err = c.peek(); err != nil {
			return "", err
		}
		if !ok || v.RepetitionLevel() == 0 {
			break
		}
		c.at++
	}
	n := len(to.Numbers)
	switch c.kind { //nolint:exhaustive // leaf.field makes no others with a list
	case table.Entries:
		n = len(to.Integers)
	case table.Texts:
		n = len(to.Ends)
	}
	to.EndList(n)
	return reason, nil
}

// element appends a value that is an element.
func (c *column) element(to *table.Column, v parquet.Value) (reason string, err error) {
	defer rescue(&err)
	null := v.DefinitionLevel() < c.maxDef || v.IsNull()
	switch c.kind { //nolint:exhaustive // leaf.field makes no others with a list
	case table.Numbers:
		x := math.NaN()
		if !null {
			if x, reason = c.number(v); math.IsNaN(x) || math.IsInf(x, 0) {
				reason = orFinite(reason, x)
			}
		}
		to.Numbers = append(to.Numbers, x)
	case table.Entries:
		var i int64
		if null {
			reason = "it is null, and ids have no null"
		} else {
			i, reason = c.id(v)
		}
		to.Integers = append(to.Integers, i)
	default:
		if !null {
			to.Bytes, reason = c.appendText(to.Bytes, v)
		}
		to.Ends = append(to.Ends, len(to.Bytes))
	}
	return reason, nil
}

// id returns a value as an id: any 64 bits.
func (c *column) id(v parquet.Value) (int64, string) {
	if c.form == formUnsigned && v.Kind() == parquet.Int64 {
		return v.Int64(), ""
	}
	return c.integer(v)
}

// end demands that nothing is left of a row group.
func (c *column) end() error {
	_, more, err := c.peek()
	if err == nil && more {
		err = errors.New("it has more values than the row group has rows")
	}
	return err
}
