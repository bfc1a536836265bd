// Package shuffle permutes rows point by point, in constant memory: all of them
// together, or by blocks and windows of blocks.
package shuffle

import (
	"math"
	"math/bits"

	"github.com/gangline/gangline/internal/mix"
)

// Permutation is a keyed bijection on [0, n) that is computed point by point,
// in constant memory.
//
// It is a Feistel network over a x b >= n: position p is (l, r) = (p/b, p%b),
// and rounds add a hash of one half to the other, modulo a and b in turn, each
// of which can be undone. A result of n or more is sent through again until it
// falls below n (cycle walking: Black and Rogaway, "Ciphers with arbitrary
// finite domains", 2002); as a*b-n < a, that is rare.
type Permutation struct {
	n, a, b uint64
	keys    [rounds]uint64
}

// rounds is the number of rounds of the network. Four make a Feistel network
// over random functions strong (Luby and Rackoff, 1988); the domains here are
// tiny by comparison, so a few more.
const rounds = 6

// Of prepares the permutation of n positions in an epoch.
func Of(n int, seed uint64, epoch int) Permutation {
	return keyed(n, mix.At(mix.Mix(seed), uint64(epoch)))
}

// keyed prepares the permutation of n positions that a key chooses.
func keyed(n int, key uint64) Permutation {
	p := Permutation{n: uint64(n)}
	p.a = max(1, uint64(math.Ceil(math.Sqrt(float64(n)))))
	p.b = (p.n + p.a - 1) / p.a
	for i := range p.keys {
		p.keys[i] = mix.Mix(key + uint64(i)*mix.Golden)
	}
	return p
}

// At returns the image of x, which must be below n. Cost: about 30 ns.
func (p *Permutation) At(x uint64) uint64 {
	for {
		if x = p.pass(x/p.b, x%p.b); x < p.n {
			return x
		}
	}
}

// Append appends the images of lo to hi, which is at most n: At without its
// division.
func (p *Permutation) Append(dst []int, lo, hi uint64) []int {
	for l, r := lo/p.b, lo%p.b; lo < hi; lo++ {
		x := p.pass(l, r)
		if x >= p.n {
			x = p.At(x)
		}
		dst = append(dst, int(x))
		if r++; r == p.b {
			l, r = l+1, 0
		}
	}
	return dst
}

// pass is one turn of the network for position l·b + r. The image may be n or more.
func (p *Permutation) pass(l, r uint64) uint64 {
	for i := 0; i < rounds; i += 2 {
		l = addMod(l, mix.Mix(r^p.keys[i]), p.a)
		r = addMod(r, mix.Mix(l^p.keys[i+1]), p.b)
	}
	return l*p.b + r
}

// from is the inverse of At: the position whose image is y, which must be below n.
func (p *Permutation) from(y uint64) uint64 {
	for {
		l, r := y/p.b, y%p.b
		for i := rounds - 2; i >= 0; i -= 2 {
			r = subMod(r, mix.Mix(l^p.keys[i+1]), p.b)
			l = subMod(l, mix.Mix(r^p.keys[i]), p.a)
		}
		if y = l*p.b + r; y < p.n {
			return y
		}
	}
}

// addMod adds to v < m the hash h, scaled down to [0, m), modulo m.
func addMod(v, h, m uint64) uint64 {
	scaled, _ := bits.Mul64(h, m)
	if v += scaled; v >= m {
		v -= m
	}
	return v
}

// subMod undoes addMod.
func subMod(v, h, m uint64) uint64 {
	scaled, _ := bits.Mul64(h, m)
	if v < scaled {
		v += m
	}
	return v - scaled
}
