// Package distinct finds the different ids of a batch.
package distinct

import (
	"math/bits"
	"slices"
)

// Sorter finds the distinct ids of a batch and where each entry's id stands
// among them: an LSD radix sort of (id, entry), whose memory is kept.
//
// Cost: ceil(bits of the largest id / 11) passes over 16 bytes an entry, about
// 0.5 ms for 50,000 ids below 2^22.
type Sorter struct {
	a, b   []entry
	counts [digits][radix]int32
}

type entry struct {
	id  int64
	pos int
}

// The radix sort goes by 11 bits: 2,048 counters fit the first-level cache.
const (
	digitBits = 11
	radix     = 1 << digitBits
	digits    = (63 + digitBits - 1) / digitBits
)

// Find returns the distinct ids, none of which may be negative, ascending in
// keys, and for every entry the index of its id in pos. Both are cut to length
// and must have room for len(ids).
func (d *Sorter) Find(ids, keys, pos []int64) (distinctKeys []int64) {
	d.a = slices.Grow(d.a[:0], len(ids))[:len(ids)]
	d.b = slices.Grow(d.b[:0], len(ids))[:len(ids)]
	all := int64(0)
	for i, id := range ids {
		d.a[i] = entry{id, i}
		all |= id
	}
	sorted := d.sort(bits.Len64(uint64(all)))
	k, last := -1, int64(-1)
	for _, e := range sorted {
		if e.id != last {
			k++
			last = e.id
			keys[k] = last
		}
		pos[e.pos] = int64(k)
	}
	return keys[:k+1]
}

// sort sorts a by the low width bits of the ids, stably, and returns a or b.
func (d *Sorter) sort(width int) []entry {
	passes := (width + digitBits - 1) / digitBits
	for i := range passes {
		clear(d.counts[i][:])
	}
	for _, e := range d.a {
		for i := range passes {
			d.counts[i][e.id>>(i*digitBits)&(radix-1)]++
		}
	}
	from, to := d.a, d.b
	for i := range passes {
		count, shift := &d.counts[i], i*digitBits
		at := int32(0)
		for j, n := range count {
			count[j] = at
			at += n
		}
		for _, e := range from {
			digit := e.id >> shift & (radix - 1)
			to[count[digit]] = e
			count[digit]++
		}
		from, to = to, from
	}
	return from
}
