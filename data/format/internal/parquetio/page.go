package parquetio

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// pageMax is the largest page, in bytes, packed or unpacked.
	pageMax = 256 << 20
	// pageValuesMax is the largest number of values of a page.
	pageValuesMax = 16 << 20
	// pageHeaderMax is the longest header of a page.
	pageHeaderMax = 64 << 10
)

// pages reads the pages of a column chunk and hands them to the library as a
// chunk without compression: sizes compared with their limits, checksums
// verified, compression undone. The library trusts all of that.
type pages struct {
	in     *bufio.Reader // the rest of the chunk
	left   int64         // bytes in it
	codec  format.CompressionCodec
	values int64              // that the data pages before had
	want   int64              // values of the chunk
	page   int                // number of the page, from 1
	last   *format.PageHeader // of the page that was handed out last
	unpack *pageUnpacker
	blind  bool // checksums are not verified, for tests of what comes after
	out    []byte
	at     int64 // offset of out, as the library counts
	err    error
}

// newPages begins to read a chunk. in is a buffer to use, nil for a new one.
func newPages(f Random, chunk *format.ColumnMetaData, u *pageUnpacker, in *bufio.Reader) (*pages, error) {
	size := f.Size()
	start := chunk.DataPageOffset
	if d := chunk.DictionaryPageOffset; d > 0 && d < start {
		start = d
	}
	if start < 4 || chunk.TotalCompressedSize < 0 || start > size || chunk.TotalCompressedSize > size-start {
		return nil, fmt.Errorf("the chunk is said to be %d bytes from byte %d on, the file has %d", chunk.TotalCompressedSize, start, size)
	}
	section := io.NewSectionReader(f, start, chunk.TotalCompressedSize)
	if need := int(min(pageHeaderMax, chunk.TotalCompressedSize)); in == nil || in.Size() < need {
		in = bufio.NewReaderSize(section, need)
	}
	in.Reset(section)
	return &pages{in: in, left: chunk.TotalCompressedSize, codec: chunk.Codec, want: chunk.NumValues, unpack: u}, nil
}

// ReadAt implements io.ReaderAt for a reader that only goes forward.
func (p *pages) ReadAt(b []byte, offset int64) (int, error) {
	if offset != p.at {
		return 0, errors.New("pages refer to a dictionary that is not there")
	}
	for len(p.out) == 0 && p.err == nil {
		p.out, p.err = p.next()
	}
	if len(p.out) == 0 {
		return 0, p.err
	}
	n := copy(b, p.out)
	p.out = p.out[n:]
	p.at += int64(n)
	return n, nil
}

// next returns the next page with a header that says what it is now.
func (p *pages) next() ([]byte, error) {
	if p.values == p.want {
		return nil, io.EOF
	}
	p.page++
	header, err := p.header()
	if err == nil {
		err = p.check(header)
	}
	if err != nil {
		return nil, fmt.Errorf("page %d: %w", p.page, err)
	}
	body := make([]byte, header.CompressedPageSize)
	if _, err := io.ReadFull(p.in, body); err != nil {
		return nil, fmt.Errorf("page %d: %w", p.page, err)
	}
	p.left -= int64(len(body))
	if sum := crc32.ChecksumIEEE(body); header.CRC != 0 && sum != uint32(header.CRC) && !p.blind {
		return nil, fmt.Errorf("page %d: the checksum of its bytes is %08x, the header says %08x: the file is damaged, copy it again", p.page, sum, uint32(header.CRC))
	}
	if header.Type == format.IndexPage {
		return nil, nil
	}
	if body, err = p.open(header, body); err != nil {
		return nil, fmt.Errorf("page %d: %w", p.page, err)
	}
	header.CRC = 0
	p.last = header
	header.CompressedPageSize = int32(len(body))
	head, err := thrift.Marshal(&thrift.CompactProtocol{}, header)
	return append(head, body...), err
}

