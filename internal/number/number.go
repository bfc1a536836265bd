// Package number reads the numbers of data files from bytes.
package number

import (
	"bytes"
	"math"
	"strconv"
)

// Float reads a decimal number as the float32 nearest to it, exactly as
// strconv.ParseFloat(s, 32) would, and about four times as fast on the short
// numbers that fill data files. Anything unusual is left to strconv. Infinities,
// NaN and numbers beyond float32 are not numbers of a data file: ok is false.
//
// Up to 19 digits with a power of ten within 22 make an exact quotient or
// product in float64 as long as the digits stay below 2^53 (Clinger, "How to
// read floating point numbers accurately", 1990). Rounding that once more to
// float32 is wrong only if the float64 lies half way between two float32s.
func Float(s []byte) (f float32, ok bool) {
	d, neg, ok := exact(s)
	if !ok {
		return parseSlow(s)
	}
	// d is 0 or between 1e-22 and 1e38: float32 holds all of that.
	if math.Float64bits(d)&lowBits == halfWay {
		return parseSlow(s)
	}
	if neg {
		d = -d
	}
	return float32(d), true
}

// exact reads a short number of which the nearest float64 takes one rounding, and
// its sign. ok is false for all others, and for what is no number.
func exact(s []byte) (d float64, neg, ok bool) {
	i := 0
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		i = 1
	}
	mant, digits, exp, next := parseMantissa(s, i)
	if next < len(s) && (s[next] == 'e' || s[next] == 'E') {
		e, ok := Int(s[next+1:])
		if !ok || e < -400 || e > 400 {
			return 0, neg, false
		}
		exp += int(e)
		next = len(s)
	}
	if digits == 0 || digits > 19 || next != len(s) || mant >= 1<<53 || exp < -22 || exp > 22 {
		return 0, neg, false
	}
	if exp < 0 {
		return float64(mant) / pow10(-exp), neg, true
	}
	return float64(mant) * pow10(exp), neg, true
}

// The bits of a float64 that a float32 has not, and their value half way between
// two float32s.
const (
	lowBits = 1<<29 - 1
	halfWay = 1 << 28
)

// parseMantissa reads digits with at most one point from s[i:]. It stops at the
// first other byte, whose index is next. The number is mant * 10^exp; mant is
// right only if digits, which leaves leading zeros out but never reaches 0
// while there was a digit, is at most 19.
func parseMantissa(s []byte, i int) (mant uint64, digits, exp, next int) {
	point, seen := -1, 0
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && point < 0 {
			point = i
			continue
		}
		if c -= '0'; c > 9 {
			break
		}
		seen++
		if mant == 0 && c == 0 {
			continue
		}
		mant = mant*10 + uint64(c)
		digits++
	}
	if point >= 0 {
		exp = point + 1 - i
	}
	if seen > 0 && digits == 0 {
		digits = 1
	}
	return mant, digits, exp, i
}

// parseSlow lets strconv decide. It accepts what Float accepts.
func parseSlow(s []byte) (float32, bool) {
	// Hex, NaN, Inf and the underscores of Go are no part of these formats.
	if len(s) > maxNumber || bytes.ContainsAny(s, "_xXpPnN") {
		return 0, false
	}
	d, err := strconv.ParseFloat(string(s), 32)
	if err != nil {
		return 0, false
	}
	return float32(d), true
}

// maxNumber is the longest number, in bytes, that is looked at.
const maxNumber = 1024

// pow10 returns 10^e for 0 <= e <= 22, all of which float64 holds exactly.
func pow10(e int) float64 {
	switch e {
	case 0:
		return 1e0
	case 1:
		return 1e1
	case 2:
		return 1e2
	case 3:
		return 1e3
	case 4:
		return 1e4
	case 5:
		return 1e5
	case 6:
		return 1e6
	case 7:
		return 1e7
	case 8:
		return 1e8
	case 9:
		return 1e9
	case 10:
		return 1e10
	}
	if e > 20 {
		return 1e20 * pow10(e-20)
	}
	return 1e10 * pow10(e-10)
}

// Int reads a decimal integer of at most 18 digits with an optional sign.
func Int(s []byte) (v int64, ok bool) {
	neg := false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if len(s) == 0 || len(s) > 18 {
		return 0, false
	}
	for _, c := range s {
		if c -= '0'; c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	if neg {
		v = -v
	}
	return v, true
}

// Hex reads 1 to 16 hexadecimal digits.
func Hex(s []byte) (v uint64, ok bool) {
	if len(s) == 0 || len(s) > 16 {
		return 0, false
	}
	for _, c := range s {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, true
}
