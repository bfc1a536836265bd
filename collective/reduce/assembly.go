package reduce

//go:generate sh -c "cd ../../tools && go run ./asmgen -out ../collective/reduce"

import (
	"golang.org/x/sys/cpu"

	"github.com/gangline/gangline/tensor"
)

// assembled is a kernel in assembly, or nothing.
type assembled struct {
	combine func(dst, a, b *byte, n int)
	scale   func(dst *byte, n int, f float64)
}

// assembly is the kernel for this machine, if there is one.
func assembly(op Op, d tensor.DType) assembled {
	if !haveAssembly || !cpu.X86.HasAVX2 || d == tensor.F16 && !cpu.X86.HasF16C {
		return assembled{}
	}
	var by [4]assembled // by operation, as far as Prod
	switch d {
	case tensor.F32:
		by = [...]assembled{
			{sumF32AVX, scaleF32AVX},
			{minF32AVX, scaleF32AVX},
			{maxF32AVX, scaleF32AVX},
			{prodF32AVX, scaleF32AVX},
		}
	case tensor.F64:
		by = [...]assembled{
			{sumF64AVX, scaleF64AVX},
			{minF64AVX, scaleF64AVX},
			{maxF64AVX, scaleF64AVX},
			{prodF64AVX, scaleF64AVX},
		}
	case tensor.BF16:
		by = [...]assembled{
			{sumBF16AVX, scaleBF16AVX},
			{minBF16AVX, scaleBF16AVX},
			{maxBF16AVX, scaleBF16AVX},
			{prodBF16AVX, scaleBF16AVX},
		}
	case tensor.F16:
		by = [...]assembled{
			{sumF16AVX, scaleF16AVX},
			{minF16AVX, scaleF16AVX},
			{maxF16AVX, scaleF16AVX},
			{prodF16AVX, scaleF16AVX},
		}
	case tensor.I32:
		by = [...]assembled{
			{sumI32AVX, nil},
			{minI32AVX, nil},
			{maxI32AVX, nil},
			{prodI32AVX, nil},
		}
	case tensor.I64:
		by = [...]assembled{
			{sumI64AVX, nil},
			{minI64AVX, nil},
			{maxI64AVX, nil},
			{prodI64AVX, nil},
		}
	case tensor.Invalid:
	}
	if op == Mean {
		op = Sum
	}
	return by[op]
}
