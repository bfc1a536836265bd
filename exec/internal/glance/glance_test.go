package glance_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gangline/gangline/exec/internal/glance"
	"github.com/gangline/gangline/tensor"
)

// A value that is not finite is found wherever it stands, and large finite ones
// are left alone.
func TestFinite(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 63, 64, 67, 97} {
		for at := range n {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				single, double := tensor.New(tensor.F32, n), tensor.New(tensor.F64, n)
				for i := range n {
					single.F32()[i], double.F64()[i] = math.MaxFloat32, -math.MaxFloat64
				}
				if !glance.Finite(single) || !glance.Finite(double) {
					t.Fatalf("%d large values are not finite", n)
				}
				single.F32()[at], double.F64()[at] = float32(bad), bad
				if glance.Finite(single) || glance.Finite(double) {
					t.Errorf("%v at %d of %d was not found", bad, at, n)
				}
			}
		}
	}
}

// The same of 16-bit floats, of which the largest numbers are finite.
func TestFinite16(t *testing.T) {
	for d, c := range map[tensor.DType]struct {
		largest uint16
		bad     []uint16
	}{
		tensor.BF16: {0x7f7f, []uint16{0x7f80, 0xff80, 0x7fc0, 0x7f81}},
		tensor.F16:  {0x7bff, []uint16{0x7c00, 0xfc00, 0x7e00, 0x7c01}},
	} {
		for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 19, 63, 64, 65, 131} {
			for at := range n {
				for _, bad := range c.bad {
					x := tensor.New(d, n)
					for i := range x.Halves() {
						x.Halves()[i] = c.largest | uint16(i%2)<<15
					}
					if !glance.Finite(x) {
						t.Fatalf("%v: %d large values are not finite", d, n)
					}
					if x.Halves()[at] = bad; glance.Finite(x) {
						t.Errorf("%v: %#x at %d of %d was not found", d, bad, at, n)
					}
				}
			}
		}
	}
}

// The norm of 16-bit floats is that of the same values in float32.
func TestSquareNorm16(t *testing.T) {
	x, want := tensor.New(tensor.BF16, 1300), 0.0
	for i := range x.Halves() {
		v := float32(i % 128)
		x.Halves()[i] = uint16(math.Float32bits(v) >> 16)
		want += float64(v) * float64(v)
	}
	if got := glance.At(x, true); got != (glance.Glance{Finite: true, Squares: want}) {
		t.Errorf("%v, want finite and squares of %v", got, want)
	}
}

// Squares that no float64 holds are not finite, where they are wanted; nor are those of
// what is not a number.
func TestAt(t *testing.T) {
	large, none := tensor.From([]float64{3, 1e200}, 2), tensor.From([]float64{math.NaN(), 1}, 2)
	for _, c := range []struct {
		x    *tensor.Tensor
		norm bool
		want bool
	}{{large, false, true}, {large, true, false}, {none, false, false}, {none, true, false}} {
		if got := glance.At(c.x, c.norm); got.Finite != c.want {
			t.Errorf("%v, with norm %t: finite is %t, want %t", c.x.F64(), c.norm, got.Finite, c.want)
		}
	}
	if got := glance.At(tensor.From([]float32{3, 4}, 2), true); got != (glance.Glance{Finite: true, Squares: 25}) {
		t.Errorf("of 3 and 4: %v", got)
	}
}

func BenchmarkFinite(b *testing.B) {
	for _, n := range []int{1 << 14, 670000} {
		x := tensor.New(tensor.F32, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(4 * n))
			for b.Loop() {
				if !glance.Finite(x) {
					b.Fatal("zeros are not finite")
				}
			}
		})
	}
}
