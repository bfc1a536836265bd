package number

import (
	"bytes"
	"math"
	"strconv"
)

// Double reads a decimal number as the float64 nearest to it, exactly as
// strconv.ParseFloat(s, 64) would, and without allocating for the short numbers
// that fill data files. It accepts what Float accepts, up to the range of float64.
func Double(s []byte) (f float64, ok bool) {
	i, neg := 0, false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		i = 1
	}
	mant, digits, exp, next := parseMantissa(s, i)
	if next < len(s) && (s[next] == 'e' || s[next] == 'E') {
		e, ok := Int(s[next+1:])
		if !ok || e < -400 || e > 400 {
			return doubleSlow(s)
		}
		exp += int(e)
		next = len(s)
	}
	if digits == 0 || next != len(s) {
		return 0, false
	}
	// As in Float: both operands are exact, so the result is rounded once.
	if digits > 19 || mant >= 1<<53 || exp < -22 || exp > 22 {
		return doubleSlow(s)
	}
	d := float64(mant)
	if exp < 0 {
		d /= pow10(-exp)
	} else {
		d *= pow10(exp)
	}
	if neg {
		d = math.Copysign(d, -1)
	}
	return d, true
}

// doubleSlow lets strconv decide.
func doubleSlow(s []byte) (float64, bool) {
	if len(s) > maxNumber || bytes.ContainsAny(s, "_xXpPnN") {
		return 0, false
	}
	d, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		return 0, false
	}
	return d, true
}
