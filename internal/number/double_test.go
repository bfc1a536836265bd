package number_test

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/internal/number"
)

// TestDoubleExact holds number.Double against strconv on numbers of all shapes.
func TestDoubleExact(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, s string) {
		got, ok := number.Double([]byte(s))
		want, err := strconv.ParseFloat(s, 64)
		if wantOK := err == nil && !math.IsNaN(want) && !math.IsInf(want, 0); ok != wantOK ||
			(ok && math.Float64bits(got) != math.Float64bits(want)) {
			t.Fatalf("%q: got %v, %v, strconv has %v, %v", s, got, ok, want, err)
		}
	}
	for _, s := range []string{
		"", "-", ".", "e5", "1e", "0", "-0", "+0.0", "00012", ".5", "5.", "1.2.3", "1e5", "1E-5", "1e309", "1.7976931348623157e308", "5e-324",
		"9007199254740993", "9007199254740992", "12345678901234567890123", "nan", "inf", "1e22", "1e23", "123456789012345e-22", "4.35", "0.1",
	} {
		check(t, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.StringMatching(`[-+]?[0-9]{0,20}(\.[0-9]{0,20})?(e[-+]?[0-9]{1,3})?`).Draw(t, "s"))
	})
}
