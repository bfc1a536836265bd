package compress

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// TopK keeps the k = ceil(Density n) elements of largest magnitude, exactly, and drops the
// others; of equal magnitudes those come first that stand first. NaN counts as larger than
// an infinity, and that as larger than all numbers, so that one is kept if there is any.
// It needs feedback.
//
// The bytes are the k values in the order of their places, then the places, each cut into
// its l = floor(log2(n/k)) lower bits and the rest: the lower bits one behind the other,
// then k + floor((n-1)/2^l) bits of which number (place>>l)+i is set for the i-th place.
// Bits are filled from the lowest up. At a density of 1 % a place costs 8.6 bits.
//
// Source: A. Aji and K. Heafield, "Sparse Communication for Distributed Gradient
// Descent", 2017, and Y. Lin et al., "Deep Gradient Compression", 2018, without their
// corrections of momentum; the places as of P. Elias, "Efficient Storage and Retrieval
// by Content and Address of Static Files", 1974.
type TopK struct {
	density float64
	// counts are elements by a digit of their magnitude.
	counts [4 << headBits]uint32
	// able are the elements that may be among the k, by place.
	able []int
}

// A magnitude of 31 bits is sorted by its first 9 (the exponent and a bit), then by twice 11.
const (
	headBits = 9
	tailBits = 11
)

// NewTopK checks the density, which must be in (0, 1].
func NewTopK(density float64) (*TopK, error) {
	if !(density > 0 && density <= 1) {
		return nil, fmt.Errorf("compress: topk with a density of %v: want more than 0, up to 1", density)
	}
	return &TopK{density: density}, nil
}

// String implements Codec.
func (t *TopK) String() string { return fmt.Sprintf("topk(%v)", t.density) }

// Kept is how many of n elements are kept.
func (t *TopK) Kept(n int) int { return min(n, int(math.Ceil(t.density*float64(n)))) }

// places is how the places of k of n elements are laid out.
type places struct {
	k, low      int // low is l
	lowAt, high int // bytes at which the lower bits and the others begin
	end         int
	highBits    int
}

func (t *TopK) layout(n int) places {
	p := places{k: t.Kept(n)}
	if p.k == 0 {
		return p
	}
	p.low = bits.Len(uint(n/p.k)) - 1
	p.lowAt = 4 * p.k
	p.high = p.lowAt + ceilDiv(p.k*p.low, 8)
	p.highBits = p.k + (n-1)>>p.low
	p.end = p.high + ceilDiv(p.highBits, 8)
	return p
}

// Bytes implements Codec: 4k + ceil(kl/8) + ceil((k + floor((n-1)/2^l))/8).
func (t *TopK) Bytes(n int) int { return t.layout(n).end }

// Encode implements Codec. It reads the vector twice, and those elements again that are
// half as large as the smallest of the k, or larger.
func (t *TopK) Encode(dst []byte, src []float32) int { return t.encode(dst, src, false) }

// EncodeRest implements Codec.
func (t *TopK) EncodeRest(dst []byte, src []float32) int { return t.encode(dst, src, true) }

func (t *TopK) encode(dst []byte, src []float32, rest bool) int {
	p := t.layout(len(src))
	if p.k == 0 {
		return 0
	}
	least, ties := t.threshold(src, p.k)
	values, high := dst[:p.lowAt], dst[p.high:p.end]
	low := bitWriter{dst: dst[p.lowAt:p.high]}
	clear(high)
	mask := 1<<p.low - 1
	j := 0
	for _, i := range t.able {
		b := math.Float32bits(src[i])
		if b&^signBit < least {
			continue
		}
		if b&^signBit == least {
			if ties == 0 {
				continue
			}
			ties--
		}
		binary.LittleEndian.PutUint32(values[4*j:], b)
		low.put(uint64(i&mask), p.low)
		at := i>>p.low + j
		high[at>>3] |= 1 << (at & 7)
		j++
		if rest {
			src[i] = 0
		}
	}
	low.flush()
	return p.end
}

// threshold finds the k-th largest magnitude, and how many elements of just this
// magnitude are among the k: a radix selection. It leaves all elements in able that are as
// large, and some others.
func (t *TopK) threshold(src []float32, k int) (least uint32, ties int) {
	t.count(src)
	head, left := t.find(1<<headBits, k)
	least = uint32(head) << (2 * tailBits)
	t.collect(src, least, k-left+int(t.counts[head]))
	for _, shift := range []int{tailBits, 0} {
		clear(t.counts[:])
		for _, i := range t.able {
			if b := math.Float32bits(src[i]) &^ signBit; b>>(shift+tailBits) == least>>(shift+tailBits) {
				t.counts[b>>shift&(1<<tailBits-1)]++
			}
		}
		digit := 0
		digit, left = t.find(1<<tailBits, left)
		least |= uint32(digit) << shift
	}
	return least, left
}

