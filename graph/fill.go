package graph

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/tensor"
)

// The constants of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
// Number Generators, 2014) and of the 64-bit FNV-1a hash.
const (
	golden    = 0x9e3779b97f4a7c15
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

// mix is the finalizer of splitmix64: a bijection of 64 bits in which every bit
// of the result depends on every bit of z.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stream is where the counter of a variable starts: FNV-1a of its name, mixed
// with the seed.
func stream(seed uint64, name string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * fnvPrime
	}
	return mix(h ^ mix(seed+golden))
}

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
	z := stream(in.Seed, name) + uint64(lo)*golden
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
			z += golden
			dst[i] = T(float64(int64(mix(z)>>40)-1<<23) * step)
		}
	case Normal:
		scale := in.Scale * math.Sqrt2
		for i := range dst {
			z += golden
			p := (float64(mix(z)>>12)+.5)*0x1p-51 - 1 // in (-1, 1), exact
			dst[i] = T(scale * math.Erfinv(p))
		}
	default:
		panic(fmt.Sprintf("graph: fill %q with unknown initial values %q", name, in.Kind))
	}
}
