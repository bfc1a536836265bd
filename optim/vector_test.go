package optim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/optim"
)

// TestVectorsHaveTheBitsOfScalars updates an array at once and element by
// element, where no vector fits: with NaN, infinities, clipping and decay.
func TestVectorsHaveTheBitsOfScalars(t *testing.T) {
	for _, r := range []optim.Rule{
		{Kind: optim.SGD, LR: .1, L2: .01},
		{Kind: optim.SGD, LR: .1, ClipValue: .5},
		{Kind: optim.Momentum, LR: .1, Momentum: .8, Dampening: .1, WeightDecay: .1},
		{Kind: optim.Momentum, LR: .1, Nesterov: true, ClipValue: .2},
		{Kind: optim.Adagrad, LR: .1, L2: .1},
		{Kind: optim.Adam, LR: .01, L2: .01},
		{Kind: optim.AdamW, LR: .01, ClipValue: .3},
		{Kind: optim.Adam, LR: .01, L2: .01, AMSGrad: true},
		{Kind: optim.AdamW, LR: .01, ClipValue: .3, AMSGrad: true},
		{Kind: optim.RMSProp, LR: .01, L2: .01},
		{Kind: optim.RMSProp, LR: .01, Decay: .9, Centered: true},
		{Kind: optim.RMSProp, LR: .01, Momentum: .9, ClipValue: .4},
		{Kind: optim.RMSProp, LR: .01, Momentum: .9, Centered: true, L2: .1},
		{Kind: optim.FTRL, LR: .1, L1: .3, L2: .1, Beta: .5},
		{Kind: optim.FTRL, LR: .1, ClipValue: .4},
	} {
		t.Run(fmt.Sprint(r.Kind, r.Nesterov, r.ClipValue, r.Centered, r.Momentum, r.AMSGrad), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			const n = 77
			slots := len(r.Slots())
			arrays := make([][]float32, 2+slots)
			again := make([][]float32, 2+slots)
			for a := range arrays {
				for i := range n {
					v := float32(rng.NormFloat64())
					if a > 1 {
						v *= v
					}
					if a < 2 && i%13 == 5 {
						v = []float32{0, float32(math.Inf(1)), float32(math.NaN()), 1e-42, 3e38, float32(math.Inf(-1))}[i/13]
					}
					arrays[a] = append(arrays[a], v)
				}
				again[a] = append(again[a], arrays[a]...)
			}
			for step := range int64(5) {
				optim.Dense(r, step, 7, arrays[0], arrays[1], arrays[2:])
				for i := range n {
					one := make([][]float32, len(again))
					for a := range again {
						one[a] = again[a][i : i+1]
					}
					optim.Dense(r, step, 7, one[0], one[1], one[2:])
				}
			}
			for a := range arrays {
				for i, v := range arrays[a] {
					w := again[a][i]
					if math.Float32bits(v) != math.Float32bits(w) && (v == v || w == w) {
						t.Fatalf("array %d, element %d is %v in vectors and %v alone", a, i, v, w)
					}
				}
			}
		})
	}
}
