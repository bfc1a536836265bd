// Package cache is the binary form of prepared rows: a file of blocks of rows by
// column, which loads at the speed of memory and is read at any block.
//
// docs/format/cache.md says what stands where. A file appears whole or not at all;
// what is truncated, damaged or no cache is an error that wraps ErrFile and says so.
package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"

	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/table"
)

// Version is that of the format: a reader takes no other.
const Version = 1

// The fixed parts of a file.
const (
	magic     = "GLROWS\r\n" // a transfer that changes line ends is found at once
	endMagic  = "\nGLROWS1"
	footBytes = 8 + 4 + 4 + len(endMagic) // length and CRC of the header, zero, magic
)

// Limits of reading. Files beyond them are refused before memory is taken.
const (
	headerMax = 256 << 20
	// BlockMax is the most bytes of a block, in the file and in memory.
	BlockMax   = 1 << 30
	columnsMax = 1 << 16
)

// ErrFile is wrapped by the errors of files that are not, or no longer, what Create
// wrote: made again, they are right.
var ErrFile = errors.New("not a usable cache file")

// Header is what a file says of itself. It stands at the end, in JSON.
type Header struct {
	Version int               `json:"version"`
	Columns []rows.ColumnSpec `json:"columns"`
	Rows    int               `json:"rows"`
	// Shift says that every block but the last has 2^Shift rows.
	Shift uint `json:"shift"`
	// Memory is what all blocks take in memory.
	Memory int64 `json:"memory"`
	// Source tells what the rows came from: the file is of use for nothing else.
	Source string `json:"source"`
	// BadRows were skipped, of which Samples are the first few.
	BadRows int              `json:"bad_rows"`
	Samples []table.RowError `json:"samples,omitempty"`
	// Features is the document of the fitted features that made the rows, for rows of
	// other files; empty: none did, or the file is of no use without what it came from.
	Features json.RawMessage `json:"features,omitempty"`
	Blocks   []Entry         `json:"blocks"`
}

// Entry says where a block is: [offset, bytes, CRC32C] in the JSON.
type Entry struct {
	Offset, Bytes int64
	CRC           uint32
}

// MarshalJSON writes an array of three numbers.
func (e Entry) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]int64{e.Offset, e.Bytes, int64(e.CRC)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var v [3]int64
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	if v[2] < 0 || v[2] > math.MaxUint32 {
		return fmt.Errorf("%d is no CRC32C", v[2])
	}
	*e = Entry{v[0], v[1], uint32(v[2])}
	return nil
}

// checksum is the CRC32C of b.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// File is a cache that is open. It is safe for concurrent use.
type File struct {
	Header
	path string
	f    *os.File
}

// Open reads the header of a file and proves that all blocks it names are there.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	c := &File{path: path, f: f}
	if err := c.readHeader(); err != nil {
		return nil, errors.Join(fmt.Errorf("data: cache %s: %w", path, err), f.Close())
	}
	return c, nil
}

// bad is an error of the content of a file.
func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFile, fmt.Sprintf(format, args...))
}

func (c *File) readHeader() error {
	info, err := c.f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	head, foot := make([]byte, len(magic)), make([]byte, footBytes)
	if size < int64(len(magic)+footBytes) {
		return bad("it has %d bytes, fewer than an empty cache", size)
	}
	if _, err := c.f.ReadAt(head, 0); err != nil {
		return err
	}
	if string(head) != magic {
		return bad("it begins with %q, a cache with %q: it is another kind of file, or was changed on its way", head, magic)
	}
	if _, err := c.f.ReadAt(foot, size-int64(footBytes)); err != nil {
		return err
	}
	if string(foot[16:]) != endMagic {
		return bad("it ends with %q, a cache with %q: it is cut off", foot[16:], endMagic)
	}
	n := binary.LittleEndian.Uint64(foot)
	room := size - int64(len(magic)+footBytes)
	if n > headerMax || int64(n) > room {
		return bad("its header claims %d bytes: it is damaged", n)
	}
	text := make([]byte, n)
	end := size - int64(footBytes) - int64(n)
	if _, err := c.f.ReadAt(text, end); err != nil {
		return err
	}
	if got, want := checksum(text), binary.LittleEndian.Uint32(foot[8:]); got != want {
		return bad("its header is damaged: CRC32C %08x, stored %08x", got, want)
	}
	if err := json.Unmarshal(text, &c.Header); err != nil {
		return bad("its header is damaged: %v", err)
	}
	return c.check(end)
}

// check tells whether a header fits blocks that end at end.
func (h *Header) check(end int64) error {
	if h.Version != Version {
		return bad("it has version %d, this program reads %d", h.Version, Version)
	}
	if len(h.Columns) == 0 || len(h.Columns) > columnsMax || h.Rows < 1 || h.Shift > 30 || h.Memory < 0 || h.BadRows < 0 {
		return bad("its header makes no sense: %d columns, %d rows, shift %d", len(h.Columns), h.Rows, h.Shift)
	}
	for i := range h.Columns {
		if err := checkColumn(&h.Columns[i]); err != nil {
			return err
		}
	}
	if want := (h.Rows-1)>>h.Shift + 1; len(h.Blocks) != want {
		return bad("its header names %d blocks for %d rows, want %d", len(h.Blocks), h.Rows, want)
	}
	at := int64(len(magic))
	for i, e := range h.Blocks {
		if e.Offset != at || e.Bytes < 0 || e.Bytes > BlockMax || e.Bytes > end-at {
			return bad("its header says that block %d is at %d with %d bytes, want %d to %d", i, e.Offset, e.Bytes, at, end)
		}
		at += e.Bytes
	}
	if at != end {
		return bad("%d bytes stand between its blocks and its header", end-at)
	}
	return nil
}

func checkColumn(c *rows.ColumnSpec) error {
	switch {
	case c.Kind != rows.DenseColumn && c.Kind != rows.RaggedColumn:
		return bad("column %q is of the kind %q", c.Name, c.Kind)
	case c.Dim < 1 || c.Dim > rows.MaxID || c.PerRow < 0 || c.PerRow > rows.MaxID:
		return bad("column %q has dim %d and %d entries a row", c.Name, c.Dim, c.PerRow)
	}
	return nil
}

// rowsOf is the number of rows of a block.
func (h *Header) rowsOf(i int) int { return min(1<<h.Shift, h.Rows-i<<h.Shift) }

// Block reads block i. buf is room for its bytes that is used again. Cost: one read,
// a checksum and a copy.
func (c *File) Block(i int, buf *[]byte) (*rows.Block, error) {
	b := new(rows.Block)
	return b, c.read(i, buf, b)
}

// read is Block into the memory of a block that nobody uses.
func (c *File) read(i int, buf *[]byte, into *rows.Block) error {
	e := c.Blocks[i]
	*buf = rows.Resize(*buf, int(e.Bytes))
	_, err := c.f.ReadAt(*buf, e.Offset)
	switch {
	case errors.Is(err, io.EOF):
		err = bad("it was cut off since it was opened")
	case err != nil:
	case checksum(*buf) != e.CRC:
		err = bad("it is damaged: CRC32C %08x, stored %08x; delete the file, it is made again", checksum(*buf), e.CRC)
	default:
		err = decode(*buf, c.Columns, c.rowsOf(i), into)
	}
	if err != nil {
		return fmt.Errorf("data: cache %s: block %d: %w", c.path, i, err)
	}
	return nil
}

// Path is the name that the file was opened with.
func (c *File) Path() string { return c.path }

// Close closes the file.
func (c *File) Close() error { return c.f.Close() }
