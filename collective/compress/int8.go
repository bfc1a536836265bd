package compress

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Int8 writes each element as a whole number from -127 to 127, to be multiplied by a
// scale per block: the block's largest magnitude divided by 127, a float32. An element
// is off by half the scale at most. A block's bytes are its scale and one byte an element:
// n + 4 ceil(n/Block) in all.
//
// A block that holds NaN or an infinity has the scale NaN, and is all NaN when decoded. A
// block of magnitudes below 127 * 2^-126 is all zero.
//
// Source: linear quantization with a scale per bucket, as of D. Alistarh et al., "QSGD:
// Communication-Efficient SGD via Gradient Quantization and Encoding", 2017, with the
// largest magnitude as norm and rounding to the nearest (feedback makes up for the bias).
type Int8 struct {
	// Block is how many elements share a scale; 256 costs 1.6 % on top.
	Block int
}

const (
	int8Max = 127
	// roundMagic is 1.5 * 2^23: the last bit of a float32 near it is one, so that adding
	// it rounds to a whole number, ties to even, which the lower bits then hold.
	roundMagic = 0x1.8p23
	magicBits  = 0x4b400000
)

// NewInt8 checks the block, which must be positive.
func NewInt8(block int) (Int8, error) {
	if block < 1 {
		return Int8{}, fmt.Errorf("compress: int8 with blocks of %d elements: want 1 at least", block)
	}
	return Int8{Block: block}, nil
}

// String implements Codec.
func (c Int8) String() string { return fmt.Sprintf("int8(%d)", c.Block) }

// Bytes implements Codec: n + 4 ceil(n/Block).
func (c Int8) Bytes(n int) int { return n + 4*ceilDiv(n, c.Block) }

func (c Int8) piece() int { return c.Block }

// Encode implements Codec.
func (c Int8) Encode(dst []byte, src []float32) int { return c.encode(dst, src, false) }

// EncodeRest implements Codec.
func (c Int8) EncodeRest(dst []byte, src []float32) int { return c.encode(dst, src, true) }

func (c Int8) encode(dst []byte, src []float32, rest bool) int {
	n := c.Bytes(len(src))
	for len(src) > 0 {
		b := src[:min(c.Block, len(src))]
		scale := scaleOf(b)
		binary.LittleEndian.PutUint32(dst, math.Float32bits(scale))
		quantize(dst[4:4+len(b)], b, scale, rest)
		dst, src = dst[4+len(b):], src[len(b):]
	}
	return n
}

// scaleOf is the scale of a block. 127 times it is finite, unless it is NaN.
func scaleOf(b []float32) float32 {
	var p, q, r, s uint32
	for len(b) >= 4 {
		x := b[:4:4]
		p = max(p, math.Float32bits(x[0])&^signBit)
		q = max(q, math.Float32bits(x[1])&^signBit)
		r = max(r, math.Float32bits(x[2])&^signBit)
		s = max(s, math.Float32bits(x[3])&^signBit)
		b = b[4:]
	}
	for _, x := range b {
		p = max(p, math.Float32bits(x)&^signBit)
	}
	p = max(p, q, r, s)
	if p >= infinity {
		return math.Float32frombits(quietNaN)
	}
	scale := math.Float32frombits(p) / int8Max
	switch {
	case scale < 0x1p-126: // its inverse may be infinite
		return 0
	case scale*int8Max > math.MaxFloat32: // rounded up
		return math.Float32frombits(math.Float32bits(scale) - 1)
	}
	return scale
}

