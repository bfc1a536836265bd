package optim

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLAMBVectorsHaveTheBitsOfScalars compares both passes over an array with
// those over its elements, where no vector fits, and the norms with those that
// the order of SquareNorm gives.
func TestLAMBVectorsHaveTheBitsOfScalars(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	k := newKernel[float32](Rule{Kind: LAMB, LR: .1, WeightDecay: .1, ClipValue: 2}, 3, 5)
	for n := range 50 {
		var arrays, again [4][]float32 // p, g, m, v
		for a := range arrays {
			arrays[a] = make([]float32, n)
			for i := range n {
				arrays[a][i] = float32(rng.NormFloat64())
				if a == 3 {
					arrays[a][i] *= arrays[a][i]
				}
			}
			again[a] = append(again[a], arrays[a]...)
		}
		if n > 20 {
			for a, v := range []float32{1e-42, float32(math.Inf(1)), -1e-40, 1e30} {
				arrays[a][n-3-a], again[a][n-3-a] = v, v
			}
		}
		var got norms
		var steps, params [lanes]float64
		k.lambMoments(arrays[0], arrays[1], arrays[2], arrays[3], &got)
		k.lamb(arrays[0], arrays[2], arrays[3])
		for i := range n {
			var one norms
			p, m, v := again[0][i:i+1], again[2][i:i+1], again[3][i:i+1]
			k.lambMoments(p, again[1][i:i+1], m, v, &one)
			steps[i%lanes] += one.step
			params[i%lanes] += one.param
			k.lamb(p, m, v)
			for a := range arrays {
				if w, v := again[a][i], arrays[a][i]; math.Float32bits(v) != math.Float32bits(w) && (v == v || w == w) {
					t.Fatalf("array %d, element %d of %d is %v in vectors and %v alone", a, i, n, v, w)
				}
			}
		}
		if want := (norms{fold(&params), fold(&steps)}); got != want {
			t.Fatalf("%d elements: the norms are %v, want %v", n, got, want)
		}
	}
}

// TestSquareNormOrder compares the sum of squares with the order that is stated.
func TestSquareNormOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	for n := range 50 {
		v, s := make([]float32, n), [lanes]float64{}
		for i := range v {
			v[i] = float32(rng.NormFloat64())
			s[i%lanes] += float64(v[i]) * float64(v[i])
		}
		if got, want := SquareNorm(v), fold(&s); got != want {
			t.Errorf("%d elements: %v, want %v", n, got, want)
		}
	}
}
