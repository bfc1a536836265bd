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
	d, neg, ok := exact(s)
	if !ok {
		return doubleSlow(s)
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