// header reads the header of a page.
func (p *pages) header() (*format.PageHeader, error) {
	if p.left <= 0 {
		return nil, fmt.Errorf("there is none: the chunk has %d values, its pages have %d", p.want, p.values)
	}
	head, err := p.in.Peek(int(min(pageHeaderMax, p.left)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	size, err := thriftSize(head)
	if err != nil {
		return nil, fmt.Errorf("its header is damaged: %w", err)
	}
	header := new(format.PageHeader)
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, head[:size], header); err != nil {
		return nil, fmt.Errorf("its header is damaged: %w", err)
	}
	_, err = p.in.Discard(size)
	p.left -= int64(size)
	return header, err
}

// check compares what a header says with the limits.
func (p *pages) check(h *format.PageHeader) error {
	if h.CompressedPageSize < 0 || int64(h.CompressedPageSize) > p.left || h.CompressedPageSize > pageMax {
		return fmt.Errorf("it is said to have %d bytes; %d are left in the chunk and the limit is %d", h.CompressedPageSize, p.left, pageMax)
	}
	if h.UncompressedPageSize < 0 || h.UncompressedPageSize > pageMax {
		return fmt.Errorf("it is said to unpack to %d bytes, the limit is %d: write smaller pages", h.UncompressedPageSize, pageMax)
	}
	if int64(h.UncompressedPageSize) > int64(h.CompressedPageSize)*expansionMax(p.codec) {
		return fmt.Errorf("its %d bytes are said to unpack to %d, more than %s can", h.CompressedPageSize, h.UncompressedPageSize, p.codec)
	}
	values, data := int32(0), true
	switch {
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		values = h.DataPageHeader.V.NumValues
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		v := &h.DataPageHeaderV2.V
		values = v.NumValues
		if v.NumNulls < 0 || v.NumNulls > values || v.NumRows < 0 || v.NumRows > values {
			return fmt.Errorf("it is said to have %d nulls and %d rows in %d values", v.NumNulls, v.NumRows, values)
		}
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		values, data = h.DictionaryPageHeader.V.NumValues, false
	case h.Type == format.IndexPage:
		return nil
	default:
		return fmt.Errorf("its type %d is not known, or its header has no part for it", h.Type)
	}
	if !data && values > h.UncompressedPageSize {
		return fmt.Errorf("it is said to be a dictionary of %d values in %d bytes", values, h.UncompressedPageSize)
	}
	if values < 0 || values > pageValuesMax {
		return fmt.Errorf("it is said to have %d values, the limit is %d: write smaller pages", values, pageValuesMax)
	}
	if data {
		if p.values += int64(values); p.values > p.want {
			return fmt.Errorf("the pages have more values than the %d of the chunk", p.want)
		}
	}
	return nil
}

// open undoes the compression of a page. In data pages of version 2 the levels
// come first and are not packed.
func (p *pages) open(h *format.PageHeader, body []byte) ([]byte, error) {
	levels := 0
	codec := p.codec
	if h.Type == format.DataPageV2 {
		v := &h.DataPageHeaderV2.V
		if v.RepetitionLevelsByteLength < 0 || v.DefinitionLevelsByteLength < 0 {
			return nil, errors.New("the length of its levels is negative")
		}
		levels = int(v.RepetitionLevelsByteLength) + int(v.DefinitionLevelsByteLength)
		if levels > len(body) || levels > int(h.UncompressedPageSize) {
			return nil, fmt.Errorf("its levels are said to have %d bytes of %d", levels, len(body))
		}
		if v.IsCompressed.Valid && !v.IsCompressed.V {
			codec = format.Uncompressed
		}
	}
	out := make([]byte, h.UncompressedPageSize)
	copy(out, body[:levels])
	if levels == len(out) && levels == len(body) {
		return out, nil
	}
	return out, p.unpack.unpack(out[levels:], body[levels:], codec)
}

// agrees demands that a page which the library made of the last header has what
// that says, and refers to what is in its dictionary.
func (p *pages) agrees(page parquet.Page) error {
	if v1 := p.last.DataPageHeader; v1.Valid && page.NumValues() != int64(v1.V.NumValues) {
		return fmt.Errorf("page %d has %d values, its header says %d", p.page, page.NumValues(), v1.V.NumValues)
	}
	if v2 := p.last.DataPageHeaderV2; v2.Valid {
		rows, values, nulls := int64(v2.V.NumRows), int64(v2.V.NumValues), int64(v2.V.NumNulls)
		if page.NumRows() != rows || page.NumValues() != values || page.NumNulls() != nulls {
			return fmt.Errorf("page %d has %d rows, %d values and %d nulls, its header says %d, %d and %d",
				p.page, page.NumRows(), page.NumValues(), page.NumNulls(), rows, values, nulls)
		}
	}
	d := page.Dictionary()
	if d == nil {
		return nil
	}
	size := d.Len()
	data := page.Data()
	for _, i := range data.Int32() {
		if i < 0 || int(i) >= size {
			return fmt.Errorf("page %d: a value refers to entry %d of a dictionary of %d", p.page, i, size)
		}
	}
	return nil
}
