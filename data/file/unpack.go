package file

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// readBytes is what is read from a file at once.
	readBytes = 128 << 10
	// windowMax is the largest window of zstd, what the zstd program itself
	// accepts unless told otherwise (zstd --ultra --long=27).
	windowMax = 128 << 20
)

// packing is one form of compression.
type packing struct {
	name string
	// found tells by the first bytes.
	found func(head []byte) bool
	open  func(r *bufio.Reader) (io.ReadCloser, error)
}

// packings lists the forms that are undone.
func packings() []packing {
	return []packing{
		{"gzip", begins("\x1f\x8b\x08"), openGzip},
		{"bzip2", func(head []byte) bool {
			return len(head) >= 10 && begins("BZh")(head) && (string(head[4:10]) == "1AY&SY" || string(head[4:10]) == "\x17rE8P\x90")
		}, openBzip2},
		{"zstd", func(head []byte) bool {
			skippable := len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
			return skippable || begins("\x28\xb5\x2f\xfd")(head)
		}, openZstd},
	}
}

func begins(magic string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// foreign names the compression that is not undone, by its first bytes.
func foreign(head []byte) string {
	for _, f := range []struct{ name, magic string }{
		{"xz", "\xfd7zXZ\x00"},
		{"lz4", "\x04\x22\x4d\x18"},
		{"7z", "7z\xbc\xaf\x27\x1c"},
		{"compress (.Z)", "\x1f\x9d"},
		{"framed snappy", "\xff\x06\x00\x00sNaPpY"},
		{"lzip", "LZIP\x01"},
	} {
		if begins(f.magic)(head) {
			return f.name
		}
	}
	return ""
}

// unpack undoes the compression of a file, which it closes if that fails.
func unpack(location string, f Random) (io.ReadCloser, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, f.Size()), readBytes)
	head, err := r.Peek(16)
	if err != nil && err != io.EOF {
		return nil, errors.Join(fmt.Errorf("%s: %w", location, err), f.Close())
	}
	for _, p := range packings() {
		if !p.found(head) {
			continue
		}
		u := &unpacked{location: location, packing: p.name, file: f}
		in, err := p.open(r)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, errors.Join(u.explain(err), f.Close())
		}
		u.r, u.u = in, in
		return u, nil
	}
	if name := foreign(head); name != "" {
		return nil, errors.Join(fmt.Errorf("%s: the file is packed by %s: unpack it, or pack it by gzip, bzip2 or zstd", location, name), f.Close())
	}
	return &unpacked{location: location, r: r, file: f}, nil
}

// unpacked reads what was packed, and says what is wrong with it.
type unpacked struct {
	location, packing string // packing is "" if there is none
	r                 io.Reader
	u                 io.Closer // nil without packing
	file              io.Closer
	n                 int64
	err               error
}

// Read implements io.Reader. An error stays.
func (u *unpacked) Read(p []byte) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.r.Read(p)
	u.n += int64(n)
	if err != nil {
		u.err = u.explain(err)
	}
	return n, u.err
}

// explain says what an error of an unpacker means.
func (u *unpacked) explain(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case u.packing == "", errors.Is(err, errStopped), errors.Is(err, errChanged):
		return fmt.Errorf("%s: %w", u.location, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the %s data ends early after %d bytes: the file was cut off, copy it again", u.location, u.packing, u.n)
	case errors.Is(err, errTrailing), trailing(u.packing, u.n, err):
		return fmt.Errorf("%s: after %d bytes the %s data ends and something else follows: the file is damaged, or two were joined", u.location, u.n, u.packing)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("%s: the zstd data wants a window of more than %d MiB: pack it again without --long=28 or above", u.location, windowMax>>20)
	}
	return fmt.Errorf("%s: the %s data is damaged after %d bytes: %w", u.location, u.packing, u.n, err)
}

// trailing reports whether a library complains of what follows a whole archive.
func trailing(packing string, n int64, err error) bool {
	switch packing {
	case "bzip2":
		return strings.Contains(err.Error(), "continuation file")
	case "zstd":
		return n > 0 && errors.Is(err, zstd.ErrMagicMismatch)
	}
	return false
}

// Close implements io.Closer. What an unpacker says then is what Read has said.
func (u *unpacked) Close() error {
	if u.u != nil {
		_ = u.u.Close()
	}
	return u.file.Close()
}

// errTrailing says that bytes follow an archive that are no archive.
var errTrailing = errors.New("trailing bytes")

// gunzip reads gzip members one after the other. The library would do so too,
// but calls bytes between them a damaged header.
type gunzip struct {
	*gzip.Reader
	in *bufio.Reader
}

func openGzip(r *bufio.Reader) (io.ReadCloser, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gunzip{z, r}, nil
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	head, err := g.in.Peek(2)
	switch {
	case len(head) == 0:
		return n, err // io.EOF, or what is wrong with the file
	case string(head) != "\x1f\x8b":
		return n, errTrailing
	}
	if err := g.Reset(g.in); err != nil {
		return n, err
	}
	g.Multistream(false)
	return n, nil
}

func openBzip2(r *bufio.Reader) (io.ReadCloser, error) {
	return io.NopCloser(bzip2.NewReader(r)), nil
}

// openZstd decodes in the calling goroutine: no other one is to be waited for.
func openZstd(r *bufio.Reader) (io.ReadCloser, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(windowMax))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}
