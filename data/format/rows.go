package format

import (
	"context"
	"errors"
	"fmt"

	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/number"
)

// lineParser reads one kind of line.
type lineParser interface {
	// fields describes the columns.
	fields() []table.Field
	// parse appends the row on a line to the columns. If the line is malformed it
	// says why, and which column is at fault; the caller takes back what was
	// appended. Blank lines do not come here.
	parse(columns []table.Column, rows int, line []byte) (column, reason string)
}

// lineRows reads a text file that has a row on each line. Blank lines hold none.
type lineRows struct {
	*lines
	fields []table.Field
	parser lineParser
	err    error // what ended the reader
}

// openRows opens a text file for a parser.
func openRows(ctx context.Context, spec *Spec, location string, like []table.Field, p lineParser) (table.Reader, error) {
	l, err := openLines(ctx, spec, location)
	if err != nil {
		return nil, err
	}
	r := &lineRows{lines: l, fields: p.fields(), parser: p}
	s, err := project(r, spec, location, like)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// Fields implements table.Reader.
func (r *lineRows) Fields() []table.Field { return r.fields }

// Read implements table.Reader.
func (r *lineRows) Read(b *table.Block, n int) error {
	b.Reset(r.fields, r.location)
	defer b.Finish(r.fields)
	for r.err == nil && b.Rows < n {
		text, line, err := r.next()
		if err != nil {
			r.err = err
			break
		}
		if len(trimSpaces(text)) == 0 {
			continue
		}
		if column, reason := r.parser.parse(b.Columns, b.Rows, text); reason != "" {
			b.Cut(r.fields, b.Rows)
			return r.rowError(line, column, reason)
		}
		b.Rows++
		b.Lines = append(b.Lines, line)
	}
	return r.err
}

// projection gives the columns of another reader that Spec.Select names.
type projection struct {
	table.Reader
	fields []table.Field
	index  []int // of each in the other reader
	inner  table.Block
}

// project applies the spec to the columns of a reader.
func project(r table.Reader, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	fields, index, err := selected(spec, location, r.Fields(), like)
	if err == nil {
		err = agree(spec, location, r.Fields())
	}
	if err != nil || spec.Select == nil {
		return r, err
	}
	return &projection{Reader: r, fields: fields, index: index}, nil
}

// Fields implements table.Reader.
func (p *projection) Fields() []table.Field { return p.fields }

// Read implements table.Reader. Columns are exchanged, so both blocks keep their
// memory.
func (p *projection) Read(b *table.Block, n int) error {
	err := p.Reader.Read(&p.inner, n)
	b.Reset(p.fields, p.inner.File)
	b.Rows, b.First = p.inner.Rows, p.inner.First
	b.Lines, p.inner.Lines = p.inner.Lines, b.Lines
	for k, i := range p.index {
		b.Columns[k], p.inner.Columns[i] = p.inner.Columns[i], b.Columns[k]
	}
	return err
}

// token cuts the first run of bytes between spaces or tabs off a line.
func token(line []byte) (word, rest []byte) {
	i := 0
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	j := i
	for j < len(line) && line[j] != ' ' && line[j] != '\t' {
		j++
	}
	return line[i:j], line[j:]
}

// finite reads a number of a line.
func finite(what string, text []byte) (v float64, reason string) {
	v, ok := number.Double(text)
	if !ok {
		return 0, fmt.Sprintf("%s %s is not a finite number", what, table.Quote(text))
	}
	return v, ""
}
