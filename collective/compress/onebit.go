package compress

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// OneBit keeps the sign of each element, and of each block the mean of its positive
// and that of its negative elements, which stand for them: ceil(n/8) + 8 ceil(n/Block)
// bytes. The sign bit decides: 0 counts as positive, -0 as negative. It needs
// feedback: without, training does not converge.
//
// The bytes of a block are the two means, positive first, then its sign bits, 1 for
// negative, the first element in the lowest bit. A block that holds NaN or an infinity
// has two means of NaN, and is all NaN when decoded.
//
// Source: F. Seide, H. Fu, J. Droppo, G. Li and D. Yu, "1-Bit Stochastic Gradient
// Descent and its Application to Data-Parallel Distributed Training of Speech DNNs",
// 2014: threshold 0 and the means of what falls on either side (3.1), here by block of
// a vector, there by column of a matrix.
type OneBit struct {
	// Block is how many elements share their means, a multiple of 64; at 512, an element
	// costs 1.125 bits.
	Block int
}

// NewOneBit checks the block, which must be a positive multiple of 64.
func NewOneBit(block int) (OneBit, error) {
	if block < 64 || block%64 != 0 {
		return OneBit{}, fmt.Errorf("compress: onebit with blocks of %d elements: want a multiple of 64", block)
	}
	return OneBit{Block: block}, nil
}

// String implements Codec.
func (c OneBit) String() string { return fmt.Sprintf("onebit(%d)", c.Block) }

// Bytes implements Codec: ceil(n/8) + 8 ceil(n/Block).
func (c OneBit) Bytes(n int) int { return ceilDiv(n, 8) + 8*ceilDiv(n, c.Block) }

func (c OneBit) piece() int { return c.Block }

// Encode implements Codec.
func (c OneBit) Encode(dst []byte, src []float32) int { return c.encode(dst, src, false) }

// EncodeRest implements Codec.
func (c OneBit) EncodeRest(dst []byte, src []float32) int { return c.encode(dst, src, true) }

func (c OneBit) encode(dst []byte, src []float32, rest bool) int {
	n := c.Bytes(len(src))
	for len(src) > 0 {
		b := src[:min(c.Block, len(src))]
		signs := dst[8 : 8+ceilDiv(len(b), 8)]
		m := means(b, splitSigns(signs, b))
		binary.LittleEndian.PutUint32(dst, math.Float32bits(m[0]))
		binary.LittleEndian.PutUint32(dst[4:], math.Float32bits(m[1]))
		if rest {
			subtract(b, signs, m)
		}
		dst, src = dst[8+len(signs):], src[len(b):]
	}
	return n
}

// sums are those of the positive and of the negative elements of a block.
type sums struct {
	positive, negative float32
	negatives          int // how many are negative
}

// splitSigns writes the sign bits of a block and sums either side.
func splitSigns(dst []byte, src []float32) sums {
	var p0, p1, p2, p3, n0, n1, n2, n3 float32
	negatives := 0
	for len(src) >= 8 && len(dst) >= 1 {
		s := src[:8:8]
		a, b, c, d := math.Float32bits(s[0]), math.Float32bits(s[1]), math.Float32bits(s[2]), math.Float32bits(s[3])
		e, f, g, h := math.Float32bits(s[4]), math.Float32bits(s[5]), math.Float32bits(s[6]), math.Float32bits(s[7])
		p0 += positive(a)
		n0 += negative(a)
		p1 += positive(b)
		n1 += negative(b)
		p2 += positive(c)
		n2 += negative(c)
		p3 += positive(d)
		n3 += negative(d)
		p0 += positive(e)
		n0 += negative(e)
		p1 += positive(f)
		n1 += negative(f)
		p2 += positive(g)
		n2 += negative(g)
		p3 += positive(h)
		n3 += negative(h)
		w := a>>31 | b>>31<<1 | c>>31<<2 | d>>31<<3 | e>>31<<4 | f>>31<<5 | g>>31<<6 | h>>31<<7
		dst[0] = byte(w)
		negatives += bits.OnesCount8(byte(w))
		dst, src = dst[1:], src[8:]
	}
	if len(src) > 0 {
		w := uint32(0)
		for i, x := range src {
			b := math.Float32bits(x)
			p0 += positive(b)
			n0 += negative(b)
			w |= b >> 31 << i
		}
		dst[0] = byte(w)
		negatives += bits.OnesCount8(byte(w))
	}
	return sums{positive: (p0 + p1) + (p2 + p3), negative: (n0 + n1) + (n2 + n3), negatives: negatives}
}

