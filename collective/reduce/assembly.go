package reduce

//go:generate sh -c "cd ../../tools && go run ./asmgen -out ../collective/reduce"

import (
	"golang.org/x/sys/cpu"

	"github.com/gangline/gangline/tensor"
)

// assembled is a kernel in assembly, or nothing.
type assembled struct {
	one   func(dst, a, b *byte, n int)
	two   func(dst, other, a, b *byte, n int)
	scale func(dst *byte, n int, f float64)
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
			{sumF32AVX, sumF32TwiceAVX, scaleF32AVX},
			{minF32AVX, minF32TwiceAVX, scaleF32AVX},
			{maxF32AVX, maxF32TwiceAVX, scaleF32AVX},
			{prodF32AVX, prodF32TwiceAVX, scaleF32AVX},
		}
	case tensor.F64:
		by = [...]assembled{
			{sumF64AVX, sumF64TwiceAVX, scaleF64AVX},
			{minF64AVX, minF64TwiceAVX, scaleF64AVX},
			{maxF64AVX, maxF64TwiceAVX, scaleF64AVX},
			{prodF64AVX, prodF64TwiceAVX, scaleF64AVX},
		}
	case tensor.BF16:
		by = [...]assembled{
			{sumBF16AVX, sumBF16TwiceAVX, scaleBF16AVX},
			{minBF16AVX, minBF16TwiceAVX, scaleBF16AVX},
			{maxBF16AVX, maxBF16TwiceAVX, scaleBF16AVX},
			{prodBF16AVX, prodBF16TwiceAVX, scaleBF16AVX},
		}
	case tensor.F16:
		by = [...]assembled{
			{sumF16AVX, sumF16TwiceAVX, scaleF16AVX},
			{minF16AVX, minF16TwiceAVX, scaleF16AVX},
			{maxF16AVX, maxF16TwiceAVX, scaleF16AVX},
			{prodF16AVX, prodF16TwiceAVX, scaleF16AVX},
		}
	case tensor.I32:
		by = [...]assembled{
			{sumI32AVX, sumI32TwiceAVX, nil},
			{minI32AVX, minI32TwiceAVX, nil},
			{maxI32AVX, maxI32TwiceAVX, nil},
			{prodI32AVX, prodI32TwiceAVX, nil},
		}
	case tensor.I64:
		by = [...]assembled{
			{sumI64AVX, sumI64TwiceAVX, nil},
			{minI64AVX, minI64TwiceAVX, nil},
			{maxI64AVX, maxI64TwiceAVX, nil},
			{prodI64AVX, prodI64TwiceAVX, nil},
		}
	case tensor.Invalid:
	}
	if op == Mean {
		op = Sum
	}
	return by[op]
}
