package kernel

import (
	"github.com/gangline/gangline/internal/half"
	"github.com/gangline/gangline/tensor"
)

// Halves are the conversions between float32 and 16 bits.
type Halves struct{ bf16, f16 *half.Type }

// HalvesFor returns those with assembly, where there is some, or without.
func HalvesFor(asm bool) Halves { return Halves{half.BF16(!asm), half.F16(!asm)} }

// Of returns the conversions of a 16-bit type, nil for others.
func (h Halves) Of(d tensor.DType) *half.Type {
	switch d {
	case tensor.BF16:
		return h.bf16
	case tensor.F16:
		return h.f16
	case tensor.Invalid, tensor.F32, tensor.F64, tensor.I32, tensor.I64:
	}
	return nil
}
