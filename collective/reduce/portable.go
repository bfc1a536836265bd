package reduce

import (
	"math"
	"unsafe"

	"github.com/gangline/gangline/internal/half"
	"github.com/gangline/gangline/tensor"
)

// number are the elements that the machine computes with as they are.
type number interface {
	float32 | float64 | int32 | int64
}

// NaN of min and max: all bits set, whichever of the operands was NaN, so that the
// order of operands does not show.
const (
	nan32 = 0xffffffff
	nan64 = 0xffffffffffffffff
)

func sums[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func products[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func least[T int32 | int64](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}

func greatest[T int32 | int64](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

// each makes a loop of what is done to one pair.
func each[T any](f func(a, b T) T) func(dst, a, b []T) {
	return func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}
}

func least32(a, b float32) float32 {
	if a != a || b != b {
		return math.Float32frombits(nan32)
	}
	return min(a, b)
}

func greatest32(a, b float32) float32 {
	if a != a || b != b {
		return math.Float32frombits(nan32)
	}
	return max(a, b)
}

func least64(a, b float64) float64 {
	if a != a || b != b {
		return math.Float64frombits(nan64)
	}
	return min(a, b)
}

func greatest64(a, b float64) float64 {
	if a != a || b != b {
		return math.Float64frombits(nan64)
	}
	return max(a, b)
}

// halves makes of what is done to float32s what is done to a 16-bit type: computed
// in float32, which has more than twice the digits, and rounded once, so that
// the result is the exact one rounded.
func halves(from func(uint16) float32, to func(float32) uint16, op Op) func(dst, a, b []uint16) {
	var f func(a, b float32) float32
	switch op {
	case Sum, Mean:
		f = func(a, b float32) float32 { return a + b }
	case Prod:
		f = func(a, b float32) float32 { return a * b }
	case Min:
		f = least32
	case Max:
		f = greatest32
	}
	return each(func(a, b uint16) uint16 { return to(f(from(a), from(b))) })
}

// scaling is a loop that multiplies its first operand by a factor, nil if the type has
// none.
func scaling(d tensor.DType, factor float64) loop {
	f := float32(factor)
	switch d {
	case tensor.F32:
		return aligned(each(func(a, _ float32) float32 { return a * f }))
	case tensor.F64:
		return aligned(each(func(a, _ float64) float64 { return a * factor }))
	case tensor.BF16:
		return aligned(each(func(a, _ uint16) uint16 { return half.ToBF16(half.FromBF16(a) * f) }))
	case tensor.F16:
		return aligned(each(func(a, _ uint16) uint16 { return half.ToF16(half.FromF16(a) * f) }))
	case tensor.I32, tensor.I64, tensor.Invalid:
	}
	return nil
}

// loop is a kernel on memory of any alignment, in whole elements.
type loop func(dst, a, b []byte)

// portable returns the loop of an operation in Go, nil if there is none.
func portable(op Op, d tensor.DType) loop {
	switch d {
	case tensor.F32:
		return pick(op, sums[float32], products[float32], each(least32), each(greatest32))
	case tensor.F64:
		return pick(op, sums[float64], products[float64], each(least64), each(greatest64))
	case tensor.I32:
		return pick(op, sums[int32], products[int32], least[int32], greatest[int32])
	case tensor.I64:
		return pick(op, sums[int64], products[int64], least[int64], greatest[int64])
	case tensor.BF16:
		return aligned(halves(half.FromBF16, half.ToBF16, op))
	case tensor.F16:
		return aligned(halves(half.FromF16, half.ToF16, op))
	case tensor.Invalid:
	}
	return nil
}

// pick makes a loop of the operation's.
func pick[T any](op Op, sum, prod, low, high func(dst, a, b []T)) loop {
	switch op {
	case Sum, Mean:
		return aligned(sum)
	case Prod:
		return aligned(prod)
	case Min:
		return aligned(low)
	case Max:
		return aligned(high)
	}
	return nil
}

// aligned makes a loop on bytes of one on elements. Memory that is not aligned to
// them goes through memory that is.
func aligned[T any](f func(dst, a, b []T)) loop {
	var z T
	size := int(unsafe.Sizeof(z))
	var aside [3][8]uint64 // of this kernel, since f keeps no memory but the compiler cannot know
	const piece = 64
	return func(dst, a, b []byte) {
		a, b = a[:len(dst)], b[:len(dst)]
		if isAligned(dst, size) && isAligned(a, size) && isAligned(b, size) {
			f(view[T](dst), view[T](a), view[T](b))
			return
		}
		d, x, y := raw(&aside[0]), raw(&aside[1]), raw(&aside[2])
		for len(dst) > 0 {
			n := min(len(dst), piece)
			copy(x, a[:n])
			copy(y, b[:n])
			f(view[T](d[:n]), view[T](x[:n]), view[T](y[:n]))
			copy(dst, d[:n])
			dst, a, b = dst[n:], a[n:], b[n:]
		}
	}
}

func isAligned(b []byte, size int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(size) == 0
}

// view reads aligned memory as elements.
func view[T any](b []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}

func raw(words *[8]uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(words)), 64)
}
