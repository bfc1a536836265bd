package graph

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/graph/internal/random"
	"github.com/gangline/gangline/tensor"
)

// Fill writes elements lo to lo+len(dst) of the variable of that name. Element
// i depends on (in.Seed, name, i) only, so parts filled apart, by any rank in
// any order, make up the same whole; in f32 it is the f64 value rounded.
//
// With u = mix(stream + (i+1)·golden), the top 24 bits of u give a uniform
// value and the top 52 a normal one, by the inverse of the normal distribution.
// Uniform takes about 2 ns an element, normal about 15. Normal values rest on
// math.Erfinv, whose last bit may differ between processor architectures. A
// kind that no Graph accepts panics.
func Fill[T tensor.Float](in Init, name string, lo int, dst []T) {
	z := random.Stream(in.Seed, name) + uint64(lo)*random.Golden
	switch in.Kind {
	case Zeros, "":
		clear(dst)
	case Constant:
		for i := range dst {
			dst[i] = T(in.Scale)
		}
	case Uniform:
		step := in.Scale * 0x1p-23
		for i := range dst {
			z += random.Golden
			dst[i] = T(float64(int64(random.Mix(z)>>40)-1<<23) * step)
		}
	case Normal:
		scale := in.Scale * math.Sqrt2
		for i := range dst {
			z += random.Golden
			p := (float64(random.Mix(z)>>12)+.5)*0x1p-51 - 1 // in (-1, 1), exact
			dst[i] = T(scale * math.Erfinv(p))
		}
	default:
		panic(fmt.Sprintf("graph: fill %q with unknown initial values %q", name, in.Kind))
	}
}
