// Package mix is the house's hash of 64 bits: what orders, hashed categories and
// generated rows draw from. Its values never change, or saved runs would.
package mix

// Golden is 2^64 divided by the golden ratio: steps of it spread evenly.
const Golden = 0x9e3779b97f4a7c15

// Mix is the finalizer of splitmix64 (Steele, Lea and Flood, 2014): a bijection on
// 64 bits under which every input bit moves every output bit.
func Mix(x uint64) uint64 {
	x += Golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// At is number i of the stream of random bits that key begins.
func At(key, i uint64) uint64 { return Mix(key + i*Golden) }

// Unit turns 64 random bits into a float in [0, 1).
func Unit(h uint64) float64 { return float64(h>>11) * 0x1p-53 }
