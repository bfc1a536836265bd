package format

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/data/table"
)

const (
	// lineMax is the longest line of a text file, and the longest row of a CSV
	// file, in bytes.
	lineMax = 16 << 20
	// readBytes is what is asked of a file at once.
	readBytes = 256 << 10
	// firstRows is the number of rows that are read ahead where something is to be
	// inferred, within firstBytes.
	firstRows  = 1000
	firstBytes = 1 << 20
)

// lines cuts a text file into lines without copying them.
type lines struct {
	location   string
	r          io.Reader
	closer     io.Closer
	chunk      int // bytes asked for at once
	buf        []byte
	start, end int  // buf[start:end] was read but not given out
	eof        bool // nothing follows buf[:end]
	line       int  // number of the line at start, from 1
}

// openLines opens a text file in the encoding of the spec. A byte order mark is
// left out.
func openLines(ctx context.Context, spec *Spec, location string) (*lines, error) {
	f, err := file.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	var r io.Reader = f
	if strings.EqualFold(spec.Encoding, "latin1") {
		r = &latin1{r: f}
	}
	l := newLines(location, r, f)
	if err := l.mark(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return l, nil
}

func newLines(location string, r io.Reader, closer io.Closer) *lines {
	return &lines{location: location, r: r, closer: closer, chunk: readBytes, line: 1}
}

// Close releases the file.
func (l *lines) Close() error { return l.closer.Close() }

// mark looks for a byte order mark: it skips that of UTF-8 and refuses others,
// and with them what is no text at all.
func (l *lines) mark() error {
	for l.end < 4 && !l.eof {
		if err := l.fill(); err != nil {
			return err
		}
	}
	head := l.buf[:l.end]
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		l.start = 3
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return fmt.Errorf("%s: the file is UTF-16: convert it to UTF-8 (iconv -f utf-16 -t utf-8)", l.location)
	case bytes.IndexByte(head[:min(len(head), 1024)], 0) >= 0:
		return fmt.Errorf("%s: the file is binary, want text%s", l.location, binaryHint(head))
	}
	return nil
}

// binaryHint names the binary formats that are known.
func binaryHint(head []byte) string {
	for magic, name := range map[string]string{"PAR1": "parquet", "\x93NUMPY": "npy", "PK\x03\x04": "npz"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return fmt.Sprintf(": it looks like %s, so say format: %s", name, name)
		}
	}
	return ""
}

// peek returns what stands before the first newline at or after byte from of
// what was not given out, and how many bytes that is with the newline. At the
// end of the file it returns the rest, which may be empty, and whole is false.
// The bytes are valid until the next call.
func (l *lines) peek(from int) (text []byte, size int, whole bool, err error) {
	for {
		if i := bytes.IndexByte(l.buf[l.start+from:l.end], '\n'); i >= 0 {
			n := from + i
			return l.buf[l.start : l.start+n], n + 1, true, nil
		}
		from = l.end - l.start
		if l.eof {
			return l.buf[l.start:l.end], from, false, nil
		}
		if from >= lineMax {
			return nil, 0, false, fmt.Errorf("%s:%d: the line is longer than %d bytes: is this a text file?", l.location, l.line, lineMax)
		}
		if err := l.fill(); err != nil {
			return nil, 0, false, err
		}
	}
}

// take gives out so many bytes, which hold so many newlines.
func (l *lines) take(size, newlines int) {
	l.start += size
	l.line += newlines
}

// next returns the next line without its end and its number, or io.EOF.
func (l *lines) next() ([]byte, int, error) {
	text, size, whole, err := l.peek(0)
	if err != nil {
		return nil, l.line, err
	}
	if size == 0 {
		return nil, l.line, io.EOF
	}
	line := l.line
	l.take(size, 1)
	if !whole {
		l.line = line
	}
	return trimReturn(text), line, nil
}

// fill reads at least one byte more, or notes the end.
func (l *lines) fill() error {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.end -= l.start
		l.start = 0
	}
	if len(l.buf)-l.end < l.chunk {
		l.buf = append(l.buf, make([]byte, max(len(l.buf), l.chunk))...)
	}
	const patience = 100 // empty reads in a row, as bufio has it
	for range patience {
		n, err := l.r.Read(l.buf[l.end : l.end+l.chunk])
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
	return fmt.Errorf("%s: %w", l.location, io.ErrNoProgress)
}

// latin1 turns ISO 8859-1 into UTF-8.
type latin1 struct {
	r   io.Reader
	buf [4096]byte
}

// Read implements io.Reader.
func (l *latin1) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	got, err := l.r.Read(l.buf[:min(len(l.buf), len(p)/2)])
	n := 0
	for _, c := range l.buf[:got] {
		if c < utf8.RuneSelf {
			p[n] = c
			n++
			continue
		}
		n += utf8.EncodeRune(p[n:], rune(c))
	}
	return n, err
}

// notUTF8 returns what is wrong with a text that is no valid UTF-8.
func notUTF8(text []byte) (at int, reason string) {
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		at += size
	}
	c := text[at]
	reason = fmt.Sprintf("byte %d of the line is 0x%02X, which is not UTF-8", at-bytes.LastIndexByte(text[:at], '\n'), c)
	if c >= 0xa0 {
		return at, reason + fmt.Sprintf("; it looks like Latin-1 (%q): convert the file, or say encoding: latin1", rune(c))
	}
	return at, reason + ": convert the file to UTF-8 (it may be Windows-1252: iconv -f cp1252 -t utf-8)"
}

func trimReturn(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// rowError makes the error of a row.
func (l *lines) rowError(line int, column, reason string) *table.RowError {
	return &table.RowError{File: l.location, Line: line, Column: column, Reason: reason}
}
