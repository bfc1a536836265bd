package parquetio

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/data/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is a row of the files that the tests write. Package format tests what
// is read; here is how damage is found.
type sample struct {
	ID     int64     `parquet:"id,delta"`
	Price  *float64  `parquet:"price"`
	City   string    `parquet:"city,dict"`
	Words  []string  `parquet:"words,list"`
	Vector []float32 `parquet:"vector,list"`
	Cents  int32     `parquet:"cents,decimal(2:9)"`
}

func samples() []sample {
	price := 1.5
	return []sample{
		{ID: 1, Price: &price, City: "Oslo", Words: []string{"a", "bc"}, Vector: []float32{1, .5}},
		{ID: 1 << 40, City: "Rome", Words: []string{""}, Cents: -5},
		{ID: -7, City: "Oslo", Vector: []float32{2}},
		{Price: &price, Words: []string{"abcabcabcabcabcabcabc"}},
	}
}

// codecs lists the forms of compression that are read.
func codecs() []compress.Codec {
	return []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Lz4Raw}
}

// writeParquet writes the samples in small pages and row groups of three.
func writeParquet(t testing.TB, codec compress.Codec, version int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[sample](&b, parquet.Compression(codec), parquet.DataPageVersion(version), parquet.PageBufferSize(64), parquet.MaxRowsPerRowGroup(3))
	if _, err := w.Write(samples()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// memory is a file in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// open opens all columns of a file.
func open(content []byte) (*Reader, error) {
	all := func(has []table.Field) (fields []table.Field, index []int, err error) {
		for i := range has {
			index = append(index, i)
		}
		return has, index, nil
	}
	return New(memory{bytes.NewReader(content)}, "f", Options{NaN: true, Choose: all})
}

// read reads a whole file, at most 100 blocks of it, and returns what ends it.
func read(t testing.TB, content []byte, blind bool) error {
	t.Helper()
	r, err := open(content)
	if err != nil {
		return err
	}
	r.blind = blind
	var b table.Block
	for range 100 {
		err = r.Read(&b, 64)
		if e := b.Check(r.Fields()); e != nil {
			t.Fatal(e)
		}
		if _, bad := errors.AsType[*table.RowError](err); err != nil && !bad {
			break
		}
	}
	if e := r.Close(); e != nil {
		t.Error(e)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// bodies marks the bytes of a file that are the bodies of pages.
func bodies(t *testing.T, content []byte) []bool {
	t.Helper()
	r := Reader{f: memory{bytes.NewReader(content)}}
	if err := r.footer(); err != nil {
		t.Fatal(err)
	}
	marks := make([]bool, len(content))
	for _, g := range r.meta.RowGroups {
		for _, c := range g.Columns {
			at := int(c.MetaData.DataPageOffset)
			if d := int(c.MetaData.DictionaryPageOffset); d > 0 {
				at = d
			}
			for end := at + int(c.MetaData.TotalCompressedSize); at < end; {
				size, err := thriftSize(content[at:])
				if err != nil {
					t.Fatal(err)
				}
				var h format.PageHeader
				if err := thrift.Unmarshal(&thrift.CompactProtocol{}, content[at:at+size], &h); err != nil {
					t.Fatal(err)
				}
				for i := range int(h.CompressedPageSize) {
					marks[at+size+i] = true
				}
				at += size + int(h.CompressedPageSize)
			}
		}
	}
	return marks
}

// Every bit of a page is under its checksum: turned, it is an error that names
// file, column and row group. No damage anywhere else makes a panic.
func TestParquetDamaged(t *testing.T) {
	seed := 0
	for _, codec := range codecs() {
		for version := 1; version <= 2; version++ {
			content := writeParquet(t, codec, version)
			marks := bodies(t, content)
			if err := read(t, content, false); err != nil {
				t.Fatal(err)
			}
			seed++
			for i := seed % 13; i < len(content); i += 13 { // each combination looks at others
				broken := bytes.Clone(content)
				broken[i] ^= 1 << (i % 8)
				err := read(t, broken, false)
				if err != nil && !strings.HasPrefix(err.Error(), "f: ") {
					t.Errorf("byte %d: %v", i, err)
				}
				if !marks[i] {
					continue
				}
				if err == nil || !strings.HasPrefix(err.Error(), "f: column \"") || !strings.Contains(err.Error(), ", row group ") || !strings.Contains(err.Error(), "the checksum of its bytes is") {
					t.Errorf("%s, version %d, byte %d of a page: %v", codec, version, i, err)
				}
			}
		}
	}
}

// Blocks of LZ4 unpack to what was packed, and to nothing else.
func TestPageUnpacker(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.StringMatching(`[ab]{0,20}c{0,300}`), 0, 4).Draw(rt, "text"), ""))
		codec := rapid.SampledFrom(codecs()).Draw(rt, "codec")
		packed, err := codec.Encode(nil, text)
		if err != nil {
			rt.Fatal(err)
		}
		out := make([]byte, len(text))
		var u pageUnpacker
		if err := u.unpack(out, packed, codec.CompressionCodec()); err != nil || !bytes.Equal(out, text) {
			rt.Fatalf("%s: got %q, %v", codec, out, err)
		}
		if err := u.unpack(make([]byte, len(text)+1), packed, codec.CompressionCodec()); err == nil {
			rt.Fatalf("%s: %d bytes filled %d", codec, len(text), len(text)+1)
		}
		if len(text) > 0 && len(packed) > 0 {
			if err := u.unpack(make([]byte, len(text)-1), packed, codec.CompressionCodec()); err == nil {
				rt.Fatalf("%s: %d bytes went into %d", codec, len(text), len(text)-1)
			}
		}
	})
}

