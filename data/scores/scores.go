// Package scores writes what a model predicts of rows, as CSV, JSON lines or
// Parquet, a portion at a time.
//
//	row          number of the row, from 0, in the order of the input
//	prediction   a probability, a class or a value
//	probability  that of the class, where the prediction is one
//	label        as the input has it, if it has one
//
// A model of text has other columns for a row, which is some tokens:
//
//	row             as above
//	log_likelihood  of the row's tokens, each given those before it in the row: the sum, in nats
//	perplexity      e^-(log_likelihood / number of tokens)
package scores

import (
	"bufio"
	"encoding/json"
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
	// Names are what classes are called, in the order of their numbers, and labels
	// too; nil: they are called by their numbers.
	Names []string
	// Labels says that rows have labels.
	Labels bool
	// Text says that rows are tokens of a text, with a likelihood and a perplexity;
	// the other fields are then left out.
	Text bool
}

// Row is what is written of one row.
type Row struct {
	Row int64
	// Value is the predicted number, the probability of Class, or the logarithm of the
	// likelihood of a text.
	Value float64
	Class int64
	// Perplexity is that of a text.
	Perplexity float64
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
		f.Names = quoted(f.Names, func(s string) string {
			b, _ := json.Marshal(s) // text cannot fail
			return string(b)
		})
		return &text{w: bufio.NewWriterSize(w, textBytes), form: f, line: f.json}, nil
	case "parquet":
		if f.Text {
			return &columns[textRow]{w: parquet.NewGenericWriter[textRow](w), row: f.textRow}, nil
		}
		if f.Classes && f.Names != nil {
			return &columns[nameRow]{w: parquet.NewGenericWriter[nameRow](w), row: f.nameRow}, nil
		}
		if f.Classes {
			return &columns[classRow]{w: parquet.NewGenericWriter[classRow](w), row: f.classRow}, nil
		}
		return &columns[valueRow]{w: parquet.NewGenericWriter[valueRow](w), row: f.valueRow}, nil
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

// quoted brings names to the form of a format.
func quoted(names []string, quote func(string) string) []string {
	if names == nil {
		return nil
	}
	out := make([]string, len(names))
	for i, s := range names {
		out[i] = quote(s)
	}
	return out
}

// newCSV returns a text that begins with the names of the columns.
func newCSV(w io.Writer, f Form) *text {
	f.Names = quoted(f.Names, func(s string) string {
		if s == strings.TrimSpace(s) && !strings.ContainsAny(s, ",\"\r\n") {
			return s
		}
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	})
	t := &text{w: bufio.NewWriterSize(w, textBytes), form: f, line: f.csv}
	if f.Text {
		t.buf = append(t.buf, "row,log_likelihood,perplexity\n"...)
		return t
	}
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
	if f.Text {
		b = append(strconv.AppendFloat(b, r.Value, 'g', -1, 64), ',')
		return append(strconv.AppendFloat(b, r.Perplexity, 'g', -1, 64), '\n')
	}
	if f.Classes {
		b = append(f.class(b, r.Class), ',')
	}
	b = strconv.AppendFloat(b, r.Value, 'g', -1, 64)
	if f.Labels {
		b = append(b, ',')
		if !math.IsNaN(r.Label) {
			b = f.label(b, r.Label)
		}
	}
	return append(b, '\n')
}

func (f Form) json(b []byte, r *Row) []byte {
	b = strconv.AppendInt(append(b, `{"row":`...), r.Row, 10)
	if f.Text {
		b = number(append(b, `,"log_likelihood":`...), r.Value)
		b = number(append(b, `,"perplexity":`...), r.Perplexity)
		return append(b, "}\n"...)
	}
	b = append(b, `,"prediction":`...)
	if f.Classes {
		b = append(f.class(b, r.Class), `,"probability":`...)
	}
	b = number(b, r.Value)
	if f.Labels {
		b = append(b, `,"label":`...)
		if math.IsNaN(r.Label) || math.IsInf(r.Label, 0) {
			b = append(b, "null"...)
		} else {
			b = f.label(b, r.Label)
		}
	}
	return append(b, "}\n"...)
}

// class appends what a class is called.
func (f Form) class(b []byte, n int64) []byte {
	return append(b, f.called(n)...)
}

// called is the name of a class; one without a name is called by its number.
func (f Form) called(n int64) string {
	if n < 0 || n >= int64(len(f.Names)) {
		return strconv.FormatInt(n, 10)
	}
	return f.Names[n]
}

// label appends what a label is called.
func (f Form) label(b []byte, v float64) []byte {
	if f.Classes && f.Names != nil {
		return f.class(b, int64(v))
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
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

type nameRow struct {
	Row         int64   `parquet:"row"`
	Prediction  string  `parquet:"prediction"`
	Probability float64 `parquet:"probability"`
	Label       *string `parquet:"label,optional"`
}

type textRow struct {
	Row           int64   `parquet:"row"`
	LogLikelihood float64 `parquet:"log_likelihood"`
	Perplexity    float64 `parquet:"perplexity"`
}

func (f Form) textRow(r *Row) textRow { return textRow{r.Row, r.Value, r.Perplexity} }

func (f Form) valueRow(r *Row) valueRow { return valueRow{r.Row, r.Value, f.given(r)} }

func (f Form) classRow(r *Row) classRow { return classRow{r.Row, r.Class, r.Value, f.given(r)} }

func (f Form) nameRow(r *Row) nameRow {
	n := nameRow{Row: r.Row, Prediction: f.called(r.Class), Probability: r.Value}
	if label := f.given(r); label != nil {
		n.Label = new(f.called(int64(*label)))
	}
	return n
}

// given is a row's label, nil if it has none.
func (f Form) given(r *Row) *float64 {
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
