// Package scores writes what a model predicts of rows, as CSV, JSON lines or
// Parquet, a portion at a time.
//
//	row          number of the row, from 0, in the order of the input
//	prediction   a probability, a class or a value
//	probability  that of the class, where the prediction is one
//	label        as the input has it, if it has one
package scores

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/gangline/gangline/internal/nearest"
)

// Form says which columns there are.
type Form struct {
	// Classes says that predictions are classes, which have a probability each;
	// else they are numbers.
	Classes bool
	// Labels says that rows have labels.
	Labels bool
}

// Row is what is written of one row.
type Row struct {
	Row int64
	// Value is the predicted number, or the probability of Class.
	Value float64
	Class int64
	// Label is NaN where the row has none: nothing then stands in its place, null
	// in JSON.
	Label float64
}

// Writer takes rows and writes them in one format.
type Writer interface {
	// Write takes the next rows.
	Write(rows []Row) error
	// Close writes what is still held. It leaves the writer below open.
	Close() error
}

// Formats returns the names of the formats that New knows.
func Formats() []string { return []string{"csv", "jsonl", "parquet"} }

// FormatOf is the format that a file's name ends with, "" if it ends with none.
func FormatOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		return "csv"
	case ".jsonl", ".ndjson", ".json":
		return "jsonl"
	case ".parquet":
		return "parquet"
	}
	return ""
}

// New returns a writer of a format. Numbers are written such that reading them
// gives the same float64; what is not finite is NaN, +Inf or -Inf in CSV and null
// in JSON.
func New(format string, w io.Writer, f Form) (Writer, error) {
	switch format {
	case "csv":
		return newCSV(w, f), nil
	case "jsonl":
		return &text{w: bufio.NewWriterSize(w, textBytes), form: f, line: f.json}, nil
	case "parquet":
		if f.Classes {
			return &columns[classRow]{w: parquet.NewGenericWriter[classRow](w), row: f.class}, nil
		}
		return &columns[valueRow]{w: parquet.NewGenericWriter[valueRow](w), row: f.value}, nil
	}
	return nil, fmt.Errorf("scores: unknown format %q%s", format, nearest.Hint(format, Formats()))
}

// textBytes is what is written at once.
const textBytes = 64 << 10

// text writes a line a row.
type text struct {
	w    *bufio.Writer
	form Form
	buf  []byte
	line func(b []byte, r *Row) []byte
}

// newCSV returns a text that begins with the names of the columns.
func newCSV(w io.Writer, f Form) *text {
	t := &text{w: bufio.NewWriterSize(w, textBytes), form: f, line: f.csv}
	t.buf = append(t.buf, "row,prediction"...)
	if f.Classes {
		t.buf = append(t.buf, ",probability"...)
	}
	if f.Labels {
		t.buf = append(t.buf, ",label"...)
	}
	t.buf = append(t.buf, '\n')
	return t
}

// Write implements Writer.
func (t *text) Write(rows []Row) error {
	for i := range rows {
		t.buf = t.line(t.buf, &rows[i])
		if err := t.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (t *text) flush() error {
	_, err := t.w.Write(t.buf)
	t.buf = t.buf[:0]
	return err
}

// Close implements Writer.
func (t *text) Close() error {
	if err := t.flush(); err != nil { // the head of a file without rows
		return err
	}
	return t.w.Flush()
}

func (f Form) csv(b []byte, r *Row) []byte {
	b = append(strconv.AppendInt(b, r.Row, 10), ',')
	if f.Classes {
		b = append(strconv.AppendInt(b, r.Class, 10), ',')
	}
	b = strconv.AppendFloat(b, r.Value, 'g', -1, 64)
	if f.Labels {
		b = append(b, ',')
		if !math.IsNaN(r.Label) {
			b = strconv.AppendFloat(b, r.Label, 'g', -1, 64)
		}
	}
	return append(b, '\n')
}

func (f Form) json(b []byte, r *Row) []byte {
	b = strconv.AppendInt(append(b, `{"row":`...), r.Row, 10)
	b = append(b, `,"prediction":`...)
	if f.Classes {
		b = append(strconv.AppendInt(b, r.Class, 10), `,"probability":`...)
	}
	b = number(b, r.Value)
	if f.Labels {
		b = number(append(b, `,"label":`...), r.Label)
	}
	return append(b, "}\n"...)
}

// number is a number of JSON.
func number(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// valueRow and classRow are the schemas of Parquet files.
type valueRow struct {
	Row        int64    `parquet:"row"`
	Prediction float64  `parquet:"prediction"`
	Label      *float64 `parquet:"label,optional"`
}

type classRow struct {
	Row         int64    `parquet:"row"`
	Prediction  int64    `parquet:"prediction"`
	Probability float64  `parquet:"probability"`
	Label       *float64 `parquet:"label,optional"`
}

func (f Form) value(r *Row) valueRow { return valueRow{r.Row, r.Value, f.label(r)} }

func (f Form) class(r *Row) classRow { return classRow{r.Row, r.Class, r.Value, f.label(r)} }

func (f Form) label(r *Row) *float64 {
	if !f.Labels || math.IsNaN(r.Label) {
		return nil
	}
	return &r.Label
}

// groupRows is the number of rows of a row group, the most that is held.
const groupRows = 1 << 17

// columns writes Parquet.
type columns[T any] struct {
	w    *parquet.GenericWriter[T]
	row  func(r *Row) T
	buf  []T
	held int
}

// Write implements Writer.
func (c *columns[T]) Write(rows []Row) error {
	c.buf = c.buf[:0]
	for i := range rows {
		c.buf = append(c.buf, c.row(&rows[i]))
	}
	if _, err := c.w.Write(c.buf); err != nil {
		return err
	}
	if c.held += len(rows); c.held < groupRows {
		return nil
	}
	c.held = 0
	return c.w.Flush()
}

// Close implements Writer.
func (c *columns[T]) Close() error { return c.w.Close() }
