package compress

import (
	"encoding/binary"
	"math"
)

// BF16 keeps the upper half of each float32, rounded to the nearest, ties to even: 2n
// bytes, a relative error of at most 2^-8, and the range of float32. NaN stays NaN.
//
// Source: D. Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019.
type BF16 struct{}

// F16 rounds each element to IEEE 754 binary16, to the nearest, ties to even: 2n bytes,
// a relative error of at most 2^-11 from 2^-14 to 65504. Smaller values become
// multiples of 2^-24, from 65520 on they are infinite. NaN stays NaN.
//
// Source: IEEE 754-2019, 3.6; for gradients P. Micikevicius et al., "Mixed Precision
// Training", 2018.
type F16 struct{}

// String implements Codec.
func (BF16) String() string { return "bf16" }

// String implements Codec.
func (F16) String() string { return "f16" }

// Bytes implements Codec: 2n.
func (BF16) Bytes(n int) int { return 2 * n }

// Bytes implements Codec: 2n.
func (F16) Bytes(n int) int { return 2 * n }

// Encode implements Codec.
func (BF16) Encode(dst []byte, src []float32) int { return encodeBF16(dst, src, false) }

// EncodeRest implements Codec.
func (BF16) EncodeRest(dst []byte, src []float32) int { return encodeBF16(dst, src, true) }

// Decode implements Codec.
func (c BF16) Decode(dst []float32, src []byte) error {
	if len(src) != c.Bytes(len(dst)) {
		return lengthError(c, len(dst), len(src))
	}
	for len(dst) >= 4 {
		d, w := dst[:4:4], binary.LittleEndian.Uint64(src)
		d[0], d[1] = fromBF16(uint32(w)), fromBF16(uint32(w)>>16)
		d[2], d[3] = fromBF16(uint32(w>>32)), fromBF16(uint32(w>>48))
		dst, src = dst[4:], src[8:]
	}
	for i := range dst {
		dst[i] = fromBF16(uint32(binary.LittleEndian.Uint16(src[2*i:])))
	}
	return nil
}

// DecodeAdd implements Codec.
func (c BF16) DecodeAdd(dst []float32, src []byte) error {
	if len(src) != c.Bytes(len(dst)) {
		return lengthError(c, len(dst), len(src))
	}
	for len(dst) >= 4 {
		d, w := dst[:4:4], binary.LittleEndian.Uint64(src)
		d[0] += fromBF16(uint32(w))
		d[1] += fromBF16(uint32(w) >> 16)
		d[2] += fromBF16(uint32(w >> 32))
		d[3] += fromBF16(uint32(w >> 48))
		dst, src = dst[4:], src[8:]
	}
	for i := range dst {
		dst[i] += fromBF16(uint32(binary.LittleEndian.Uint16(src[2*i:])))
	}
	return nil
}

func encodeBF16(dst []byte, src []float32, rest bool) int {
	n := 2 * len(src)
	for len(src) >= 4 {
		s := src[:4:4]
		a, b, c, d := math.Float32bits(s[0]), math.Float32bits(s[1]), math.Float32bits(s[2]), math.Float32bits(s[3])
		if overNaN(a)|overNaN(b)|overNaN(c)|overNaN(d) == 0 {
			a, b, c, d = roundBF16(a), roundBF16(b), roundBF16(c), roundBF16(d)
		} else {
			a, b, c, d = toBF16(s[0]), toBF16(s[1]), toBF16(s[2]), toBF16(s[3])
		}
		binary.LittleEndian.PutUint64(dst, uint64(a|b<<16)|uint64(c|d<<16)<<32)
		if rest {
			s[0] -= fromBF16(a)
			s[1] -= fromBF16(b)
			s[2] -= fromBF16(c)
			s[3] -= fromBF16(d)
		}
		dst, src = dst[8:], src[4:]
	}
	for i, x := range src {
		h := toBF16(x)
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(h))
		if rest {
			src[i] -= fromBF16(h)
		}
	}
	return n
}

// overNaN has the sign bit set if b is a NaN.
func overNaN(b uint32) uint32 { return (b&^signBit + (signBit - infinity - 1)) & signBit }

// roundBF16 rounds what is no NaN.
func roundBF16(b uint32) uint32 { return (b + 0x7fff + b>>16&1) >> 16 }

// toBF16 rounds; a NaN keeps its sign and the upper bits of its payload.
func toBF16(x float32) uint32 {
	b := math.Float32bits(x)
	if overNaN(b) != 0 {
		return b>>16 | 0x40
	}
	return roundBF16(b)
}

// fromBF16 is exact. Bits above the lower 16 are ignored.
func fromBF16(h uint32) float32 { return math.Float32frombits(h << 16) }

