// Package random makes random bits of a counter (Steele, Lea, Flood: Fast
// Splittable Pseudorandom Number Generators, 2014).
package random

import "math"

// Golden is the step of the counter, splitmix64's.
const Golden = 0x9e3779b97f4a7c15

// The constants of the 64-bit FNV-1a hash.
const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

// Mix is the finalizer of splitmix64: a bijection of 64 bits in which every bit
// of the result depends on every bit of z.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Stream is where the counter of a variable starts: FNV-1a of its name, mixed
// with the seed.
func Stream(seed uint64, name string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * fnvPrime
	}
	return Mix(h ^ Mix(seed+Golden))
}

// Uniform sets dst to elements lo, lo+1, ... of values in [-scale, scale): with
// u = Mix(stream + (i+1)·Golden), the top 24 bits of u give value i.
func Uniform[T float32 | float64](dst []T, scale float64, stream uint64, lo int) {
	z, step := stream+uint64(lo)*Golden, scale*0x1p-23
	for i := range dst {
		z += Golden
		dst[i] = T(float64(int64(Mix(z)>>40)-1<<23) * step)
	}
}

// Normal is Uniform for a normal distribution of that deviation: the top 52 bits give a
// value, by the inverse of the distribution.
func Normal[T float32 | float64](dst []T, scale float64, stream uint64, lo int) {
	z := stream + uint64(lo)*Golden
	scale *= math.Sqrt2
	for i := range dst {
		z += Golden
		p := (float64(Mix(z)>>12)+.5)*0x1p-51 - 1 // in (-1, 1), exact
		dst[i] = T(scale * math.Erfinv(p))
	}
}
