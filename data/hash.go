package data

// mix64 is the finalizer of splitmix64 (Steele, Lea and Flood, 2014): a
// bijection on 64 bits under which every input bit moves every output bit.
func mix64(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// golden is 2^64 divided by the golden ratio: steps of it spread evenly.
const golden = 0x9e3779b97f4a7c15

// unit turns 64 random bits into a float in [0, 1).
func unit(h uint64) float64 { return float64(h>>11) * 0x1p-53 }
