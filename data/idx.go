package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/gangline/gangline/data/rows"
)

// The idx format (LeCun, Cortes and Burges, MNIST): big-endian
//
//	0 0 type dims | size of each dim, 4 bytes each | elements, last dim fastest
//
// of which type 8, unsigned bytes, is read.
const (
	idxBytes = 8
	// maxDims bounds the dims of an idx file.
	maxDims = 8
	// readStep is the memory that a header is trusted with.
	readStep = 1 << 20
)

// readIdx reads images and their labels. Bytes are kept and scaled when read.
func readIdx(spec *Spec) (*memory, error) {
	var images, labels idxFile
	for _, in := range []struct {
		path string
		into *idxFile
	}{{spec.Path, &images}, {spec.Labels, &labels}} {
		r, err := openStream(in.path)
		if err != nil {
			return nil, fmt.Errorf("data: idx: %w", err)
		}
		*in.into, err = readIdxFile(in.path, r, spec.Limit)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
	}
	return joinIdx(spec, images, labels)
}

// joinIdx makes a source of images and labels that belong together.
func joinIdx(spec *Spec, images, labels idxFile) (*memory, error) {
	switch {
	case labels.dim != 1:
		return nil, fmt.Errorf("data: %s is no file of labels: it has %d bytes a record, want 1", spec.Labels, labels.dim)
	case images.count != labels.count:
		return nil, fmt.Errorf("data: %s has %d records but %s has %d: they do not belong together",
			spec.Path, images.count, spec.Labels, labels.count)
	case images.count == 0 || images.dim == 0:
		return nil, fmt.Errorf("data: %s holds nothing: %d records of %d bytes", spec.Path, images.count, images.dim)
	}
	scaled, whole := new([256]float32), new([256]float32)
	for b := range 256 {
		scaled[b] = float32(b) / 255
		whole[b] = float32(b)
	}
	b := rows.Block{Rows: images.rows, Columns: []rows.Packed{
		{Bytes: labels.bytes, Table: whole}, {Bytes: images.bytes, Table: scaled},
	}}
	return newMemory(&b, badRows{},
		ColumnSpec{Name: "label", Kind: DenseColumn, Dim: 1}, ColumnSpec{Name: "x", Kind: DenseColumn, Dim: images.dim}), nil
}

// idxFile is an idx file of bytes: count records of dim bytes, of which the
// first rows are in memory.
type idxFile struct {
	count, dim, rows int
	bytes            []uint8
}

// readIdxFile reads a file to its end, of which it keeps the first limit
// records (0: all). Memory grows with what is there, not with what the header
// claims.
func readIdxFile(file string, r io.Reader, limit int) (idxFile, error) {
	f, err := readIdxHeader(r)
	if err != nil {
		return f, fmt.Errorf("data: %s: %w", file, err)
	}
	f.rows = f.count
	if limit > 0 {
		f.rows = min(limit, f.count)
	}
	keep := int64(f.rows) * int64(f.dim)
	if f.bytes, err = readUpTo(r, keep); err != nil {
		return f, fmt.Errorf("data: %s: %w", file, err)
	}
	got := int64(len(f.bytes))
	if got < keep {
		return f, fmt.Errorf("data: %w", &RowError{
			File: file, Line: int(got/int64(f.dim)) + 1,
			Reason: fmt.Sprintf("the file is cut off: %d records of %d bytes promised, %d bytes found", f.count, f.dim, got),
		})
	}
	if f.rows < f.count {
		return f, nil
	}
	if extra, err := io.CopyN(io.Discard, r, 1); !errors.Is(err, io.EOF) {
		if err != nil {
			return f, fmt.Errorf("data: %s: %w", file, err)
		}
		return f, fmt.Errorf("data: %s: at least %d byte beyond the %d records of %d bytes promised",
			file, extra, f.count, f.dim)
	}
	return f, nil
}

func readIdxHeader(r io.Reader) (idxFile, error) {
	var f idxFile
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, fmt.Errorf("the file ends within the 4 bytes of its magic number: %w", err)
	}
	dims := int(head[3])
	if head[0] != 0 || head[1] != 0 || head[2] != idxBytes || dims < 1 || dims > maxDims {
		return f, fmt.Errorf("magic number %x is not that of an idx file of bytes: want 0000 08 and 1 to %d dims", head, maxDims)
	}
	sizes := make([]byte, 4*dims)
	if _, err := io.ReadFull(r, sizes); err != nil {
		return f, fmt.Errorf("the file ends within the sizes of its %d dims: %w", dims, err)
	}
	f.count, f.dim = int(binary.BigEndian.Uint32(sizes)), 1
	for ; len(sizes) > 4; sizes = sizes[4:] {
		size := int(binary.BigEndian.Uint32(sizes[4:]))
		if size > 0 && f.dim > math.MaxInt32/size {
			return f, fmt.Errorf("a record is larger than the limit of %d bytes", math.MaxInt32)
		}
		f.dim *= size
	}
	return f, nil
}

// readUpTo reads n bytes, or fewer if r ends before.
func readUpTo(r io.Reader, n int64) ([]byte, error) {
	buf := make([]byte, 0, min(n, readStep))
	for int64(len(buf)) < n {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(n, int64(cap(buf))*2))
			copy(grown, buf)
			buf = grown
		}
		k, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+k]
		if err == io.EOF {
			break
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}
