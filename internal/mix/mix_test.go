package mix

import (
	"math"
	"testing"
)

// The values are those of splitmix64's reference program, seed 0 and on.
func TestMix(t *testing.T) {
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := At(0, uint64(i)); got != want {
			t.Errorf("number %d is %#x, want %#x", i, got, want)
		}
	}
}

// Units are in [0,1) and spread evenly.
func TestUnit(t *testing.T) {
	const n = 1 << 16
	sum := 0.0
	for i := range uint64(n) {
		u := Unit(At(7, i))
		if u < 0 || u >= 1 {
			t.Fatalf("unit %d is %v", i, u)
		}
		sum += u
	}
	if mean := sum / n; math.Abs(mean-.5) > 6/math.Sqrt(12*n) {
		t.Errorf("the mean is %v", mean)
	}
}
