package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/gangline/gangline/data/table"
)

// csvReader reads comma separated values as RFC 4180 has them: fields may stand
// in quotes and then hold delimiters, newlines and, doubled, quotes. Spaces
// around a field are no part of it unless they are quoted. Blank lines hold no
// row. A line ends in LF or CRLF.
type csvReader struct {
	*lines
	dialect
	columns []csvColumn // those that are read, in their order
	fields  []table.Field
	want    int // number of fields of a row
	row     csvRow
	missing wordSet
	err     error // what ended the reader
}

// csvColumn is a column to read.
type csvColumn struct {
	index  int // of the field in the row
	kind   table.Kind
	suffix []byte
	// taken says that the kind was inferred, for errors.
	taken bool
}

// openCSV implements opener.
func openCSV(ctx context.Context, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	l, err := openLines(ctx, spec, location)
	if err != nil {
		return nil, err
	}
	r, err := newCSV(l, spec, like)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return r, nil
}

// newCSV reads the header, and as many rows ahead as it takes to know the kinds.
func newCSV(l *lines, spec *Spec, like []table.Field) (*csvReader, error) {
	r := &csvReader{lines: l, missing: newWordSet(spec.Missing)}
	var err error
	if r.dialect, err = newDialect(spec, l); err != nil {
		return nil, err
	}
	names, err := r.names(spec)
	if err != nil {
		return nil, err
	}
	has := make([]table.Field, len(names))
	for i, name := range names {
		has[i] = table.Field{Name: name, Kind: spec.Columns[name]}
	}
	r.want = len(names)
	fields, index, err := selected(spec, l.location, has, like)
	if err != nil {
		return nil, err
	}
	r.fields = fields
	for i, f := range fields {
		c := csvColumn{index: index[i], kind: f.Kind, suffix: []byte(spec.Suffix[f.Name]), taken: f.Kind == ""}
		if c.taken && like != nil {
			c.kind = like[i].Kind
		}
		r.columns = append(r.columns, c)
	}
	if like == nil {
		if err := r.infer(spec.Header || spec.Names != nil); err != nil {
			return nil, err
		}
	}
	for i := range r.fields {
		r.fields[i].Kind = r.columns[i].kind
	}
	return r, nil
}

// names returns the names of all columns, of the header if there is one.
func (r *csvReader) names(spec *Spec) ([]string, error) {
	row, line, err := r.next(0)
	switch {
	case errors.Is(err, io.EOF) && spec.Names == nil:
		return nil, fmt.Errorf("%s: the file is empty", r.location)
	case errors.Is(err, io.EOF):
		return spec.Names, nil
	case err != nil:
		return nil, err
	case spec.Names != nil && len(spec.Names) != len(row.fields):
		return nil, fmt.Errorf("%s:%d: the first row has %d fields parted by %q, %d names are given", r.location, line, len(row.fields), r.delimiter, len(spec.Names))
	case !utf8.Valid(row.text):
		_, reason := notUTF8(row.text)
		return nil, r.rowError(line, "", reason)
	}
	var names []string
	numbers := 0
	for i, f := range row.fields {
		name := string(trimSpaces(f))
		if isNumber(f) {
			numbers++
		}
		if name == "" || !spec.Header {
			name = fmt.Sprintf("c%d", i+1)
		}
		names = append(names, name)
	}
	if spec.Header {
		r.take(row.end, row.newlines)
	}
	if spec.Names != nil {
		return spec.Names, nil
	}
	if spec.Header && 2*numbers > len(names) {
		return nil, fmt.Errorf("%s:%d: the first line looks like a row, not like names: %s...; say header: false, or give the names",
			r.location, line, table.Quote(row.fields[0]))
	}
	if name, ok := twice(names); ok {
		return nil, fmt.Errorf("%s:%d: the header names %q twice: give the names", r.location, line, name)
	}
	return names, nil
}

// Fields implements table.Reader.
func (r *csvReader) Fields() []table.Field { return r.fields }

// Read implements table.Reader.
func (r *csvReader) Read(b *table.Block, n int) error {
	b.Reset(r.fields, r.location)
	defer b.Finish(r.fields)
	if r.err != nil {
		return r.err
	}
	for b.Rows < n {
		row, line, err := r.next(0)
		if row == nil {
			r.err = err
			return err
		}
		r.take(row.end, row.newlines)
		if err != nil {
			return err
		}
		if err := r.append(b, row, line); err != nil {
			b.Cut(r.fields, b.Rows)
			return err
		}
		b.Rows++
		b.Lines = append(b.Lines, line)
	}
	return nil
}

// append adds a row to a block. If it fails the caller cuts off what was added.
func (r *csvReader) append(b *table.Block, row *csvRow, line int) error {
	if len(row.fields) != r.want {
		return r.rowError(line, "", fmt.Sprintf("the row has %d fields, want %d%s", len(row.fields), r.want, r.fieldsHint(row)))
	}
	if !utf8.Valid(row.text) {
		return r.encodingError(row, line)
	}
	for i := range r.columns {
		col := &r.columns[i]
		text := col.clean(row.fields[col.index])
		c := &b.Columns[i]
		if r.missing.has(text) {
			c.AddMissing(col.kind, b.Rows)
			continue
		}
		if reason := col.append(c, text, row.fields[col.index]); reason != "" {
			return r.rowError(line, r.fields[i].Name, reason)
		}
		c.AddPresent()
	}
	return nil
}

// fieldsHint guesses why a row has another number of fields.
func (r *csvReader) fieldsHint(row *csvRow) string {
	if len(row.fields) == 1 {
		return fmt.Sprintf(" parted by %q", r.delimiter)
	}
	if len(row.fields) > r.want && !row.quoted {
		return "; a field that holds the delimiter has to stand in quotes"
	}
	return ""
}

// encodingError finds the column of what is no UTF-8.
func (r *csvReader) encodingError(row *csvRow, line int) error {
	at, reason := notUTF8(row.text)
	line += bytes.Count(row.text[:at], []byte{'\n'})
	for i, col := range r.columns {
		if f := row.fields[col.index]; !utf8.Valid(f) {
			return r.rowError(line, r.fields[i].Name, reason)
		}
	}
	return r.rowError(line, "", reason)
}

// clean cuts off the spaces around a value, and the suffix.
func (col *csvColumn) clean(field []byte) []byte {
	text := trimSpaces(field)
	if len(col.suffix) > 0 {
		text = trimSpaces(bytes.TrimSuffix(text, col.suffix))
	}
	return text
}

// trimSpaces cuts off the spaces around a text.
func trimSpaces(s []byte) []byte {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}
