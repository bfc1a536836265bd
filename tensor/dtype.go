package tensor

import "fmt"

// DType names the type of a tensor's elements.
type DType uint8

// The element types. The zero value is no type at all, so that a forgotten
// dtype is an error rather than a silent float.
const (
	Invalid DType = iota
	F32
	F64
	I32
	I64
	// BF16 and F16 are 16-bit floats, the upper half of an f32 and IEEE 754 binary16:
	// values and gradients of graphs of mixed precision, which collectives carry and
	// add. No Go type stands for them: a tensor of them is read as Halves or Bytes.
	BF16
	F16
)

// Float is the constraint of the element types that carry gradients.
type Float interface{ float32 | float64 }

// Elem is the constraint of every element type.
type Elem interface {
	float32 | float64 | int32 | int64
}

// Size returns the bytes of one element, 0 for Invalid.
func (d DType) Size() int {
	switch d {
	case BF16, F16:
		return 2
	case F32, I32:
		return 4
	case F64, I64:
		return 8
	case Invalid:
		return 0
	}
	return 0
}

// IsFloat reports whether the type is one of parameters: the 16-bit floats are not.
func (d DType) IsFloat() bool { return d == F32 || d == F64 }

// IsHalf reports whether the type is a 16-bit float.
func (d DType) IsHalf() bool { return d == BF16 || d == F16 }

// String returns the name used in plans, graphs and checkpoints: f32, f64, i32, i64, bf16,
// f16.
func (d DType) String() string {
	switch d {
	case F32:
		return "f32"
	case F64:
		return "f64"
	case I32:
		return "i32"
	case I64:
		return "i64"
	case BF16:
		return "bf16"
	case F16:
		return "f16"
	case Invalid:
		return "invalid"
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// ParseDType is the inverse of String.
func ParseDType(s string) (DType, error) {
	for _, d := range []DType{F32, F64, I32, I64, BF16, F16} {
		if d.String() == s {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("tensor: unknown dtype %q: want f32, f64, i32, i64, bf16 or f16", s)
}

// TypeOf returns the dtype of the Go element type T.
func TypeOf[T Elem]() DType {
	var z T
	switch any(z).(type) {
	case float32:
		return F32
	case float64:
		return F64
	case int32:
		return I32
	case int64:
		return I64
	}
	return Invalid
}
