package shuffle

import (
	"math"
	"math/bits"
	"slices"

	"github.com/gangline/gangline/internal/mix"
)

// Table is a Permutation of which many positions are asked for. What a round adds
// depends on one half of a position alone, of which there are only about sqrt(n), so
// it is looked up where a Permutation hashes.
type Table struct {
	p Permutation
	// byL and byR have what the rounds add that hash the left half or the right one;
	// none where that does not fit 16 bits. There are 3 of each; 4 make 8 bytes.
	byL, byR [][4]uint16
}

// Set makes t the table of p, at once if it is that already. Cost: about 6·sqrt(n) hashes of 2 ns, and 16·sqrt(n)
// bytes, which are kept for the next Set; no table for n above 2^32.
func (t *Table) Set(p Permutation) {
	if t.p == p {
		return
	}
	t.p, t.byL, t.byR = p, t.byL[:0], t.byR[:0]
	if p.a > math.MaxUint16 {
		return
	}
	t.byL, t.byR = slices.Grow(t.byL, int(p.a))[:p.a], slices.Grow(t.byR, int(p.b))[:p.b]
	for i := range rounds / 2 {
		add := func(half int, key, m uint64) uint16 {
			scaled, _ := bits.Mul64(mix.Mix(uint64(half)^key), m)
			return uint16(scaled)
		}
		for r := range t.byR {
			t.byR[r][i] = add(r, p.keys[2*i], p.a)
		}
		for l := range t.byL {
			t.byL[l][i] = add(l, p.keys[2*i+1], p.b)
		}
	}
}

// Append appends the images of lo to hi, which is at most n. Cost: about a third of At.
func (t *Table) Append(dst []int, lo, hi uint64) []int {
	if len(t.byL) == 0 {
		return t.p.Append(dst, lo, hi)
	}
	for lo < hi { // positions of one left half
		l, r := lo/t.p.b, lo%t.p.b
		n := min(hi-lo, t.p.b-r)
		dst = slices.Grow(dst, int(n))[:len(dst)+int(n)]
		images := dst[len(dst)-int(n):]
		t.row(images, l, r)
		for i, x := range images {
			if uint64(x) >= t.p.n {
				images[i] = int(t.p.At(uint64(x)))
			}
		}
		lo += n
	}
	return dst
}

// row passes the positions (l, r), (l, r+1) and so on through the network once.
func (t *Table) row(images []int, l, r uint64) {
	byL, byR, a, b := t.byL, t.byR, t.p.a, t.p.b
	for i := range images {
		l, r := l, r+uint64(i)
		l = wrap(l+uint64(byR[r][0]), a)
		r = wrap(r+uint64(byL[l][0]), b)
		l = wrap(l+uint64(byR[r][1]), a)
		r = wrap(r+uint64(byL[l][1]), b)
		l = wrap(l+uint64(byR[r][2]), a)
		r = wrap(r+uint64(byL[l][2]), b)
		images[i] = int(l*b + r)
	}
}

// wrap is v modulo m for v below 2m, both below 2^63, without a branch, which would
// be mispredicted half of the time.
func wrap(v, m uint64) uint64 {
	v -= m
	return v + m&uint64(int64(v)>>63)
}
