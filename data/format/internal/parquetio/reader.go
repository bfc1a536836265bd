// Package parquetio reads Parquet files into blocks, for package format.
package parquetio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gangline/gangline/data/table"
)

// Reader is a table.Reader of a Parquet file. Fields of groups are columns
// named group.field. Columns of one value:
//
//	boolean, integer, date, time, timestamp   integer, in the unit of the file
//	timestamp of 96 bits                      integer: microseconds since 1970
//	float, double, decimal                    number
//	string, enum, json, bytes, uuid           text
//
// Lists of numbers are numbers, lists of text are texts; lists of integers are
// entries if so declared. A null is a missing value; in a list it is NaN, or the
// empty text. Maps are two lists, of keys and of values.
//
// The library decodes; sizes, checksums and compression are looked after here,
// see pages. What it still panics about becomes an error.
type Reader struct {
	location string
	f        Random
	meta     *format.FileMetaData
	chunks   *parquet.File // the same file as the library sees it
	columns  []*column
	fields   []table.Field
	nan      bool // NaN is a missing value
	unpack   pageUnpacker
	blind    bool  // checksums are not verified, for tests of what comes after
	group    int   // of the rows that are read now, from 1
	left     int64 // rows in it
	at       int   // rows read
	err      error
}

// footerMax is the largest footer of a file, in bytes.
const footerMax = 64 << 20

// Random is a file that is read at any place.
type Random interface {
	io.ReaderAt
	io.Closer
	// Size is the number of bytes.
	Size() int64
}

// Options say what to read of a file.
type Options struct {
	// Kinds declares kinds of columns by name: integers may be numbers, lists of
	// integers entries; all others have to agree with the file.
	Kinds map[string]table.Kind
	// NaN says that NaN is a missing value; otherwise it is an error of the row.
	NaN bool
	// Choose picks columns of those that a file has, and tells the index of each.
	Choose func(has []table.Field) (fields []table.Field, index []int, err error)
}

// New begins to read a file, which Close closes; the caller does if there is an
// error.
func New(f Random, location string, options Options) (r *Reader, err error) {
	r = &Reader{location: location, f: f, nan: options.NaN}
	defer func() {
		if e := recover(); e != nil {
			r, err = nil, fmt.Errorf("%s: the footer is damaged: %v", location, e)
		}
	}()
	if err := r.footer(); err != nil {
		return nil, fmt.Errorf("%s: %w", location, err)
	}
	leaves, err := leavesOf(r.meta.Schema)
	if err != nil {
		return nil, fmt.Errorf("%s: the footer is damaged: %w", location, err)
	}
	has := make([]table.Field, len(leaves))
	for i := range leaves {
		has[i] = leaves[i].field()
		kind, ok := options.Kinds[has[i].Name]
		if !ok {
			continue
		}
		if err := leaves[i].declare(&has[i], kind); err != nil {
			return nil, fmt.Errorf("%s: %w", location, err)
		}
	}
	fields, index, err := options.Choose(has)
	if err != nil {
		return nil, err
	}
	r.fields = fields
	for k, i := range index {
		if leaves[i].unusable != "" {
			return nil, fmt.Errorf("%s: column %q: %s; select the columns to read", location, leaves[i].name, leaves[i].unusable)
		}
		r.columns = append(r.columns, &column{leaf: leaves[i], kind: fields[k].Kind, index: i, nan: r.nan})
	}
	if err := r.share(len(leaves)); err != nil {
		return nil, err
	}
	return r, nil
}

// footer reads the description of the file at its end.
func (r *Reader) footer() error {
	size := r.f.Size()
	var tail [8]byte
	if size < 12 {
		return fmt.Errorf("no parquet file: it has only %d bytes", size)
	}
	if _, err := r.f.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	switch string(tail[4:]) {
	case "PAR1":
	case "PARE":
		return errors.New("the file is encrypted")
	default:
		return fmt.Errorf("no parquet file, or one that was cut off: it ends in %q, want \"PAR1\"", tail[4:])
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 || n > footerMax {
		return fmt.Errorf("the footer is damaged: it is said to have %d bytes of the file's %d, the limit is %d", n, size, footerMax)
	}
	text := make([]byte, n)
	if _, err := r.f.ReadAt(text, size-8-n); err != nil {
		return err
	}
	length, err := thriftSize(text)
	if err != nil {
		return fmt.Errorf("the footer is damaged: %w", err)
	}
	r.meta = new(format.FileMetaData)
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, text[:length], r.meta); err != nil {
		return fmt.Errorf("the footer is damaged: %w", err)
	}
	return nil
}