// count sorts the elements by the head of their magnitude, in four tables, so that equal
// neighbours do not wait for each other.
func (t *TopK) count(src []float32) {
	const n, shift = 1 << headBits, 32 - headBits
	clear(t.counts[:])
	c := &t.counts
	for len(src) >= 4 {
		s := src[:4:4]
		c[math.Float32bits(s[0])<<1>>shift]++
		c[n+math.Float32bits(s[1])<<1>>shift]++
		c[2*n+math.Float32bits(s[2])<<1>>shift]++
		c[3*n+math.Float32bits(s[3])<<1>>shift]++
		src = src[4:]
	}
	for _, x := range src {
		c[math.Float32bits(x)<<1>>shift]++
	}
	for i := range n {
		c[i] += c[n+i] + c[2*n+i] + c[3*n+i]
	}
}

// find returns the digit, of those below n, of the k-th largest element, and which of those
// with this digit it is.
func (t *TopK) find(n, k int) (digit, left int) {
	for digit = n - 1; digit > 0; digit-- {
		c := int(t.counts[digit])
		if c >= k {
			break
		}
		k -= c
	}
	return digit, k
}

// collect finds the elements from a magnitude up, of which there are n.
func (t *TopK) collect(src []float32, least uint32, n int) {
	if cap(t.able) < n {
		t.able = make([]int, n+n/4)
	}
	able := t.able[:n]
	j := 0
	for i, x := range src {
		if math.Float32bits(x)&^signBit >= least {
			able[j] = i
			j++
		}
	}
	t.able = able
}

// Decode implements Codec.
func (t *TopK) Decode(dst []float32, src []byte) error {
	clear(dst)
	return t.DecodeAdd(dst, src)
}

// DecodeAdd implements Codec. It touches no more than the k elements.
func (t *TopK) DecodeAdd(dst []float32, src []byte) error {
	if len(src) != t.Bytes(len(dst)) {
		return lengthError(t, len(dst), len(src))
	}
	p := t.layout(len(dst))
	if p.k == 0 {
		return nil
	}
	values, high := src[:p.lowAt], src[p.high:p.end]
	low := bitReader{src: src[p.lowAt:p.high]}
	j, last := 0, -1
	for at := 0; len(high) > 0; at += 64 {
		var w uint64
		w, high = word(high)
		for ; w != 0; w &= w - 1 {
			if j == p.k {
				return fmt.Errorf("%w: %v with more places than %d", ErrBytes, t, p.k)
			}
			i := (at+bits.TrailingZeros64(w)-j)<<p.low | int(low.take(p.low))
			if i <= last || i >= len(dst) {
				return fmt.Errorf("%w: %v of %d elements with place %d after %d", ErrBytes, t, len(dst), i, last)
			}
			dst[i] += math.Float32frombits(binary.LittleEndian.Uint32(values[4*j:]))
			last = i
			j++
		}
	}
	if j < p.k || low.acc != 0 {
		return fmt.Errorf("%w: %v with %d places of %d, or bits beyond the last", ErrBytes, t, j, p.k)
	}
	return nil
}

// word takes the next eight bytes, zeros beyond the last.
func word(b []byte) (w uint64, left []byte) {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b), b[8:]
	}
	for i, x := range b {
		w |= uint64(x) << (8 * i)
	}
	return w, nil
}

// bitWriter writes numbers of up to 56 bits one behind the other.
type bitWriter struct {
	dst []byte
	acc uint64
	n   int
}

func (w *bitWriter) put(v uint64, width int) {
	w.acc |= v << w.n
	for w.n += width; w.n >= 8; w.n -= 8 {
		w.dst[0] = byte(w.acc)
		w.acc >>= 8
		w.dst = w.dst[1:]
	}
}

// flush writes what is left of the last byte.
func (w *bitWriter) flush() {
	if w.n > 0 {
		w.dst[0] = byte(w.acc)
	}
}

// bitReader reads what a bitWriter wrote. acc holds what was read and not taken.
type bitReader struct {
	src []byte
	acc uint64
	n   int
}

func (r *bitReader) take(width int) uint64 {
	for ; r.n < width; r.n += 8 {
		r.acc |= uint64(r.src[0]) << r.n
		r.src = r.src[1:]
	}
	v := r.acc & (1<<width - 1)
	r.acc >>= width
	r.n -= width
	return v
}
