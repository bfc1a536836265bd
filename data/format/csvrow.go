package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gangline/gangline/data/table"
)

// dialect is how a CSV file parts its fields.
type dialect struct {
	delimiter byte
	quotes    bool
}

// csvRow is a row that was found but not yet given out.
type csvRow struct {
	text      []byte // as in the file, without the last line end
	fields    [][]byte
	end       int  // bytes up to the next row, for lines.take
	newlines  int  // in them
	quoted    bool // some field stands in quotes
	unescaped []byte
}

// next finds the row that begins skip bytes after what was given out, leaving out
// blank lines, and the line it begins at if skip is 0. The row is valid until the
// next call. With a RowError it is the line at fault.
func (r *csvReader) next(skip int) (*csvRow, int, error) {
	for {
		text, size, whole, err := r.peek(skip)
		if err != nil {
			return nil, r.line, err
		}
		text = text[skip:]
		if size == skip {
			return nil, r.line, io.EOF
		}
		if len(trimSpaces(trimReturn(text))) == 0 && r.delimiter != '\t' || len(trimReturn(text)) == 0 {
			if skip > 0 {
				skip = size
				continue
			}
			r.take(size, 1)
			continue
		}
		line := r.line
		r.row = csvRow{fields: r.row.fields[:0], unescaped: r.row.unescaped[:0]}
		if !r.quotes || bytes.IndexByte(text, '"') < 0 {
			r.row.split(trimReturn(text), r.delimiter)
			r.row.end, r.row.newlines = size, 1
			return &r.row, line, nil
		}
		err = r.quoted(skip, text, size, whole)
		if err == nil {
			return &r.row, line, nil
		}
		if e, ok := errors.AsType[*quoteError](err); ok {
			r.row.end, r.row.newlines = size, 1
			return &r.row, line, r.rowError(line, "", e.reason)
		}
		return nil, line, err
	}
}

// quoteError says what is wrong with the quotes of a row.
type quoteError struct{ reason string }

func (e *quoteError) Error() string { return e.reason }

// quoted finds the end of a row whose first line has quotes, and splits it.
func (r *csvReader) quoted(skip int, text []byte, size int, whole bool) error {
	newlines := 1
	for {
		open, err := r.row.unquote(trimReturn(text), r.delimiter)
		if err != nil {
			return err
		}
		if !open {
			r.row.end, r.row.newlines = size, newlines
			return nil
		}
		// Inside quotes: the row goes on until a line with an odd number of them.
		for odd := false; !odd; {
			if !whole || size-skip > lineMax {
				return &quoteError{fmt.Sprintf("a quote opens field %d and nothing closes it in %d bytes: double a quote inside of quotes; if quotes mean nothing in this file say no_quotes: true",
					len(r.row.fields)+1, size-skip)}
			}
			from := size
			var all []byte
			if all, size, whole, err = r.peek(from); err != nil {
				return err
			}
			odd = bytes.Count(all[from:], []byte{'"'})%2 == 1
			text = all[skip:]
			newlines++
		}
		r.row.fields, r.row.unescaped = r.row.fields[:0], r.row.unescaped[:0]
	}
}

// split cuts a row without quotes at its delimiters.
func (row *csvRow) split(text []byte, delimiter byte) {
	row.text = text
	for {
		i := bytes.IndexByte(text, delimiter)
		if i < 0 {
			row.fields = append(row.fields, trimSpaces(text))
			return
		}
		row.fields = append(row.fields, trimSpaces(text[:i]))
		text = text[i+1:]
	}
}

