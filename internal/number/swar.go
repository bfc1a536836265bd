package number

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Pad is how many bytes behind the start of a number the functions of this file
// may look at: a buffer ends at least that much after its last line.
const Pad = 32

// Eight digits at a time: the bytes of a word are looked at together ("SIMD within
// a register": Lamport, "Multiple byte processing with full-word instructions",
// 1975). The lowest byte of a word is the first of the text.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
	zeros    = '0' * eachByte
)

// Word is the eight bytes of s from i on.
func Word(s []byte, i int) uint64 { return binary.LittleEndian.Uint64(s[i:]) }

// NonDigits has the highest bit set of every byte of a word that is no digit.
func NonDigits(w uint64) uint64 {
	d := w ^ zeros // digits become 0 to 9
	return (d&^highBits + 0x76*eachByte | d) & highBits
}

// First is where the first byte of a word is whose highest bit is set, 8 if none is.
func First(marks uint64) int { return bits.TrailingZeros64(marks) >> 3 }

// Leading is the number that the first n bytes of a word are, which are digits; n is
// 1 to 8.
func Leading(w uint64, n int) uint64 {
	// Leading zeros come in; what stands behind the digits falls out.
	return eight((w ^ zeros) << ((8 - n) * 8 & 63))
}

// Byte is the byte of a word at k, or for 8 its first.
func Byte(w uint64, k int) byte { return byte(w >> (k * 8 & 63)) }

// Pointed is the number that the first end bytes of a word are, without the point
// that they have at point; end is 2 to 8.
func Pointed(w uint64, point, end int) uint64 {
	low := uint64(1)<<(point*8&63) - 1
	d := w ^ zeros
	return eight((d&low | d>>8&^low) << ((9 - end) * 8 & 63))
}

// digits8 returns the digits that a word begins with, as a number, and how many.
func digits8(w uint64) (v uint64, n int) {
	if n = First(NonDigits(w)); n == 0 {
		return 0, 0
	}
	return Leading(w, n), n
}

// eight joins eight digits, of which the lowest byte is the first, to a number.
func eight(d uint64) uint64 {
	d = d*10 + d>>8
	d = d&0xff00ff00ff00ff*100 + d>>16&0xff00ff00ff00ff
	return d&0xffff*10000 + d>>32&0xffff
}

// Digits returns the number of at most 15 digits that s has at i, and how many
// digits that are: 0 if there is none, 16 if there are more. s reaches Pad bytes
// beyond i.
func Digits(s []byte, i int) (v uint64, n int) {
	w := Word(s, i)
	if other := NonDigits(w); other != 0 {
		if n = First(other); n == 0 {
			return 0, 0
		}
		return Leading(w, n), n
	}
	low, k := digits8(Word(s, i+8))
	return Leading(w, 8)*whole(k) + low, n + 8 + k
}

// whole is 10^k for k up to 8.
func whole(k int) uint64 {
	return [...]uint64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000}[k]
}

// Powers is what Prefix divides by: the powers of ten up to 10^15, and of them as
// float32 those up to 10^10, which it holds exactly.
type Powers struct {
	wide   [16]float64
	narrow [16]float32
}

// Short is m divided by 10^k, for m below 2^24 and k up to 10: both are exact in
// float32, so the quotient is rounded once.
func (p *Powers) Short(m uint64, k int) float32 { return float32(int32(m)) / p.narrow[k&15] }

// NewPowers returns the powers.
func NewPowers() *Powers {
	p := new(Powers)
	for i := range p.wide {
		p.wide[i], p.narrow[i] = pow10(i), float32(pow10(i))
	}
	return p
}

// Prefix reads the number that s has at i, as Float would, if it is a plain one:
// up to 7 digits, or up to 14 with a point behind one of the first 7, followed by
// a space, a tab or a line end. next is where that stands. What is not plain may
// still be a number: ok is false and the caller asks Float. s reaches Pad bytes
// beyond i.
func (p *Powers) Prefix(s []byte, i int) (f float32, next int, ok bool) {
	sign := uint32(0)
	if s[i] == '-' {
		sign = 1 << 31
		i++
	}
	w := Word(s, i)
	d := w ^ zeros
	other := NonDigits(w)
	point := bits.TrailingZeros64(other) &^ 7 // in bits
	mant, fraction := uint64(0), 0
	if s[i+point>>3] == '.' {
		// Up to 7 digits about the point: take it out and read them at once.
		end := bits.TrailingZeros64(other&(other-1)) &^ 7
		low := uint64(1)<<point - 1
		d = d&low | d>>8&^low
		mant, fraction = eight(d<<((72-end)&63)), (end-point)>>3-1
		i += end >> 3
		if s[i] > ' ' {
			mant, fraction, i, ok = p.long(s, i, mant, fraction, end)
			if !ok {
				return 0, 0, false
			}
		}
		if end == 8 || point == 64 {
			return 0, 0, false // no digit, or eight and more before the point
		}
	} else {
		mant = eight(d << ((64 - point) & 63))
		i += point >> 3
		if point == 0 || point == 64 || s[i] > ' ' {
			return 0, 0, false
		}
	}
	if mant < 1<<24 && fraction <= 10 {
		f = p.Short(mant, fraction)
	} else {
		v := float64(mant) / p.wide[fraction&15]
		if math.Float64bits(v)&lowBits == halfWay {
			return 0, 0, false
		}
		f = float32(v)
	}
	return math.Float32frombits(math.Float32bits(f) | sign), i, true
}

// long goes on with a fraction that fills the first word.
func (p *Powers) long(s []byte, i int, mant uint64, fraction, end int) (m uint64, digits, next int, ok bool) {
	if end != 64 {
		return 0, 0, 0, false
	}
	low, n := digits8(Word(s, i))
	m, digits, next = mant*whole(n)+low, fraction+n, i+n
	return m, digits, next, n > 0 && n < 8 && digits < len(p.wide) && m < 1<<53 && s[next] <= ' '
}

// NonHex has the highest bit set of every byte of a word that is no hexadecimal digit.
func NonHex(w uint64) uint64 {
	d := w ^ zeros
	l := (w | 0x20*eachByte) ^ 0x60*eachByte // letters of either case become 1 to 6
	noDigit := d&^highBits + 0x76*eachByte | d
	noLetter := l&^highBits + 0x79*eachByte | ^(l&^highBits + 0x7f*eachByte) | l
	return noDigit & noLetter & highBits
}

// HexWord is the number that a word of 8 hexadecimal digits is.
func HexWord(w uint64) uint64 {
	// A letter's low bits are 1 to 6 and its bit 6 is set: 9 more makes 10 to 15.
	v := bits.ReverseBytes64(w&(0x0f*eachByte) + w>>6&eachByte*9)
	v = (v | v>>4) & 0xff00ff00ff00ff
	v = (v | v>>8) & 0xffff0000ffff
	return v&0xffff | v>>16
}
