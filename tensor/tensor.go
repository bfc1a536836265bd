// Package tensor holds what every other package exchanges: element types,
// shapes and dense row-major arrays. It does no arithmetic.
//
// Everything a plan moves is a dense tensor. A ragged column of a batch is
// three of them (offsets, ids, weights); the sparse gradient of a table is two
// (keys, rows). Dims that a batch decides are Dynamic in a declared shape, and
// the tensor that holds such a value is resized in place step by step, so a
// warm run allocates nothing.
package tensor

import (
	"fmt"
	"slices"
	"unsafe"
)

// Tensor is a dense row-major array over memory it may share with an arena.
//
// Guarantees: (1) the memory is aligned to 8 bytes; (2) it holds at least
// Shape().Elems() elements; (3) the shape is static.
//
// A Tensor is not safe for concurrent use; who may touch it when is what a
// plan proves.
type Tensor struct {
	dtype DType
	shape Shape
	elems int
	mem   []byte
}

// New allocates a zeroed tensor. It panics on a dynamic dim or Invalid dtype:
// both are mistakes of the program, not of its input.
func New(d DType, shape ...int) *Tensor {
	t := &Tensor{dtype: d}
	if d == Invalid {
		panic("tensor: New with an invalid dtype")
	}
	t.Resize(shape...)
	return t
}

// Wrap makes a tensor over mem, which stays the caller's (an arena of an
// endpoint, for example). mem must be aligned to 8 bytes and large enough.
func Wrap(d DType, mem []byte, shape ...int) (*Tensor, error) {
	s := Shape(shape)
	if d == Invalid || !s.Static() {
		return nil, fmt.Errorf("tensor: cannot wrap %v %v: need a dtype and a static shape", d, s)
	}
	if need := s.Elems() * d.Size(); len(mem) < need {
		return nil, fmt.Errorf("tensor: %v %v needs %d bytes, the memory has %d", d, s, need, len(mem))
	}
	if len(mem) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%8 != 0 {
		return nil, fmt.Errorf("tensor: memory for %v %v is not aligned to 8 bytes", d, s)
	}
	return &Tensor{dtype: d, shape: s.Clone(), elems: s.Elems(), mem: slices.Clip(mem)}, nil
}

// From makes a tensor that shares the values of v.
func From[T Elem](v []T, shape ...int) *Tensor {
	s := Shape(shape)
	if s.Elems() != len(v) {
		panic(fmt.Sprintf("tensor: %d values do not fill %v", len(v), s))
	}
	t := &Tensor{dtype: TypeOf[T](), shape: s.Clone(), elems: len(v)}
	if len(v) > 0 {
		t.mem = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*t.dtype.Size())
	}
	return t
}

// Part returns elements [lo, hi) in row-major order, flat, in the same memory.
func (t *Tensor) Part(lo, hi int) *Tensor {
	size := t.dtype.Size()
	return &Tensor{dtype: t.dtype, shape: Shape{hi - lo}, elems: hi - lo, mem: slices.Clip(t.mem[lo*size : hi*size])}
}

// DType returns the element type.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the current shape. The caller must not change it.
func (t *Tensor) Shape() Shape { return t.shape }

// Elems returns the number of elements.
func (t *Tensor) Elems() int { return t.elems }

// Bytes returns the elements as memory in the machine's byte order.
func (t *Tensor) Bytes() []byte { return t.mem[:t.elems*t.dtype.Size()] }

// Data returns the elements. It panics if T is not the tensor's type.
func Data[T Elem](t *Tensor) []T {
	if want := TypeOf[T](); t.dtype != want {
		panic(fmt.Sprintf("tensor: read %v elements of a %v tensor", want, t.dtype))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.mem))), t.elems)
}

// F32 returns the elements of an f32 tensor.
func (t *Tensor) F32() []float32 { return Data[float32](t) }

// F64 returns the elements of an f64 tensor.
func (t *Tensor) F64() []float64 { return Data[float64](t) }

// I64 returns the elements of an i64 tensor.
func (t *Tensor) I64() []int64 { return Data[int64](t) }

// Halves returns the elements of a tensor of 16-bit floats as their bits.
func (t *Tensor) Halves() []uint16 {
	if !t.dtype.IsHalf() {
		panic(fmt.Sprintf("tensor: read 16-bit floats of a %v tensor", t.dtype))
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(t.mem))), t.elems)
}

// Resize sets the shape. The memory is kept if it is large enough, and grown
// by half again otherwise; the elements are undefined after a change of size.
// It panics on a dynamic dim.
func (t *Tensor) Resize(shape ...int) {
	s := Shape(shape)
	n := s.Elems()
	if n < 0 {
		panic("tensor: Resize to a dynamic or negative shape " + s.String())
	}
	t.shape = append(t.shape[:0], s...)
	t.elems = n
	need := n * t.dtype.Size()
	if need <= cap(t.mem) {
		t.mem = t.mem[:cap(t.mem)]
		return
	}
	if t.mem != nil {
		need += need / 2
	}
	words := make([]uint64, (need+7)/8)
	t.mem = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
	advise(t.mem)
}

// View makes t share the memory of x, in a shape of as many elements. It panics
// if the dtypes or numbers of elements differ. It lasts until x is resized.
func (t *Tensor) View(x *Tensor, shape ...int) {
	if s := Shape(shape); t.dtype != x.dtype || s.Elems() != x.elems {
		panic(fmt.Sprintf("tensor: view of %v %v as %v %v", x.dtype, x.shape, t.dtype, s))
	}
	t.shape = append(t.shape[:0], shape...)
	t.elems, t.mem = x.elems, x.mem
}

// Outline gives t a shape and no memory: reading it panics. It stands for a value
// of which only the shape is asked.
func (t *Tensor) Outline(shape ...int) {
	t.shape = append(t.shape[:0], shape...)
	t.elems, t.mem = t.shape.Elems(), nil
}

// Scalar returns the single element of a float tensor as float64.
func (t *Tensor) Scalar() float64 {
	if t.dtype == F32 {
		return float64(t.F32()[0])
	}
	return t.F64()[0]
}

// SetScalar sets the single element of a float tensor.
func (t *Tensor) SetScalar(v float64) {
	if t.dtype == F32 {
		t.F32()[0] = float32(v)
		return
	}
	t.F64()[0] = v
}

// Clone returns a copy with memory of its own.
func (t *Tensor) Clone() *Tensor {
	c := New(t.dtype, t.shape...)
	copy(c.Bytes(), t.Bytes())
	return c
}
