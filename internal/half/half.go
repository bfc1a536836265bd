// Package half converts between float32 and the 16-bit floats: bfloat16, the upper
// half of a float32, and IEEE 754 binary16.
//
// To 16 bits is the nearest value, ties to even; what is too large is infinite, and
// NaN stays NaN. From 16 bits is exact. On amd64 with AVX2 (and F16C for binary16) an
// element costs below half a nanosecond while it is near, and in portable Go 10 to 20: the bits
// are the same.
package half

//go:generate sh -c "cd ../../tools && go run ./asmgen -out ../internal/half"

import "golang.org/x/sys/cpu"

// Type is a 16-bit float.
type Type struct {
	from func(x uint16) float32
	to   func(f float32) uint16
	fast assembled // of whole vectors; nil: there is none
}

// assembled are conversions of n elements, a multiple of vector that is not 0.
type assembled struct {
	round  func(dst, src *float32, n int)
	narrow func(dst *uint16, src *float32, n int)
	widen  func(dst *float32, src *uint16, n int)
}

// vector is how many elements the assembly converts at a time.
const vector = 16

// BF16 returns bfloat16: the range of a float32 and 8 bits of digits. Portable keeps to
// Go, as on machines without the assembly.
func BF16(portable bool) *Type {
	t := &Type{from: FromBF16, to: ToBF16}
	if !portable && haveAssembly && cpu.X86.HasAVX2 {
		t.fast = assembled{roundBF16AVX, narrowBF16AVX, widenBF16AVX}
	}
	return t
}

// F16 returns binary16: numbers up to 65504 and 11 bits of digits. Portable is as for BF16.
func F16(portable bool) *Type {
	t := &Type{from: FromF16, to: ToF16}
	if !portable && haveAssembly && cpu.X86.HasAVX2 && cpu.X86.HasF16C {
		t.fast = assembled{roundF16AVX, narrowF16AVX, widenF16AVX}
	}
	return t
}

// Round sets dst to what src is in 16 bits, as float32. dst is as long as src, and may
// be src.
func (t *Type) Round(dst, src []float32) {
	dst = dst[:len(src)]
	if n := len(src) &^ (vector - 1); n > 0 && t.fast.round != nil {
		t.fast.round(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	for i, f := range src {
		dst[i] = t.from(t.to(f))
	}
}

// Narrow sets dst to src in 16 bits. dst is as long as src.
func (t *Type) Narrow(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	if n := len(src) &^ (vector - 1); n > 0 && t.fast.narrow != nil {
		t.fast.narrow(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	for i, f := range src {
		dst[i] = t.to(f)
	}
}

// Widen sets dst to src. dst is as long as src.
func (t *Type) Widen(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	if n := len(src) &^ (vector - 1); n > 0 && t.fast.widen != nil {
		t.fast.widen(&dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		dst[i] = t.from(x)
	}
}