// Encode implements Codec.
func (F16) Encode(dst []byte, src []float32) int { return encodeF16(dst, src, false) }

// EncodeRest implements Codec.
func (F16) EncodeRest(dst []byte, src []float32) int { return encodeF16(dst, src, true) }

// Decode implements Codec.
func (c F16) Decode(dst []float32, src []byte) error {
	if len(src) != c.Bytes(len(dst)) {
		return lengthError(c, len(dst), len(src))
	}
	for len(dst) >= 4 {
		d, w := dst[:4:4], binary.LittleEndian.Uint64(src)
		d[0], d[1] = fromF16(uint32(w)&0xffff), fromF16(uint32(w)>>16)
		d[2], d[3] = fromF16(uint32(w>>32)&0xffff), fromF16(uint32(w>>48))
		dst, src = dst[4:], src[8:]
	}
	for i := range dst {
		dst[i] = fromF16(uint32(binary.LittleEndian.Uint16(src[2*i:])))
	}
	return nil
}

// DecodeAdd implements Codec.
func (c F16) DecodeAdd(dst []float32, src []byte) error {
	if len(src) != c.Bytes(len(dst)) {
		return lengthError(c, len(dst), len(src))
	}
	for len(dst) >= 4 {
		d, w := dst[:4:4], binary.LittleEndian.Uint64(src)
		d[0] += fromF16(uint32(w) & 0xffff)
		d[1] += fromF16(uint32(w) >> 16)
		d[2] += fromF16(uint32(w>>32) & 0xffff)
		d[3] += fromF16(uint32(w >> 48))
		dst, src = dst[4:], src[8:]
	}
	for i := range dst {
		dst[i] += fromF16(uint32(binary.LittleEndian.Uint16(src[2*i:])))
	}
	return nil
}

func encodeF16(dst []byte, src []float32, rest bool) int {
	n := 2 * len(src)
	for len(src) >= 4 {
		s := src[:4:4]
		a, b, c, d := math.Float32bits(s[0]), math.Float32bits(s[1]), math.Float32bits(s[2]), math.Float32bits(s[3])
		if normalF16(a) && normalF16(b) && normalF16(c) && normalF16(d) {
			a, b, c, d = roundF16(a), roundF16(b), roundF16(c), roundF16(d)
		} else {
			a, b, c, d = toF16(a), toF16(b), toF16(c), toF16(d)
		}
		binary.LittleEndian.PutUint64(dst, uint64(a|b<<16)|uint64(c|d<<16)<<32)
		if rest {
			s[0] -= fromF16(a)
			s[1] -= fromF16(b)
			s[2] -= fromF16(c)
			s[3] -= fromF16(d)
		}
		dst, src = dst[8:], src[4:]
	}
	for i, x := range src {
		h := toF16(math.Float32bits(x))
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(h))
		if rest {
			src[i] -= fromF16(h)
		}
	}
	return n
}

// The bits of float32 where binary16 changes its form.
const (
	leastNormal = (127 - 14) << 23 // 2^-14
	tooLarge    = (127 + 16) << 23 // 2^16: becomes infinity, as do all from 65520 on
)

// normalF16 reports whether b becomes a normal number, or infinity by rounding.
func normalF16(b uint32) bool { return b&^signBit-leastNormal < tooLarge-leastNormal }

// roundF16 is toF16 of what normalF16 admits: a carry goes into the exponent.
func roundF16(b uint32) uint32 {
	return b>>16&0x8000 | (b&^signBit-(127-15)<<23+0xfff+b>>13&1)>>13
}

// toF16 rounds; a NaN keeps its sign only.
//
// Added to 2^(e+13), a number of exponent e is rounded by the addition to a multiple of
// 2^(e-10), the last place of a binary16 of that exponent, and the sum's lower bits count
// these places. Small numbers have the exponent -14.
func toF16(b uint32) uint32 {
	abs := min(b&^signBit, tooLarge)
	exp := max(abs&infinity, leastNormal)
	sum := math.Float32frombits(abs) + math.Float32frombits(exp+13<<23)
	h := (exp-leastNormal)>>13 + math.Float32bits(sum) - (exp + 13<<23) // 1024 places are one more of the exponent
	if b&^signBit > infinity {
		h |= 0x200
	}
	return b>>16&0x8000 | h
}

// fromF16 is exact. h has 16 bits.
func fromF16(h uint32) float32 {
	// Read as float32, the exponent is too small by 112, that of a small value as well:
	// one exact product puts both right.
	b := math.Float32bits(math.Float32frombits(h&0x7fff<<13) * 0x1p112)
	if h&0x7c00 == 0x7c00 {
		b = infinity | h&0x3ff<<13
	}
	return math.Float32frombits(b | h&0x8000<<16)
}
