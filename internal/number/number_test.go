package number_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/internal/number"
)

// TestFloatExact holds number.Float against strconv on numbers of all shapes.
func TestFloatExact(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, s string) {
		got, ok := number.Float([]byte(s))
		want, err := strconv.ParseFloat(s, 32)
		if wantOK := err == nil && !math.IsNaN(want) && !math.IsInf(want, 0); ok != wantOK ||
			(ok && math.Float32bits(got) != math.Float32bits(float32(want))) {
			t.Fatalf("%q: got %v, %v, strconv has %v, %v", s, got, ok, float32(want), err)
		}
	}
	for _, s := range []string{
		"", "-", "+", ".", "-.", "e5", "1e", "1e+", "0", "-0", "+0.0", "00012", ".5", "5.", "1..2", "1.2.3", "1e5", "1E-5", "1e400",
		"3.4028235e38", "3.4028236e38", "3.5e38", "1.4e-45", "7e-46", "1.1754942e-38", "1.17549435e-38",
		"16777217", "16777219", "33554434.000001", "16777217.0000000001", "9007199254740993", "1.00000017881393432617187499",
		"1.00000017881393432617187500", "1.00000017881393432617187501", "12345678901234567890123", "0.000000000000000000000000001",
		// Short, but half way between two float32s once they are rounded to float64.
		"4.548250132074827e-07", "1.179194132642415e+21", "1.79863688387627e-08", "6.223440742492676e+01",
		// Likewise, if 10^25 were taken for exact.
		"8.878599244699359e-10", "3.38850492109799e-09",
		"nan", "inf", "-Infinity", strings.Repeat("0", 70) + "1.5", "1e00000000000000000000000005", "１",
	} {
		check(t, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.StringMatching(`[+-]?[0-9]{0,12}(\.[0-9]{0,14})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number"))
		f := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		check(t, strconv.FormatFloat(float64(f), 'g', -1, 32))
		// Half way between two float32s, and next to it.
		half := (float64(f) + float64(math.Nextafter32(f, 0))) / 2
		for _, d := range []float64{half, math.Nextafter(half, 0), math.Nextafter(half, math.MaxFloat64)} {
			for digits := 14; digits <= 17; digits++ {
				check(t, strconv.FormatFloat(d, 'g', digits, 64))
			}
		}
	})
}

// Integers and hexadecimal digits are what strconv reads, but for lengths.
func TestIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[+-]?[0-9]{0,20}x?`).Draw(t, "int")
		want, err := strconv.ParseInt(s, 10, 64)
		digits := len(strings.TrimLeft(s, "+-"))
		if got, ok := number.Int([]byte(s)); ok != (err == nil && digits <= 18) || ok && got != want {
			t.Fatalf("%q: %d, %v; strconv has %d, %v", s, got, ok, want, err)
		}
		s = rapid.StringMatching(`[0-9a-fA-F]{0,17}g?`).Draw(t, "hex")
		hex, err := strconv.ParseUint(s, 16, 64)
		if got, ok := number.Hex([]byte(s)); ok != (err == nil && len(s) <= 16) || ok && got != hex {
			t.Fatalf("%q: %x, %v; strconv has %x, %v", s, got, ok, hex, err)
		}
	})
}