// unquote cuts a row with quotes. open says that it ends inside of them.
func (row *csvRow) unquote(text []byte, delimiter byte) (open bool, err error) {
	row.text, row.quoted = text, true
	// Fields point into unescaped: it must not move.
	if cap(row.unescaped) < len(text) {
		row.unescaped = make([]byte, 0, 2*len(text))
	}
	for {
		start := text
		for len(text) > 0 && text[0] == ' ' && delimiter != ' ' {
			text = text[1:]
		}
		if len(text) == 0 || text[0] != '"' {
			i := bytes.IndexByte(start, delimiter)
			field := start
			if i >= 0 {
				field = start[:i]
			}
			if j := bytes.IndexByte(field, '"'); j >= 0 {
				return false, &quoteError{fmt.Sprintf("field %d has a quote in its middle (%s): a field with quotes stands in quotes and doubles them; if quotes mean nothing in this file say no_quotes: true",
					len(row.fields)+1, table.Quote(field))}
			}
			row.fields = append(row.fields, trimSpaces(field))
			if i < 0 {
				return false, nil
			}
			text = start[i+1:]
			continue
		}
		from := len(row.unescaped)
		n := row.unescape(text[1:])
		if n < 0 {
			return true, nil
		}
		row.fields = append(row.fields, row.unescaped[from:len(row.unescaped):len(row.unescaped)])
		rest := text[1+n:]
		text = trimSpacesLeft(rest, delimiter)
		if len(text) == 0 {
			return false, nil
		}
		if text[0] != delimiter {
			return false, &quoteError{fmt.Sprintf("field %d goes on after its closing quote with %s: a quote inside of quotes is doubled",
				len(row.fields), table.Quote(rest))}
		}
		text = text[1:]
	}
}

// unescape appends what stands before the closing quote and returns the bytes up
// to behind it, or -1 if nothing closes.
func (row *csvRow) unescape(text []byte) int {
	n := 0
	for {
		i := bytes.IndexByte(text[n:], '"')
		if i < 0 {
			return -1
		}
		row.unescaped = append(row.unescaped, text[n:n+i]...)
		n += i + 1
		if n == len(text) || text[n] != '"' {
			return n
		}
		row.unescaped = append(row.unescaped, '"')
		n++
	}
}

func trimSpacesLeft(s []byte, delimiter byte) []byte {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') && s[0] != delimiter {
		s = s[1:]
	}
	return s
}

// newDialect is what the spec says, or what the first lines look like.
func newDialect(spec *Spec, l *lines) (dialect, error) {
	d := dialect{quotes: !spec.NoQuotes}
	switch {
	case spec.Delimiter == "tab":
		d.delimiter = '\t'
	case len(spec.Delimiter) == 1 && !strings.Contains("\"\r\n.0123456789", spec.Delimiter) && spec.Delimiter[0] < 0x80:
		d.delimiter = spec.Delimiter[0]
	case spec.Delimiter != "":
		return d, fmt.Errorf("delimiter %q: want one character that is no quote, digit or point, or tab", spec.Delimiter)
	default:
		head, err := l.head()
		if err != nil {
			return d, err
		}
		d.delimiter = detect(head, d.quotes)
	}
	return d, nil
}

// head returns the first lines of what was not given out, whole ones if the file
// has them within firstBytes.
func (l *lines) head() ([]byte, error) {
	for l.end-l.start < firstBytes && !l.eof {
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
	head := l.buf[l.start:l.end]
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 && !l.eof {
		head = head[:i]
	}
	return head, nil
}

// detect chooses the delimiter that cuts most of the first lines into as many
// fields as the first one, more than one. Among equals the comma comes late: it
// stands within numbers and texts that others part. A file without any has one
// column.
func detect(head []byte, quotes bool) byte {
	const sample = 50
	best, bestLines := byte(','), 0
	for _, delimiter := range []byte("\t;,|") {
		l := newLines("", bytes.NewReader(nil), io.NopCloser(nil))
		l.buf, l.end, l.eof = head, len(head), true
		r := csvReader{lines: l, dialect: dialect{delimiter, quotes}}
		fields, agree := 0, 0
		for range sample {
			row, _, err := r.next(0)
			_, bad := errors.AsType[*table.RowError](err)
			if err != nil && !bad {
				break
			}
			if fields == 0 && !bad {
				fields = len(row.fields)
			}
			if len(row.fields) == fields && !bad {
				agree++
			}
			r.take(row.end, row.newlines)
		}
		if fields > 1 && agree > bestLines {
			best, bestLines = delimiter, agree
		}
	}
	return best
}