// positive is the element if its sign bit is not set, and 0 otherwise; negative is the
// other half.
func positive(b uint32) float32 { return math.Float32frombits(b &^ uint32(int32(b)>>31)) }
func negative(b uint32) float32 { return math.Float32frombits(b & uint32(int32(b)>>31)) }

// means divides the sums of a block; both are NaN if an element is not finite.
func means(block []float32, s sums) [2]float32 {
	m := [2]float32{mean(float64(s.positive), len(block)-s.negatives), mean(float64(s.negative), s.negatives)}
	if Finite(m[:]) {
		return m
	}
	// An element is not finite, or the sum of finite ones is too large for a float32.
	var p, n float64
	for _, x := range block {
		b := math.Float32bits(x)
		p += float64(positive(b))
		n += float64(negative(b))
	}
	m = [2]float32{mean(p, len(block)-s.negatives), mean(n, s.negatives)}
	if !Finite(m[:]) {
		nan := math.Float32frombits(quietNaN)
		return [2]float32{nan, nan}
	}
	return m
}

// mean is sum/n, 0 of none.
func mean(sum float64, n int) float32 {
	if n == 0 {
		return 0
	}
	return float32(sum / float64(n))
}

// subtract takes from each element the mean that stands for it.
func subtract(b []float32, signs []byte, m [2]float32) {
	for len(b) >= 8 && len(signs) >= 1 {
		s, w := b[:8:8], signs[0]
		s[0] -= m[w&1]
		s[1] -= m[w>>1&1]
		s[2] -= m[w>>2&1]
		s[3] -= m[w>>3&1]
		s[4] -= m[w>>4&1]
		s[5] -= m[w>>5&1]
		s[6] -= m[w>>6&1]
		s[7] -= m[w>>7]
		b, signs = b[8:], signs[1:]
	}
	for i := range b {
		b[i] -= m[signs[0]>>i&1]
	}
}

// Decode implements Codec.
func (c OneBit) Decode(dst []float32, src []byte) error { return c.decode(dst, src, false) }

// DecodeAdd implements Codec.
func (c OneBit) DecodeAdd(dst []float32, src []byte) error { return c.decode(dst, src, true) }

func (c OneBit) decode(dst []float32, src []byte, add bool) error {
	if len(src) != c.Bytes(len(dst)) {
		return lengthError(c, len(dst), len(src))
	}
	for len(dst) > 0 {
		b := dst[:min(c.Block, len(dst))]
		signs := src[8 : 8+ceilDiv(len(b), 8)]
		p, n := binary.LittleEndian.Uint32(src), binary.LittleEndian.Uint32(src[4:])
		m := [2]float32{math.Float32frombits(p), math.Float32frombits(n)}
		if (p != quietNaN || n != quietNaN) && (p >= infinity || n&^signBit >= infinity || m[1] > 0) {
			return fmt.Errorf("%w: %v with means %v and %v", ErrBytes, c, m[0], m[1])
		}
		if used := len(b) % 8; used != 0 && signs[len(signs)-1]>>used != 0 {
			return fmt.Errorf("%w: %v with bits beyond the last element", ErrBytes, c)
		}
		if add {
			spreadAdd(b, signs, m)
		} else {
			spread(b, signs, m)
		}
		dst, src = dst[len(b):], src[8+len(signs):]
	}
	return nil
}

// spread fills a block with its means, four elements at a time from a table of all
// that four bits can say.
func spread(b []float32, signs []byte, m [2]float32) {
	var four [16][4]float32
	for i := range four {
		four[i] = [4]float32{m[i&1], m[i>>1&1], m[i>>2&1], m[i>>3&1]}
	}
	for len(b) >= 8 && len(signs) >= 1 {
		w := signs[0]
		*(*[4]float32)(b) = four[w&15]
		*(*[4]float32)(b[4:]) = four[w>>4]
		b, signs = b[8:], signs[1:]
	}
	for i := range b {
		b[i] = m[signs[0]>>i&1]
	}
}

// spreadAdd adds its mean to each element.
func spreadAdd(b []float32, signs []byte, m [2]float32) {
	for len(b) >= 8 && len(signs) >= 1 {
		s, w := b[:8:8], signs[0]
		s[0] += m[w&1]
		s[1] += m[w>>1&1]
		s[2] += m[w>>2&1]
		s[3] += m[w>>3&1]
		s[4] += m[w>>4&1]
		s[5] += m[w>>5&1]
		s[6] += m[w>>6&1]
		s[7] += m[w>>7]
		b, signs = b[8:], signs[1:]
	}
	for i := range b {
		b[i] += m[signs[0]>>i&1]
	}
}