// share gives the library a file that has the footer alone, in which chunks are
// not compressed and have no end: their pages come from elsewhere.
func (r *Reader) share(leaves int) error {
	bare := *r.meta
	bare.RowGroups = slices.Clone(r.meta.RowGroups)
	for i := range bare.RowGroups {
		g := &bare.RowGroups[i]
		if len(g.Columns) != leaves {
			return fmt.Errorf("%s: the footer is damaged: row group %d has %d columns, the schema %d", r.location, i+1, len(g.Columns), leaves)
		}
		g.Columns = slices.Clone(g.Columns)
		for j := range g.Columns {
			c := &g.Columns[j]
			if c.FilePath != "" {
				return fmt.Errorf("%s: row group %d: a column is in another file, %q: read that one", r.location, i+1, c.FilePath)
			}
			c.MetaData.Codec = format.Uncompressed
			c.MetaData.DataPageOffset, c.MetaData.DictionaryPageOffset = 0, 0
			c.MetaData.TotalCompressedSize = math.MaxInt64
			c.MetaData.Statistics = format.Statistics{}
		}
	}
	text, err := thrift.Marshal(&thrift.CompactProtocol{}, &bare)
	if err != nil {
		return fmt.Errorf("%s: %w", r.location, err)
	}
	all := append([]byte("PAR1"), text...)
	all = binary.LittleEndian.AppendUint32(all, uint32(len(text)))
	all = append(all, "PAR1"...)
	r.chunks, err = parquet.OpenFile(readerAt(all), int64(len(all)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("%s: the footer is damaged: %w", r.location, err)
	}
	return nil
}

// readerAt reads bytes in memory.
type readerAt []byte

// ReadAt implements io.ReaderAt.
func (b readerAt) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 || offset >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Fields implements table.Reader.
func (r *Reader) Fields() []table.Field { return r.fields }

// Close implements table.Reader.
func (r *Reader) Close() error {
	for _, c := range r.columns {
		c.release()
	}
	return r.f.Close()
}

// Read implements table.Reader.
func (r *Reader) Read(b *table.Block, n int) error {
	b.Reset(r.fields, r.location)
	defer b.Finish(r.fields)
	b.First = r.at + 1
	for r.err == nil && b.Rows < n {
		if r.left == 0 {
			r.err = r.nextGroup()
			continue
		}
		bad := r.row(b)
		if r.err != nil {
			b.Cut(r.fields, b.Rows)
			break
		}
		r.left--
		r.at++
		if bad != nil {
			b.Cut(r.fields, b.Rows)
			bad.Line = r.at
			return bad
		}
		b.Rows++
	}
	return r.err
}

// row appends a row. Every column steps on, also after one in error.
func (r *Reader) row(b *table.Block) (bad *table.RowError) {
	for i, c := range r.columns {
		reason, err := c.row(&b.Columns[i], b.Rows)
		if err != nil {
			r.err = r.damaged(c, err)
			return nil
		}
		if reason != "" && bad == nil {
			bad = &table.RowError{File: r.location, Column: c.name, Reason: reason}
		}
	}
	return bad
}

func (r *Reader) damaged(c *column, err error) error {
	return fmt.Errorf("%s: column %q, row group %d: %w", r.location, c.name, r.group, err)
}

// nextGroup goes to the next row group; io.EOF after the last.
func (r *Reader) nextGroup() error {
	if r.group > 0 {
		for _, c := range r.columns {
			if err := c.end(); err != nil {
				return r.damaged(c, err)
			}
		}
	}
	if r.group == len(r.meta.RowGroups) {
		return io.EOF
	}
	g := &r.meta.RowGroups[r.group]
	r.left = g.NumRows
	r.group++
	if r.left < 0 {
		return fmt.Errorf("%s: row group %d is said to have %d rows", r.location, r.group, r.left)
	}
	for _, c := range r.columns {
		if err := c.begin(r, &g.Columns[c.index].MetaData); err != nil {
			return r.damaged(c, err)
		}
	}
	return nil
}
