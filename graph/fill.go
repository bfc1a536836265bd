package graph

import (
	"fmt"

	"github.com/gangline/gangline/graph/internal/random"
	"github.com/gangline/gangline/tensor"
)

// Fill writes elements lo to lo+len(dst) of the variable of that name. Element
// i depends on (in.Seed, name, i) only, so parts filled apart, by any rank in
// any order, make up the same whole; in f32 it is the f64 value rounded.
//
// Uniform takes about 2 ns an element, normal about 15. Normal values rest on
// math.Erfinv, whose last bit may differ between processor architectures. A
// kind that no Graph accepts panics.
func Fill[T tensor.Float](in Init, name string, lo int, dst []T) {
	switch in.Kind {
	case Zeros, "":
		clear(dst)
	case Constant:
		for i := range dst {
			dst[i] = T(in.Scale)
		}
	case Uniform:
		random.Uniform(dst, in.Scale, random.Stream(in.Seed, name), lo)
	case Normal:
		random.Normal(dst, in.Scale, random.Stream(in.Seed, name), lo)
	default:
		panic(fmt.Sprintf("graph: fill %q with unknown initial values %q", name, in.Kind))
	}
}
