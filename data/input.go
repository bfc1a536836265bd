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
	// maxBadSamples is the number of bad rows that a source remembers.
	maxBadSamples = 5
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
