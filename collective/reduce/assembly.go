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
	switch d {
	case tensor.F32:
		switch op {
		case Sum, Mean:
			return assembled{sumF32AVX, sumF32TwiceAVX, scaleF32AVX}
		case Prod:
			return assembled{prodF32AVX, prodF32TwiceAVX, scaleF32AVX}
		case Min:
			return assembled{minF32AVX, minF32TwiceAVX, scaleF32AVX}
		case Max:
			return assembled{maxF32AVX, maxF32TwiceAVX, scaleF32AVX}
		}
	case tensor.F64:
		switch op {
		case Sum, Mean:
			return assembled{sumF64AVX, sumF64TwiceAVX, scaleF64AVX}
		case Prod:
			return assembled{prodF64AVX, prodF64TwiceAVX, scaleF64AVX}
		case Min:
			return assembled{minF64AVX, minF64TwiceAVX, scaleF64AVX}
		case Max:
			return assembled{maxF64AVX, maxF64TwiceAVX, scaleF64AVX}
		}
	case tensor.BF16:
		switch op {
		case Sum, Mean:
			return assembled{sumBF16AVX, sumBF16TwiceAVX, scaleBF16AVX}
		case Prod:
			return assembled{prodBF16AVX, prodBF16TwiceAVX, scaleBF16AVX}
		case Min:
			return assembled{minBF16AVX, minBF16TwiceAVX, scaleBF16AVX}
		case Max:
			return assembled{maxBF16AVX, maxBF16TwiceAVX, scaleBF16AVX}
		}
	case tensor.F16:
		switch op {
		case Sum, Mean:
			return assembled{sumF16AVX, sumF16TwiceAVX, scaleF16AVX}
		case Prod:
			return assembled{prodF16AVX, prodF16TwiceAVX, scaleF16AVX}
		case Min:
			return assembled{minF16AVX, minF16TwiceAVX, scaleF16AVX}
		case Max:
			return assembled{maxF16AVX, maxF16TwiceAVX, scaleF16AVX}
		}
	case tensor.I32:
		switch op {
		case Sum, Mean:
			return assembled{sumI32AVX, sumI32TwiceAVX, nil}
		case Prod:
			return assembled{prodI32AVX, prodI32TwiceAVX, nil}
		case Min:
			return assembled{minI32AVX, minI32TwiceAVX, nil}
		case Max:
			return assembled{maxI32AVX, maxI32TwiceAVX, nil}
		}
	case tensor.I64:
		switch op {
		case Sum, Mean:
			return assembled{sumI64AVX, sumI64TwiceAVX, nil}
		case Prod:
			return assembled{prodI64AVX, prodI64TwiceAVX, nil}
		case Min:
			return assembled{minI64AVX, minI64TwiceAVX, nil}
		case Max:
			return assembled{maxI64AVX, maxI64TwiceAVX, nil}
		}
	case tensor.Invalid:
	}
	return assembled{}
}
