package parse

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/gangline/gangline/data/table"
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

// Idx is an idx file of bytes: Count records of Dim bytes, of which the first Rows
// are in memory.
type Idx struct {
	Count, Dim, Rows int
	Bytes            []uint8
}

// ReadIdx reads a file to its end, of which it keeps the first limit
// records (0: all). Memory grows with what is there, not with what the header
// claims.
func ReadIdx(file string, r io.Reader, limit int) (Idx, error) {
	f, err := idxHeader(r)
	if err != nil {
		return f, fmt.Errorf("data: %s: %w", file, err)
	}
	f.Rows = f.Count
	if limit > 0 {
		f.Rows = min(limit, f.Count)
	}
	keep := int64(f.Rows) * int64(f.Dim)
	if f.Bytes, err = readUpTo(r, keep); err != nil {
		return f, fmt.Errorf("data: %s: %w", file, err)
	}
	got := int64(len(f.Bytes))
	if got < keep {
		return f, fmt.Errorf("data: %w", &table.RowError{
			File: file, Line: int(got/int64(f.Dim)) + 1,
			Reason: fmt.Sprintf("the file is cut off: %d records of %d bytes promised, %d bytes found", f.Count, f.Dim, got),
		})
	}
	if f.Rows < f.Count {
		return f, nil
	}
	if extra, err := io.CopyN(io.Discard, r, 1); !errors.Is(err, io.EOF) {
		if err != nil {
			return f, fmt.Errorf("data: %s: %w", file, err)
		}
		return f, fmt.Errorf("data: %s: at least %d byte beyond the %d records of %d bytes promised",
			file, extra, f.Count, f.Dim)
	}
	return f, nil
}

func idxHeader(r io.Reader) (Idx, error) {
	var f Idx
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
	f.Count, f.Dim = int(binary.BigEndian.Uint32(sizes)), 1
	for ; len(sizes) > 4; sizes = sizes[4:] {
		size := int(binary.BigEndian.Uint32(sizes[4:]))
		if size > 0 && f.Dim > math.MaxInt32/size {
			return f, fmt.Errorf("a record is larger than the limit of %d bytes", math.MaxInt32)
		}
		f.Dim *= size
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
