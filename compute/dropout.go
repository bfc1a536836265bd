package compute

import "math"

// Mask says which elements of one example a Dropout keeps. Element i is a pure
// function of (Attr.Seed, step, example, i), so all backends, and all ranks that
// compute the example or its gradient, drop the same ones.
//
// A 64-bit hash of seed, step and example gives two 32-bit keys; an element costs
// 32-bit arithmetic alone, which vectorises: the mixing steps of MurmurHash3's
// finalizer (Appleby, 2011), with the second key between them.
type Mask struct {
	k0, k1, least uint32
}

// MaskOf returns the mask of an example, the example-th of the step's whole batch.
func MaskOf(seed uint64, rate float64, step, example int64) Mask {
	key := mix64(mix64(mix64(seed)+uint64(step)) + uint64(example))
	return Mask{k0: uint32(key), k1: uint32(key >> 32), least: uint32(min(math.Ceil(rate*(1<<32)), math.MaxUint32))}
}

// Keeps reports whether element i stays. It does with probability 1 - rate.
func (m Mask) Keeps(i int) bool {
	h := uint32(i)*0x9e3779b9 + m.k0
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13 ^ m.k1) * 0xc2b2ae35
	return h^h>>16 >= m.least
}

// Keys returns the numbers of which Keeps is made, for kernels that write it out.
func (m Mask) Keys() (k0, k1, least uint32) { return m.k0, m.k1, m.least }

// mix64 is the finalizer of splitmix64 (Steele, Lea, Flood, 2014) after a step
// of its counter.
func mix64(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
