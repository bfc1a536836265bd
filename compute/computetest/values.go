package computetest

import (
	"math"
	"math/rand/v2"

	"github.com/gangline/gangline/tensor"
)

// gen draws inputs. All floats are float32 values held in f64, so that both
// dtypes start from the same numbers.
type gen struct{ *rand.Rand }

func newGen(seed uint64) gen { return gen{rand.New(rand.NewPCG(seed, 17))} }

// floats are normal with a few large ones and zeros between.
func (g gen) floats(shape ...int) *tensor.Tensor {
	return g.fill(shape, func() float64 {
		switch g.IntN(12) {
		case 0:
			return 0
		case 1:
			return 8 * g.NormFloat64()
		}
		return g.NormFloat64()
	})
}

// wild adds what breaks careless exponentials.
func (g gen) wild(shape ...int) *tensor.Tensor {
	special := []float64{
		0, math.Copysign(0, -1), 1e-6, -1e-6, 0.25, 20, -20, 88.5, -87.5, -100, 300, -300, 1000, -1000,
		math.Inf(1), math.Inf(-1), math.NaN(),
	}
	return g.fill(shape, func() float64 {
		if g.IntN(2) == 0 {
			return special[g.IntN(len(special))]
		}
		return 3 * g.NormFloat64()
	})
}

// finite are wild ones that are numbers.
func (g gen) finite(shape ...int) *tensor.Tensor {
	t := g.wild(shape...)
	for i, v := range t.F64() {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			t.F64()[i] = 5 * g.Float64()
		}
	}
	return t
}

// normal are normal.
func (g gen) normal(shape ...int) *tensor.Tensor { return g.fill(shape, g.NormFloat64) }

// positive are in (0, 4).
func (g gen) positive(shape ...int) *tensor.Tensor {
	return g.fill(shape, func() float64 { return 1e-3 + 3.9*g.Float64() })
}

// unit are in [0, 1], with both ends.
func (g gen) unit(shape ...int) *tensor.Tensor {
	return g.fill(shape, func() float64 { return min(1, max(0, 1.4*g.Float64()-0.2)) })
}

func (g gen) classes(rows, classes int) *tensor.Tensor {
	return g.fill([]int{rows}, func() float64 { return float64(g.IntN(classes)) })
}

func (g gen) fill(shape []int, f func() float64) *tensor.Tensor {
	t := tensor.New(tensor.F64, shape...)
	for i := range t.F64() {
		t.F64()[i] = float64(float32(f()))
	}
	return t
}

// ids are n of [0, rows); none if there are no rows.
func (g gen) ids(n, rows int) *tensor.Tensor {
	if rows == 0 {
		n = 0
	}
	t := tensor.New(tensor.I64, n)
	for i := range t.I64() {
		t.I64()[i] = int64(g.IntN(rows))
	}
	return t
}

// keys are about half of [0, rows), ascending.
func (g gen) keys(rows int) *tensor.Tensor {
	var k []int64
	for i := range rows {
		if g.IntN(2) == 0 {
			k = append(k, int64(i))
		}
	}
	return tensor.From(k, len(k))
}

// offsets cut n entries into bags, some of them empty.
func (g gen) offsets(bags, n int) *tensor.Tensor {
	t := tensor.New(tensor.I64, bags+1)
	o := t.I64()
	for b := 1; b < bags; b++ {
		o[b] = o[b-1] + int64(g.IntN(n-int(o[b-1])+1))/2
	}
	if bags > 0 {
		o[bags] = int64(n)
	}
	return t
}

// ragged returns ids, offsets and weights of a ragged column over rows.
func (g gen) ragged(bags, rows int) (ids, offsets, weights *tensor.Tensor) {
	n := 3 * bags
	if bags == 0 || rows == 0 {
		n = 0
	}
	return g.ids(n, rows), g.offsets(bags, n), g.floats(n)
}
