// Package parse reads libsvm and Criteo text into blocks of rows, as fast as one
// core can.
//
// A Reader takes the text in large pieces. Its parser runs over them without
// looking for line ends first, and takes every row of the common form in stride;
// a line that is not of that form is cut out and read carefully, which either
// understands it or says what is wrong with it. Both ways give the same rows.
package parse

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/number"
)

// Limits of reading. Input beyond them is an error, never more memory.
const (
	// MaxLine is the longest line of a text file, in bytes.
	MaxLine = 64 << 20
	// pieceBytes is what is read from a file at once.
	pieceBytes = 256 << 10
	// minRead is the room below which a piece is not worth another read.
	minRead = 64 << 10
)

// fault is what is wrong with a line.
type fault struct {
	column string // the field at fault; "" if it is the row
	reason string
}

// parser reads the rows of one format.
type parser interface {
	// specs describes the columns of the rows read so far.
	specs() []rows.ColumnSpec
	// scan appends at most n rows from text[at:end], which ends with a line end and
	// has number.Pad bytes behind it. It returns where it stopped, the beginning of
	// a line, and how many rows it appended, a line each. It stops early at a line
	// that it does not take in stride.
	scan(b *rows.Block, text []byte, at, end, n int) (next, appended int)
	// line appends the row of a line without its end. It returns a fault if the line
	// is malformed, having appended nothing, and skip if it holds no row.
	line(b *rows.Block, line []byte) (skip bool, f *fault)
}

// Reader reads a file of text from beginning to end. It is used by one goroutine.
type Reader struct {
	parser
	file     string
	in       io.Reader
	buf      []byte // number.Pad longer than what is used of it
	at, full int    // buf[at:full] are whole lines
	end      int    // buf[full:end] is the beginning of another
	lines    int    // before at
	raw      []byte
	eof      bool
	begun    bool  // the first line was looked at
	err      error // why there is no more, other than io.EOF
}

func newReader(file string, in io.Reader, p parser) *Reader {
	return &Reader{parser: p, file: file, in: in}
}

// Columns describes the rows read so far. After the last, that is all of them.
func (r *Reader) Columns() []rows.ColumnSpec { return r.specs() }

// File is the name that errors give.
func (r *Reader) File() string { return r.file }

// Lines is the number of lines read so far.
func (r *Reader) Lines() int { return r.lines }

// Raw returns the line of the last malformed row, valid until the next Read.
func (r *Reader) Raw() []byte { return r.raw }

// Read appends at most n rows to b, which Reset has prepared for the reader's
// columns, and returns io.EOF after the last. A malformed row is a
// *table.RowError: nothing of it is in b, rows before it are, and Read may be
// called again to go on after it. Any other error ends the reader. A warm Read
// allocates nothing.
func (r *Reader) Read(b *rows.Block, n int) error {
	for n > 0 {
		if r.at == r.full {
			if err := r.fill(); err != nil {
				return err
			}
		}
		next, appended := r.scan(b, r.buf, r.at, r.full, n)
		r.at = next
		r.lines += appended
		n -= appended
		if n == 0 || r.at == r.full {
			continue
		}
		line := r.cut()
		r.lines++
		skip, f := r.line(b, line)
		if f != nil {
			r.raw = line
			if r.lines == 1 {
				f.reason += utf16Hint(line)
			}
			return &table.RowError{File: r.file, Line: r.lines, Column: f.column, Reason: f.reason}
		}
		if !skip {
			n--
		}
	}
	return nil
}

// cut takes the next line out, without its end.
func (r *Reader) cut() []byte {
	i := bytes.IndexByte(r.buf[r.at:r.full], '\n')
	line := r.buf[r.at : r.at+i]
	r.at += i + 1
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// fill reads until there is a whole line. A last line without a line end gets one.
func (r *Reader) fill() error {
	if r.buf == nil {
		r.buf = make([]byte, pieceBytes+number.Pad)
	}
	r.end = copy(r.buf, r.buf[r.full:r.end])
	r.at, r.full = 0, 0
	defer r.mark()
	for r.full == 0 {
		if r.err != nil {
			return fmt.Errorf("data: %s:%d: %w", r.file, r.lines+1, r.err)
		}
		if r.eof {
			if r.end == 0 {
				return io.EOF
			}
			r.buf[r.end] = '\n'
			r.end++
			r.full = r.end
			return nil
		}
		if len(r.buf)-number.Pad-r.end < min(minRead, r.end) {
			if r.end >= MaxLine {
				return fmt.Errorf("data: %s:%d: a line is longer than %d bytes", r.file, r.lines+1, MaxLine)
			}
			r.buf = append(r.buf, make([]byte, len(r.buf)-number.Pad)...)
		}
		r.more()
	}
	return nil
}

// mark leaves out the byte order mark that a file of UTF-8 may begin with.
func (r *Reader) mark() {
	if r.begun || r.full == 0 {
		return
	}
	r.begun = true
	if bytes.HasPrefix(r.buf[:r.full], []byte("\xef\xbb\xbf")) {
		r.at = 3
	}
}

// more reads at least one byte, or notes why there is none.
func (r *Reader) more() {
	const patience = 100 // empty reads in a row, as bufio has it
	for range patience {
		n, err := r.in.Read(r.buf[r.end : len(r.buf)-number.Pad])
		if i := bytes.LastIndexByte(r.buf[r.end:r.end+n], '\n'); i >= 0 {
			r.full = r.end + i + 1
		}
		r.end += n
		if errors.Is(err, io.EOF) {
			r.eof = true
			return
		}
		if r.err = err; n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// utf16Hint says what to do about the first line of a file of UTF-16.
func utf16Hint(line []byte) string {
	if bytes.HasPrefix(line, []byte("\xff\xfe")) || bytes.HasPrefix(line, []byte("\xfe\xff")) {
		return "; the file is UTF-16: convert it to UTF-8 (iconv -f utf-16 -t utf-8)"
	}
	return ""
}

// quote shows a piece of bad input, cut to a readable length.
func quote(b []byte) string {
	const most = 32
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}
