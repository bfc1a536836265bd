package shuffle

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestPermutationUniform: over many epochs each of the permutations of four
// positions comes equally often, and in a longer one every position goes
// everywhere equally often. The bounds are six standard deviations.
func TestPermutationUniform(t *testing.T) {
	const epochs = 24_000
	count := make(map[[4]uint64]int)
	for epoch := range epochs {
		p := Of(4, 11, epoch)
		count[[4]uint64{p.At(0), p.At(1), p.At(2), p.At(3)}]++
	}
	chi := 0.0
	for _, n := range count {
		d := float64(n) - epochs/24
		chi += d * d / (epochs / 24)
	}
	// 23 degrees of freedom: mean 23, standard deviation sqrt(46).
	if len(count) != 24 || chi > 23+6*math.Sqrt(46) {
		t.Errorf("%d of 24 permutations of 4, chi-square %.1f", len(count), chi)
	}
	for _, n := range []int{2, 3, 5, 7, 10, 33, 101} {
		const epochs = 4000
		hits := make([]float64, n*n)
		for epoch := range epochs {
			p := Of(n, 5, epoch)
			for x := range n {
				hits[x*n+int(p.At(uint64(x)))]++
			}
		}
		chi, want := 0.0, epochs/float64(n)
		for _, h := range hits {
			chi += (h - want) * (h - want) / want
		}
		if free := float64((n - 1) * (n - 1)); chi > free+6*math.Sqrt(2*free)+6 {
			t.Errorf("n=%d: chi-square %.1f with %v degrees of freedom", n, chi, free)
		}
	}
}

// TestPermutationLooksRandom: in one epoch of many rows, neighbours land apart
// and few rows stay where they were.
func TestPermutationLooksRandom(t *testing.T) {
	const n = 50_000
	for epoch := range 3 {
		p := Of(n, 9, epoch)
		fixed, rising, sum := 0, 0, 0.0
		for x := range uint64(n - 1) {
			a, b := p.At(x), p.At(x+1)
			if a == x {
				fixed++
			}
			if b > a {
				rising++
			}
			sum += (float64(a) - n/2) * (float64(b) - n/2)
		}
		serial := sum / n / (n * n / 12.0)
		// A random permutation has 1 fixed point, n/2 +- sqrt(n/12) rises and a
		// serial correlation of 0 +- 1/sqrt(n).
		if fixed > 8 || math.Abs(float64(rising)-n/2) > 6*math.Sqrt(n/12.0) || math.Abs(serial) > 6/math.Sqrt(n) {
			t.Errorf("epoch %d: %d fixed points, %d rises, serial correlation %.4f", epoch, fixed, rising, serial)
		}
	}
	if a, b := Of(n, 9, 0), Of(n, 9, 1); a.At(1) == b.At(1) && a.At(2) == b.At(2) {
		t.Error("two epochs have the same order")
	}
}

// TestWindows: every row comes once an epoch, those of a window from its blocks alone,
// the windows have the blocks that Blocks says, and From undoes At.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Layout{
			Rows: rapid.IntRange(1, 400).Draw(t, "rows"), Block: rapid.IntRange(1, 50).Draw(t, "block"),
			Window: rapid.IntRange(1, 12).Draw(t, "window"),
		}
		w := InWindows(l, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 9).Draw(t, "epoch"))
		count := (l.Rows-1)/l.Block + 1
		seen, blocks := make([]bool, l.Rows), make([]int, count)
		for lo := 0; lo < l.Rows; {
			number, first, hi := w.Window(lo)
			if first != lo || hi <= lo || number < 0 {
				t.Fatalf("%+v: window %d is [%d,%d) at %d", l, number, first, hi, lo)
			}
			of := map[int]bool{}
			for _, b := range w.Blocks(number, 0, l.Window, nil) {
				of[b] = true
				blocks[b]++
			}
			for p := lo; p < hi; p++ {
				row := w.At(p)
				if seen[row] || !of[row/l.Block] {
					t.Fatalf("%+v: position %d has row %d, a second time or of another window", l, p, row)
				}
				seen[row] = true
			}
			lo = hi
		}
		for b, n := range blocks {
			if n != 1 {
				t.Fatalf("%+v: block %d is in %d windows", l, b, n)
			}
		}
		p := Of(l.Rows, 3, 4)
		lo := rapid.IntRange(0, l.Rows).Draw(t, "lo")
		hi := rapid.IntRange(lo, l.Rows).Draw(t, "hi")
		for i, y := range p.Append(nil, uint64(lo), uint64(hi)) {
			if uint64(y) != p.At(uint64(lo+i)) {
				t.Fatalf("%d of [%d,%d) goes to %d, alone to %d", lo+i, lo, hi, y, p.At(uint64(lo+i)))
			}
		}
		for x := range uint64(l.Rows) {
			if y := p.At(x); p.from(y) != x {
				t.Fatalf("%d goes to %d, which comes from %d", x, y, p.from(y))
			}
		}
	})
}

// TestWindowsUniform: over many epochs every row comes to every position about equally
// often, except that the short block keeps its rows together.
func TestWindowsUniform(t *testing.T) {
	const epochs, rows = 6000, 24
	hits := make([]float64, rows*rows)
	for epoch := range epochs {
		w := InWindows(Layout{Rows: rows, Block: 4, Window: 2}, 5, epoch)
		for p := range rows {
			hits[p*rows+w.At(p)]++
		}
	}
	chi, want := 0.0, float64(epochs)/rows
	for _, h := range hits {
		chi += (h - want) * (h - want) / want
	}
	if free := float64((rows - 1) * (rows - 1)); chi > free+6*math.Sqrt(2*free)*2 {
		t.Errorf("chi-square %.1f with %v degrees of freedom", chi, free)
	}
}

func BenchmarkPermutation(b *testing.B) {
	p := Of(40_000_000, 1, 1)
	x := uint64(0)
	for b.Loop() {
		x = p.At(x)
	}
}

func BenchmarkWindows(b *testing.B) {
	w := InWindows(Layout{Rows: 40_000_000, Block: 4096, Window: 64}, 1, 1)
	x := 0
	for b.Loop() {
		w.At(x)
		x++
	}
}
