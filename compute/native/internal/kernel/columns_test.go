package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestColumnSums compares assembly with Go, bit by bit, on matrices of any size,
// parts of columns and no rows.
func TestColumnSums(t *testing.T) {
	if !Assembly() {
		t.Skip("this machine cannot run the assembly")
	}
	fast, plain := For[float32](true), For[float32](false)
	r := rand.New(rand.NewPCG(1, 3))
	for range 300 {
		rows, width := r.IntN(9), 1+r.IntN(90)
		lo := r.IntN(width)
		n := r.IntN(width - lo + 1)
		x, dy := make([]float32, rows*width), make([]float32, rows*width)
		for i := range x {
			x[i], dy[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		moments := make([][2]float32, rows)
		for i := range moments {
			moments[i] = [2]float32{float32(r.NormFloat64()), float32(r.Float64())}
		}
		lo = min(lo, len(x))
		sums := func(k *Table[float32]) (all [2][]float32) {
			all[0], all[1] = slices.Repeat([]float32{7}, n+1), slices.Repeat([]float32{7}, n+1)
			k.SumRows(all[0][:n], x[lo:], rows, width)
			k.SumNormProducts(all[1][:n], x[lo:], dy[lo:], moments, width)
			return all
		}
		got, want := sums(fast), sums(plain)
		for i := range got {
			if !slices.Equal(got[i], want[i]) || got[i][n] != 7 {
				t.Fatalf("rows %d, %d of %d columns: sums %d are %v in assembly and %v in Go", rows, n, width, i, got[i], want[i])
			}
		}
		exact := 0.0
		for i := range rows {
			if n > 0 {
				exact += float64(x[i*width+lo])
			}
		}
		if n > 0 && (exact-float64(got[0][0]) > 1e-5 || float64(got[0][0])-exact > 1e-5) {
			t.Fatalf("a sum is %v, want %v", got[0][0], exact)
		}
	}
}
