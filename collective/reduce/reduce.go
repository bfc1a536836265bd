// Package reduce combines arrays element by element: what a collective does to the
// values that meet in it.
//
// A Kernel works on memory as bytes, of any alignment, since values arrive where a
// transport puts them. It computes dst = a op b. Per element it costs the reading
// of both operands and the writing of the result, and on amd64 with AVX2 no more
// than that: the arithmetic is faster than memory.
//
// Results do not depend on the machine, but for which payload the NaN of a sum or
// product has where both operands are NaN. Min and Max give NaN, all bits set, where
// any operand is, and take -0 to be below 0. Whole numbers wrap. 16-bit
// floats are the exact result rounded to the nearest, ties to even, in
// every operation: a sum of many is rounded as often as it is added to.
package reduce

import (
	"fmt"
	"unsafe"

	"github.com/gangline/gangline/tensor"
)

// Op is an operation.
type Op uint8

// The operations. All are associative but for rounding, and commutative.
const (
	Sum Op = iota
	Min
	Max
	Prod
	// Mean is Sum, whose result is multiplied by 1/n once at the end: see Kernel.Scale.
	Mean
)

// String returns the name of the operation.
func (op Op) String() string {
	switch op {
	case Sum:
		return "sum"
	case Min:
		return "min"
	case Max:
		return "max"
	case Prod:
		return "prod"
	case Mean:
		return "mean"
	}
	return fmt.Sprintf("op(%d)", uint8(op))
}

// Kernel is an operation on a type. It has memory of its own, so that it is not safe
// for concurrent use.
type Kernel struct {
	size   int
	plain  loop
	scale  loop
	factor float64
	fast   assembled // of whole blocks
}

// For returns the kernel of an operation on a type, over n operands in all, which Mean
// alone asks for. It refuses a type of none and the mean of whole numbers.
func For(op Op, d tensor.DType, n int) (*Kernel, error) {
	plain := portable(op, d)
	if plain == nil {
		return nil, fmt.Errorf("reduce: no %v of type %v", op, d)
	}
	k := &Kernel{size: d.Size(), plain: plain}
	if op == Mean {
		if k.factor = 1 / float64(n); n < 1 {
			return nil, fmt.Errorf("reduce: mean of %d operands", n)
		}
		if k.scale = scaling(d, k.factor); k.scale == nil {
			return nil, fmt.Errorf("reduce: the mean of %v is no whole number: take the sum, and divide it", d)
		}
	}
	k.fast = assembly(op, d)
	return k, nil
}

// Size is the bytes of an element.
func (k *Kernel) Size() int { return k.size }

// block is what the assembly does at a time, in bytes.
const block = 32

// Combine sets dst = a op b. Lengths are those of dst, in bytes, of whole elements; a
// and b are as long at least. dst may be a or b, and must not overlap them
// otherwise.
func (k *Kernel) Combine(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	if n := len(dst) &^ (block - 1); n > 0 && k.fast.combine != nil {
		k.fast.combine(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), n)
		dst, a, b = dst[n:], a[n:], b[n:]
	}
	if len(dst) > 0 {
		k.plain(dst, a, b)
	}
}

// Scale multiplies a sum by 1/n, if the operation is Mean: in float32, of which a 16-bit
// float is rounded once more, but in float64 for f64.
func (k *Kernel) Scale(dst []byte) {
	if k.scale == nil {
		return
	}
	if n := len(dst) &^ (block - 1); n > 0 && k.fast.scale != nil {
		k.fast.scale(unsafe.SliceData(dst), n, k.factor)
		dst = dst[n:]
	}
	if len(dst) > 0 {
		k.scale(dst, dst, dst)
	}
}
