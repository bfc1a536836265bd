package parquetio

import (
	"encoding/binary"
	"errors"
)

// thriftSize returns the size of the structure at the beginning of b in the
// compact protocol of Thrift, without decoding it. The library makes room for as
// many elements as a list claims before it reads the first, so what a damaged
// file claims is compared with what is there first.
func thriftSize(b []byte) (int, error) {
	w := thriftWalk{rest: b, elements: thriftElementsMax}
	w.structure(thriftDepthMax)
	return len(b) - len(w.rest), w.err
}

const (
	// thriftElementsMax is the number of elements in all lists of a structure.
	thriftElementsMax = 1 << 20
	thriftDepthMax    = 32
)

// The types of the compact protocol.
const (
	thriftStop = iota
	thriftTrue
	thriftFalse
	thriftByte
	thriftI16
	thriftI32
	thriftI64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

var (
	errThriftShort = errors.New("it ends early")
	errThriftLarge = errors.New("a list has more elements than the limit or than there are bytes")
	errThriftDeep  = errors.New("it is nested too deeply")
	errThriftType  = errors.New("a type is not known")
)

// thriftWalk steps over what it is asked for. The first error stays.
type thriftWalk struct {
	rest     []byte
	elements int // still allowed
	err      error
}

func (w *thriftWalk) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *thriftWalk) skip(n uint64) {
	if n > uint64(len(w.rest)) {
		w.fail(errThriftShort)
		return
	}
	w.rest = w.rest[n:]
}

func (w *thriftWalk) byte() byte {
	if len(w.rest) == 0 {
		w.fail(errThriftShort)
		return 0
	}
	c := w.rest[0]
	w.rest = w.rest[1:]
	return c
}

func (w *thriftWalk) varint() uint64 {
	u, n := binary.Uvarint(w.rest)
	if n <= 0 {
		w.fail(errThriftShort)
		return 0
	}
	w.rest = w.rest[n:]
	return u
}

// structure steps over fields up to the stop.
func (w *thriftWalk) structure(depth int) {
	for w.err == nil {
		head := w.byte()
		if head&15 == thriftStop {
			return
		}
		if head>>4 == 0 {
			w.varint() // the number of the field
		}
		if t := head & 15; t != thriftTrue && t != thriftFalse { // those are their value
			w.value(t, depth)
		}
	}
}

// value steps over a value. In lists booleans take a byte.
func (w *thriftWalk) value(t byte, depth int) {
	if depth == 0 {
		w.fail(errThriftDeep)
		return
	}
	switch t {
	case thriftTrue, thriftFalse, thriftByte:
		w.byte()
	case thriftI16, thriftI32, thriftI64:
		w.varint()
	case thriftDouble:
		w.skip(8)
	case thriftBinary:
		w.skip(w.varint())
	case thriftList, thriftSet:
		head := w.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = w.varint()
		}
		w.list(n, depth, head&15)
	case thriftMap:
		if n := w.varint(); n > 0 {
			types := w.byte()
			w.list(n, depth, types>>4, types&15)
		}
	case thriftStruct:
		w.structure(depth - 1)
	default:
		w.fail(errThriftType)
	}
}

// list steps over n elements, each of values of these types.
func (w *thriftWalk) list(n uint64, depth int, types ...byte) {
	if n > uint64(len(w.rest)) || n > uint64(w.elements) {
		w.fail(errThriftLarge)
		return
	}
	w.elements -= int(n)
	for range n {
		for _, t := range types {
			w.value(t, depth-1)
		}
		if w.err != nil {
			return
		}
	}
}
