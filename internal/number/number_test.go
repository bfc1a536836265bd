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

// padded is s with what a reader's buffer has behind it.
func padded(s string) []byte { return append([]byte(s), strings.Repeat("9", number.Pad)...) }

// What Prefix takes is what Float reads, to the bit; and it takes what is common.
func checkPrefix(t interface {
	Helper()
	Fatalf(string, ...any)
}, s string,
) (took bool) {
	t.Helper()
	for _, end := range []string{" ", "\t", "\n", "\r\n"} {
		got, next, ok := number.NewPowers().Prefix(padded(s+end), 0)
		if !ok {
			return false
		}
		want, fine := number.Float([]byte(s))
		if !fine || next != len(s) || math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%q: got %v to %d, Float has %v, %v", s, got, next, want, fine)
		}
	}
	return true
}

func TestPrefix(t *testing.T) {
	for _, s := range []string{"1", "0", "-1", "0.5", ".25", "5.", "-.5", "1234567.1234567", "0.1234567890123", "-0", "0.123456", "123456.7", "12345.67"} {
		if !checkPrefix(t, s) {
			t.Errorf("%q is not plain", s)
		}
	}
	for _, s := range []string{
		"", "-", ".", "-.", "1e5", "12345678", "1234567.1234567890123", "1:2", "1.2.3", "nan", "16777217.0",
		"0.1234567890123456", "12345678.", "12345678.5", "1x", "--1", "+1",
	} {
		if _, _, ok := number.NewPowers().Prefix(padded(s+" "), 0); ok {
			t.Errorf("%q was taken for plain", s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		checkPrefix(t, rapid.StringMatching(`-?[0-9]{0,9}(\.[0-9]{0,17})?`).Draw(t, "number"))
		f := math.Float32frombits(rapid.Uint32Range(0x38000000, 0x4b000000).Draw(t, "bits"))
		half := (float64(f) + float64(math.Nextafter32(f, 0))) / 2
		for digits := 6; digits <= 15; digits++ {
			checkPrefix(t, strconv.FormatFloat(half, 'f', digits, 64))
		}
	})
}

// FuzzPrefix: whatever stands there, Prefix agrees with Float or leaves it alone.
func FuzzPrefix(f *testing.F) {
	f.Add("0.123456")
	f.Add("-1234567.5")
	f.Add("1:\x00\xb0")
	f.Fuzz(func(t *testing.T, s string) {
		if !strings.ContainsAny(s, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f ") {
			checkPrefix(t, s)
		}
	})
}

// FuzzFloat holds number.Float against strconv on any bytes.
func FuzzFloat(f *testing.F) {
	f.Add("1.00000017881393432617187501")
	f.Add("-.5e-3")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := number.Float([]byte(s))
		want, err := strconv.ParseFloat(s, 32)
		if len(s) > 1024 || strings.ContainsAny(s, "_xXpP") {
			return
		}
		if wantOK := err == nil && !math.IsNaN(want) && !math.IsInf(want, 0); ok != wantOK || ok && math.Float32bits(got) != math.Float32bits(float32(want)) {
			t.Fatalf("%q: got %v, %v, strconv has %v, %v", s, got, ok, float32(want), err)
		}
	})
}

// Words of digits are what the slow ways read, wherever the digits end.
func TestWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[0-9]{0,20}`).Draw(t, "digits") + string(rapid.SampledFrom([]rune("/:x\x00~\u00b9 ")).Draw(t, "end"))
		digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		want, _ := strconv.ParseUint(s[:digits], 10, 64)
		if got, n := number.Digits(padded(s), 0); n != min(digits, 16) || n < 16 && got != want {
			t.Fatalf("%q: %d of %d digits", s, got, n)
		}
		b := rapid.SliceOfN(rapid.SampledFrom([]byte("0123456789abcdefABCDEF/:@G`g\x00\xb0\xff")), 8, 8).Draw(t, "hex")
		hex, err := strconv.ParseUint(string(b), 16, 64)
		w := number.Word(b, 0)
		if got, ok := number.HexWord(w), number.NonHex(w) == 0; ok != (err == nil) || ok && got != hex {
			t.Fatalf("%q: %x, %v; strconv has %x, %v", b, got, ok, hex, err)
		}
	})
}
