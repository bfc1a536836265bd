package half_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/internal/half"
)

// format is a 16-bit float by its numbers.
type format struct {
	name      string
	exp, frac int // bits
	of        func(portable bool) *half.Type
	from      func(uint16) float32
}

func formats() []format {
	return []format{{"bf16", 8, 7, half.BF16, half.FromBF16}, {"f16", 5, 10, half.F16, half.FromF16}}
}

// nearest is the nearest value to a number, by the definition: one of the two
// multiples of the last place around it, the even one if both are as near.
func (f format) nearest(x float32) float64 {
	if x == 0 || math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		return float64(x)
	}
	least := 2 - 1<<(f.exp-1)
	_, e := math.Frexp(float64(x))
	place := math.Ldexp(1, max(e-1, least)-f.frac)
	q := new(big.Rat).Quo(new(big.Rat).SetFloat64(float64(x)), new(big.Rat).SetFloat64(place))
	n := math.RoundToEven(float64(x) / place) // exact: place is a power of two
	if back := new(big.Rat).SetFloat64(n); new(big.Rat).Abs(back.Sub(back, q)).Cmp(big.NewRat(1, 2)) > 0 {
		panic("not the nearest")
	}
	largest := (2 - math.Ldexp(1, -f.frac)) * math.Ldexp(1, 1<<(f.exp-1)-1)
	if y := n * place; math.Abs(y) <= largest {
		return y
	}
	return math.Inf(int(math.Copysign(1, float64(x))))
}

// numbers are many floats of all kinds: all 16-bit values, what is halfway between two,
// neighbours of both, and random bits.
func (f format) numbers() []float32 {
	var all []float32
	for x := range 1 << 16 {
		v := f.from(uint16(x))
		half := math.Float32frombits(math.Float32bits(v) + 1<<(22-f.frac))
		for _, y := range []float32{v, half} {
			all = append(all, y, math.Nextafter32(y, 0), math.Nextafter32(y, float32(math.Inf(1))))
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1 << 16 {
		all = append(all, math.Float32frombits(rng.Uint32()))
	}
	return all
}

func same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// TestNearest proves that conversion rounds to the nearest, keeps infinities, signs and
// NaN, and has the same bits with assembly as without.
func TestNearest(t *testing.T) {
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			src := f.numbers()
			src = append(src, 1) // no whole vectors
			var bits [2][]uint16
			for i, portable := range []bool{true, false} {
				h, rounded := f.of(portable), make([]float32, len(src))
				bits[i] = make([]uint16, len(src))
				h.Narrow(bits[i], src)
				h.Round(rounded, src)
				wide := make([]float32, len(src))
				h.Widen(wide, bits[i])
				for k, x := range src {
					want := f.nearest(x)
					got := float64(rounded[k])
					if math.IsNaN(want) != math.IsNaN(got) || !math.IsNaN(want) && (got != want || math.Signbit(got) != math.Signbit(want)) {
						t.Fatalf("portable %v: %x is rounded to %x, want %x", portable, x, got, want)
					}
					if !same(wide[k], rounded[k]) || !same(wide[k], f.from(bits[i][k])) {
						t.Fatalf("portable %v: %x is %#x in 16 bits, %x widened and %x rounded", portable, x, bits[i][k], wide[k], rounded[k])
					}
				}
			}
			for k := range src {
				if bits[0][k] != bits[1][k] {
					t.Fatalf("%x (%#x) is %#x in Go and %#x in assembly", src[k], math.Float32bits(src[k]), bits[0][k], bits[1][k])
				}
			}
		})
	}
}

// TestWiden proves that all 16-bit values come back as they were, NaN quiet.
func TestWiden(t *testing.T) {
	for _, f := range formats() {
		src := make([]uint16, 1<<16)
		for i := range src {
			src[i] = uint16(i)
		}
		for _, portable := range []bool{true, false} {
			wide, back := make([]float32, len(src)), make([]uint16, len(src))
			h := f.of(portable)
			h.Widen(wide, src)
			h.Narrow(back, wide)
			for i, x := range src {
				quiet := x
				if wide[i] != wide[i] {
					quiet |= 1 << (f.frac - 1)
				}
				if back[i] != quiet {
					t.Fatalf("%s: %#x is %x and comes back as %#x", f.name, x, wide[i], back[i])
				}
			}
		}
	}
}

// TestLengths proves that no element is left out and none beyond the end is touched.
func TestLengths(t *testing.T) {
	for _, f := range formats() {
		h := f.of(false)
		for n := range 70 {
			src := make([]float32, n)
			for i := range src {
				src[i] = float32(i + 1)
			}
			narrow, wide, rounded := make([]uint16, n+1), make([]float32, n+1), make([]float32, n+1)
			narrow[n], wide[n], rounded[n] = 7, 7, 7
			h.Narrow(narrow, src)
			h.Widen(wide, narrow[:n])
			h.Round(rounded, src)
			for i, x := range src {
				if wide[i] != x || rounded[i] != x {
					t.Fatalf("%s: element %d of %d: %v and %v, want %v", f.name, i, n, wide[i], rounded[i], x)
				}
			}
			if narrow[n] != 7 || wide[n] != 7 || rounded[n] != 7 {
				t.Fatalf("%s: wrote beyond %d elements", f.name, n)
			}
		}
	}
}

// BenchmarkRound is of a vector in the first cache.
func BenchmarkRound(b *testing.B) {
	for _, f := range formats() {
		for _, portable := range []bool{true, false} {
			b.Run(f.name+map[bool]string{true: "/go", false: "/assembly"}[portable], func(b *testing.B) {
				h, x := f.of(portable), make([]float32, 4096)
				for i := range x {
					x[i] = float32(i) / 7
				}
				b.SetBytes(4 * int64(len(x)))
				for b.Loop() {
					h.Round(x, x)
				}
			})
		}
	}
}
