package parquetio

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// pageUnpacker undoes the compression of pages. It keeps what is costly to make.
type pageUnpacker struct {
	gzip *gzip.Reader
	zstd *zstd.Decoder
}

// unpack fills out with what in holds. What the compressed data claim of
// themselves is never believed: no more than len(out) bytes are written, and
// fewer are an error.
func (u *pageUnpacker) unpack(out, in []byte, codec format.CompressionCodec) error {
	n, err := 0, error(nil)
	switch codec { //nolint:exhaustive // the others are refused below
	case format.Uncompressed:
		n = len(in)
		copy(out, in)
	case format.Snappy:
		n, err = unpackSnappy(out, in)
	case format.Gzip:
		n, err = u.unpackGzip(out, in)
	case format.Zstd:
		n, err = u.unpackZstd(out, in)
	case format.Lz4Raw:
		n, err = unpackLz4(out, in)
	default:
		return fmt.Errorf("compression %s is not read: write it with snappy, zstd, gzip or lz4_raw", codec)
	}
	if err == nil && n != len(out) {
		err = fmt.Errorf("it unpacks to %d bytes", n)
	}
	if err != nil {
		return fmt.Errorf("the %s data are damaged (%d bytes for %d): %w", codec, len(in), len(out), err)
	}
	return nil
}

// expansionMax is the most bytes that a byte can unpack to: what goes beyond is
// not true. Snappy copies up to 64 bytes for 3, a length of LZ4 grows by 255 a
// byte, Deflate copies 258 for 2 bits, and a block of zstd repeats a byte 2^17
// times for 4.
func expansionMax(codec format.CompressionCodec) int64 {
	switch codec { //nolint:exhaustive // the others are not read
	case format.Uncompressed:
		return 1
	case format.Snappy:
		return 22
	case format.Lz4Raw:
		return 256
	case format.Gzip:
		return 1032
	}
	return 1 << 15
}

func unpackSnappy(out, in []byte) (int, error) {
	n, err := snappy.DecodedLen(in)
	if err != nil || n != len(out) {
		return n, err
	}
	_, err = snappy.Decode(out, in)
	return n, err
}

func (u *pageUnpacker) unpackGzip(out, in []byte) (n int, err error) {
	if u.gzip == nil {
		u.gzip = new(gzip.Reader)
	}
	if err := u.gzip.Reset(bytes.NewReader(in)); err != nil {
		return 0, err
	}
	if n, err = io.ReadFull(u.gzip, out); err != nil {
		return n, err
	}
	var more [1]byte
	k, err := io.ReadFull(u.gzip, more[:])
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n + k, err
}

func (u *pageUnpacker) unpackZstd(out, in []byte) (n int, err error) {
	if u.zstd == nil {
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(pageMax))
		if err != nil {
			return 0, err
		}
	}
	got, err := u.zstd.DecodeAll(in, out[:0:len(out)])
	return len(got), err
}

var errLz4 = errors.New("a match or a literal is out of bounds")

// unpackLz4 reads the block format of LZ4 (lz4_Block_format.md, version 1.6): a
// sequence is a token with two lengths, literals, and a match behind.
func unpackLz4(out, in []byte) (int, error) {
	n := 0
	for len(in) > 0 {
		token := in[0]
		literals, rest, ok := lz4Length(int(token>>4), in[1:])
		if !ok || literals > len(rest) || literals > len(out)-n {
			return n, errLz4
		}
		n += copy(out[n:], rest[:literals])
		if in = rest[literals:]; len(in) == 0 {
			return n, nil // the last sequence has no match
		}
		if len(in) < 2 {
			return n, errLz4
		}
		offset := int(in[0]) | int(in[1])<<8
		length, rest, ok := lz4Length(int(token&15), in[2:])
		length += 4
		if !ok || offset == 0 || offset > n || length > len(out)-n {
			return n, errLz4
		}
		for range length { // the match may reach into itself
			out[n] = out[n-offset]
			n++
		}
		in = rest
	}
	return n, errLz4
}

// lz4Length adds the bytes that follow a length of 15.
func lz4Length(length int, in []byte) (int, []byte, bool) {
	if length < 15 {
		return length, in, true
	}
	for i, c := range in {
		length += int(c)
		if c < 255 {
			return length, in[i+1:], true
		}
	}
	return 0, nil, false
}