// quantize writes a block.
func quantize(dst []byte, src []float32, scale float32, rest bool) {
	if !(scale > 0) {
		clear(dst)
		return
	}
	inv := 1 / scale
	dst = dst[:len(src)]
	for len(src) >= 8 {
		s := src[:8:8]
		a, b, c, d := float32(s[0]*inv)+roundMagic, float32(s[1]*inv)+roundMagic, float32(s[2]*inv)+roundMagic, float32(s[3]*inv)+roundMagic
		e, f, g, h := float32(s[4]*inv)+roundMagic, float32(s[5]*inv)+roundMagic, float32(s[6]*inv)+roundMagic, float32(s[7]*inv)+roundMagic
		lo := low(a) | low(b)<<8 | low(c)<<16 | low(d)<<24
		hi := low(e) | low(f)<<8 | low(g)<<16 | low(h)<<24
		binary.LittleEndian.PutUint64(dst, uint64(lo)|uint64(hi)<<32)
		if rest {
			s[0] -= float32((a - roundMagic) * scale)
			s[1] -= float32((b - roundMagic) * scale)
			s[2] -= float32((c - roundMagic) * scale)
			s[3] -= float32((d - roundMagic) * scale)
			s[4] -= float32((e - roundMagic) * scale)
			s[5] -= float32((f - roundMagic) * scale)
			s[6] -= float32((g - roundMagic) * scale)
			s[7] -= float32((h - roundMagic) * scale)
		}
		dst, src = dst[8:], src[8:]
	}
	for i, x := range src {
		a := float32(x*inv) + roundMagic
		dst[i] = byte(math.Float32bits(a))
		if rest {
			src[i] -= float32((a - roundMagic) * scale)
		}
	}
}

func low(x float32) uint32 { return math.Float32bits(x) & 0xff }

// Decode implements Codec.
func (c Int8) Decode(dst []float32, src []byte) error { return c.decode(dst, src, false) }

// DecodeAdd implements Codec.
func (c Int8) DecodeAdd(dst []float32, src []byte) error { return c.decode(dst, src, true) }

func (c Int8) decode(dst []float32, src []byte, add bool) error {
	if len(src) != c.Bytes(len(dst)) {
		return lengthError(c, len(dst), len(src))
	}
	for len(dst) > 0 {
		b := dst[:min(c.Block, len(dst))]
		bits := binary.LittleEndian.Uint32(src)
		scale := math.Float32frombits(bits)
		if bits != quietNaN && (bits&signBit != 0 || !(scale*int8Max <= math.MaxFloat32)) {
			return fmt.Errorf("%w: %v with a scale of %v", ErrBytes, c, scale)
		}
		q := src[4 : 4+len(b)]
		if hasMin(q) {
			return fmt.Errorf("%w: %v with -128", ErrBytes, c)
		}
		if add {
			expandAdd(b, q, scale)
		} else {
			expand(b, q, scale)
		}
		dst, src = dst[len(b):], src[4+len(b):]
	}
	return nil
}

// hasMin reports whether a byte is -128.
func hasMin(q []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	var found uint64
	for len(q) >= 8 {
		x := binary.LittleEndian.Uint64(q) ^ tops // a byte of zero now
		found |= (x - ones) &^ x & tops
		q = q[8:]
	}
	for _, b := range q {
		if b == 0x80 {
			found = 1
		}
	}
	return found != 0
}

// unbias turns a byte into a float32: exact.
func unbias(b byte) float32 { return float32(int32(int8(b))) }

func expand(dst []float32, q []byte, scale float32) {
	for len(dst) >= 4 && len(q) >= 4 {
		d := dst[:4:4]
		d[0] = unbias(q[0]) * scale
		d[1] = unbias(q[1]) * scale
		d[2] = unbias(q[2]) * scale
		d[3] = unbias(q[3]) * scale
		dst, q = dst[4:], q[4:]
	}
	for i := range dst {
		dst[i] = unbias(q[i]) * scale
	}
}

func expandAdd(dst []float32, q []byte, scale float32) {
	for len(dst) >= 4 && len(q) >= 4 {
		d := dst[:4:4]
		d[0] += float32(unbias(q[0]) * scale)
		d[1] += float32(unbias(q[1]) * scale)
		d[2] += float32(unbias(q[2]) * scale)
		d[3] += float32(unbias(q[3]) * scale)
		dst, q = dst[4:], q[4:]
	}
	for i := range dst {
		dst[i] += float32(unbias(q[i]) * scale)
	}
}
