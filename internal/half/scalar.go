package half

import "math"

// FromBF16 is exact: a bfloat16 is the upper half of a float32.
func FromBF16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// ToBF16 rounds to the nearest, ties to even. NaN stays NaN, with its sign and the
// upper bits of its payload.
func ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if f != f {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FromF16 is exact. NaN stays NaN, as the machine's instruction has it: quiet, with
// its sign and payload.
func FromF16(x uint16) float32 {
	sign, exp, frac := uint32(x&0x8000)<<16, uint32(x>>10&0x1f), uint32(x&0x3ff)
	switch exp {
	case 0: // ±0 and what is below the normal range: frac units of 2^-24
		f := float32(frac) * 0x1p-24
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 0x1f:
		if frac != 0 {
			frac |= 0x200
		}
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// ToF16 rounds to the nearest, ties to even; what is too large is infinite. NaN stays
// NaN, as for bf16.
func ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x47800000: // 2^16
		return sign | 0x7c00
	case b >= 0x38800000: // 2^-14, the least normal number
		return sign | uint16((b+0xfff+b>>13&1-(127-15)<<23)>>13) // carries into the exponent, up to infinity
	}
	// Adding 1/2 leaves multiples of 2^-24 in the last bits, rounded to even.
	r := math.Float32frombits(b) + 0.5
	return sign | uint16(math.Float32bits(r)-math.Float32bits(0.5))
}
