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

// digits returns the digits that a word begins with, as a number, and how many.
func digits(w uint64) (v uint64, n int) {
	d := w ^ zeros // digits become 0 to 9
	other := (d&^highBits + 0x76*eachByte | d) & highBits
	n = bits.TrailingZeros64(other) >> 3
	if n == 0 {
		return 0, 0
	}
	d <<= (8 - n) * 8 & 63 // leading zeros; what comes behind falls out
	d = d*10 + d>>8
	d = d&0xff00ff00ff00ff*100 + d>>16&0xff00ff00ff00ff
	d = d & 0xffff0000ffff
	return (d&0xffff)*10000 + d>>32, n
}

func word(s []byte, i int) uint64 { return binary.LittleEndian.Uint64(s[i:]) }

// Digits returns the number of at most 15 digits that s has at i, and how many
// digits that are: 0 if there is none, 16 if there are more. s reaches Pad bytes
// beyond i.
func Digits(s []byte, i int) (v uint64, n int) {
	if v, n = digits(word(s, i)); n < 8 {
		return v, n
	}
	low, k := digits(word(s, i+8))
	return v*uint64(whole(k)) + low, n + k
}

// whole is 10^k for k up to 8.
func whole(k int) int {
	switch k {
	case 0:
		return 1
	case 1:
		return 10
	case 2:
		return 100
	case 3:
		return 1000
	case 4:
		return 10_000
	case 5:
		return 100_000
	case 6:
		return 1_000_000
	case 7:
		return 10_000_000
	}
	return 100_000_000
}

// Prefix reads the number that s has at i, as Float would, if it is a plain one:
// up to 7 digits before a point and 15 after it, followed by a space, a tab or a
// line end. next is where that stands. What is not plain may still be a number:
// ok is false and the caller asks Float. s reaches Pad bytes beyond i.
func Prefix(s []byte, i int) (f float32, next int, ok bool) {
	neg := s[i] == '-'
	if neg {
		i++
	}
	mant, n := digits(word(s, i))
	i += n
	fraction := 0
	if s[i] == '.' {
		low := uint64(0)
		low, fraction = Digits(s, i+1)
		i += 1 + fraction
		if fraction > 15 {
			return 0, 0, false
		}
		mant = mant*scale(fraction) + low
	}
	if n+fraction == 0 || n+fraction > 19 || n > 7 || s[i] > ' ' || mant >= 1<<53 {
		return 0, 0, false
	}
	d := float64(mant)
	if fraction > 0 {
		d /= pow10(fraction)
	}
	if math.Float64bits(d)&lowBits == halfWay {
		return 0, 0, false
	}
	if neg {
		d = -d
	}
	return float32(d), i, true
}

// scale is 10^k for k up to 15.
func scale(k int) uint64 {
	if k > 8 {
		return uint64(whole(8) * whole(k-8))
	}
	return uint64(whole(k))
}

// Hex8 reads the 8 hexadecimal digits that a word consists of.
func Hex8(s []byte, i int) (v uint64, ok bool) {
	w := word(s, i)
	d := w ^ zeros
	l := (w | 0x20*eachByte) ^ 0x60*eachByte // letters of either case become 1 to 6
	noDigit := d&^highBits + 0x76*eachByte | d
	l7 := l &^ highBits
	noLetter := l7 + 0x79*eachByte | ^(l7 + 0x7f*eachByte) | l
	if noDigit&noLetter&highBits != 0 {
		return 0, false
	}
	// A letter's low bits are 1 to 6 and its bit 6 is set: 9 more makes 10 to 15.
	v = bits.ReverseBytes64(w&(0x0f*eachByte) + w>>6&eachByte*9)
	v = (v | v>>4) & 0xff00ff00ff00ff
	v = (v | v>>8) & 0xffff0000ffff
	return v&0xffff | v>>16, true
}