// A footer that gives a column another type than its pages have is an error,
// whatever that type is: the library would read where there is nothing.
func TestTypes(t *testing.T) {
	content := writeParquet(t, &parquet.Uncompressed, 1)
	for i := range 6 {
		for kind := format.Boolean; kind <= format.FixedLenByteArray; kind++ {
			r, err := open(content)
			if err != nil {
				t.Fatal(err)
			}
			e := r.columns[i].leaf.element
			if e.Type.V == kind {
				continue
			}
			e.Type.V = kind
			var b table.Block
			if err := r.Read(&b, 4); err == nil || !strings.Contains(err.Error(), "where the schema has "+kind.String()) {
				t.Errorf("column %s as %s: %v", r.columns[i].name, kind, err)
			}
		}
	}
}

// Lists of Thrift are not believed before there are as many bytes.
func TestThriftSize(t *testing.T) {
	tests := map[string]struct {
		text string
		err  error
	}{
		"good":         {"\x15\x02\x19\x2c\x00\x00\x18\x03abc\x11\x1a\x22\x07\x07\x1b\x01\x85\x01a\x05\x00", nil},
		"short":        {"\x15", errThriftShort},
		"short text":   {"\x18\x09abc\x00", errThriftShort},
		"large list":   {"\x19\xfc\xe8\x07\x00", errThriftLarge}, // 1000 elements in a byte
		"huge list":    {"\x19\xfc\xff\xff\xff\xff\x07\x00", errThriftLarge},
		"unknown type": {"\x1e\x00", errThriftType},
		"deep":         {strings.Repeat("\x1c", 100), errThriftDeep},
	}
	for name, test := range tests {
		if n, err := thriftSize([]byte(test.text)); !errors.Is(err, test.err) || err == nil && name != "good" {
			t.Errorf("%s: got %d, %v; want %v", name, n, err, test.err)
		}
	}
}

// FuzzParquet: no input makes a panic, and memory is bounded by what there is,
// also where a page has no checksum.
func FuzzParquet(f *testing.F) {
	for i, codec := range codecs() {
		f.Add(writeParquet(f, codec, 1), i%2 == 0)
		f.Add(writeParquet(f, codec, 2), i%2 == 0)
	}
	f.Add([]byte("PAR1\x19\xfc\xff\xff\xff\xff\x07\x00\x08\x00\x00\x00PAR1"), false)
	f.Fuzz(func(t *testing.T, content []byte, blind bool) {
		err := read(t, content, blind)
		if _, bad := errors.AsType[*table.RowError](err); err != nil && !bad && !strings.HasPrefix(err.Error(), "f: ") {
			t.Errorf("an error without its file: %v", err)
		}
	})
}

// FuzzLz4: any block unpacks within its bounds.
func FuzzLz4(f *testing.F) {
	f.Add([]byte("\x15a\x01\x00\x00"), uint16(100))
	f.Add([]byte("\xf0\xff\xff"), uint16(9))
	f.Fuzz(func(t *testing.T, packed []byte, size uint16) {
		if n, err := unpackLz4(make([]byte, size), packed); n > int(size) {
			t.Errorf("%d bytes in %d: %v", n, size, err)
		}
	})
}
