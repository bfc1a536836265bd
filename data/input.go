package data

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
)

// Limits of reading. Input beyond them is an error, never more memory.
const (
	// maxLine is the longest line of a text file, in bytes.
	maxLine = 64 << 20
	// maxBadSamples is the number of bad rows that a source remembers.
	maxBadSamples = 5
	// maxID bounds ids and the Dim of ragged columns: ids are kept as int32.
	maxID = 1<<31 - 1
	// blockBytes is what is read from a file at once.
	blockBytes = 1 << 20
)

// openInput opens a file and undoes gzip or bzip2, whichever its first bytes
// show; the name does not matter. The caller closes the second value.
func openInput(path string) (io.Reader, io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, nil, errors.Join(fmt.Errorf("%s is a directory, want a file", path), f.Close())
	}
	r, err := decompress(f)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return r, f, nil
}

// decompress looks at the first bytes of r and undoes gzip or bzip2.
func decompress(r io.Reader) (io.Reader, error) {
	br := bufio.NewReaderSize(r, 256<<10)
	head, err := br.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzip.NewReader(br)
	case bytes.HasPrefix(head, []byte("BZh")):
		return bzip2.NewReader(br), nil
	}
	return br, nil
}

// lineReader cuts a stream into lines without copying them.
type lineReader struct {
	r          io.Reader
	buf        []byte
	start, end int // buf[start:end] was read but not given out
	scanned    int // buf[start:scanned] holds no newline
	eof        bool
	line       int // 1-based number of the line last given out
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: r, buf: make([]byte, blockBytes)}
}

// next returns the next line without its line end, valid until the next call,
// or io.EOF after the last. A last line without a line end counts.
func (l *lineReader) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scanned:l.end], '\n'); i >= 0 {
			return l.take(l.scanned+i, l.scanned+i+1), nil
		}
		l.scanned = l.end
		if l.eof {
			if l.start == l.end {
				return nil, io.EOF
			}
			return l.take(l.end, l.end), nil
		}
		if err := l.fill(); err != nil {
			l.line++
			return nil, err
		}
	}
}

// take gives out buf[start:end] and goes on at next.
func (l *lineReader) take(end, next int) []byte {
	line := l.buf[l.start:end]
	l.start, l.scanned = next, next
	l.line++
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// fill reads at least one byte more, or notes the end.
func (l *lineReader) fill() error {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.end -= l.start
		l.scanned -= l.start
		l.start = 0
	}
	if l.end == len(l.buf) {
		if len(l.buf) >= maxLine {
			return fmt.Errorf("a line is longer than %d bytes", maxLine)
		}
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	const patience = 100 // empty reads in a row, as bufio has it
	for range patience {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		if err == io.EOF {
			l.eof = true
			return nil
		}
		if err != nil {
			return err
		}
		if n > 0 {
			return nil
		}
	}
	return io.ErrNoProgress
}

// badRows counts rows that were skipped and remembers the first few.
type badRows struct {
	count, limit int
	samples      []RowError
}

// BadRows returns how many rows of the file were skipped because they are
// malformed, at most Spec.MaxBadRows.
func (b *badRows) BadRows() int { return b.count }

// BadSamples returns the first few of the rows that were skipped.
func (b *badRows) BadSamples() []RowError { return b.samples }

// add notes a bad row, or returns it as an error if there are too many.
func (b *badRows) add(e *RowError) error {
	if b.count == b.limit {
		if b.limit > 0 {
			return fmt.Errorf("data: more than %d bad rows; the last: %w", b.limit, e)
		}
		return fmt.Errorf("data: %w", e)
	}
	b.count++
	if len(b.samples) < maxBadSamples {
		b.samples = append(b.samples, *e)
	}
	return nil
}

// rowParser reads one kind of line into a memory source.
type rowParser interface {
	// parse appends the row on a line. It returns a reason if the line is
	// malformed, having appended nothing, and skip if it holds no row.
	parse(line []byte) (skip bool, reason string)
	// rows is the number of rows appended.
	rows() int
}

// readLines feeds every line of r to p, until limit rows (0: all) were read.
func readLines(file string, r io.Reader, p rowParser, limit int, bad *badRows) error {
	lines := newLineReader(r)
	for limit == 0 || p.rows() < limit {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("data: %s:%d: %w", file, lines.line, err)
		}
		if skip, reason := p.parse(line); !skip && reason != "" {
			if err := bad.add(&RowError{File: file, Line: lines.line, Reason: reason}); err != nil {
				return err
			}
		}
	}
	if p.rows() == 0 {
		return fmt.Errorf("data: %s holds no rows (%d lines read, %d malformed)", file, lines.line, bad.count)
	}
	return nil
}

// quote shows a piece of bad input, cut to a readable length.
func quote(b []byte) string {
	const most = 32
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}
