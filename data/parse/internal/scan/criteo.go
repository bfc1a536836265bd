package scan

import "math"

// The columns of Criteo rows.
const (
	Nums = 13
	Cats = 26
)

const (
	// SmallInts is how many of the smallest integers have their logarithm in a table.
	SmallInts = 1 << 15
	// rowReach is how many bytes from the beginning of a row on may be looked at.
	rowReach = 512
	// rowBefore is how many bytes before it.
	rowBefore = 6
)

// Rows reads rows of Criteo text.
type Rows struct {
	// Logs is what becomes of small integers; -0 where it is not known, and at the end.
	Logs [SmallInts + 1]float32

	fields fields
}

// fields is what categories are made ids with. The assembly knows how it is laid out.
type fields struct {
	keys    [Cats]uint64 // of eight the third and the fourth behind the sixth
	missing [Cats + 2]int32
	mask    [8]uint32 // or else the divisor
	divisor [8]uint32
	inverse [4]uint64 // 2^64 divided by it
	upper   [4]uint64 // the upper half of that
}

// NewRows returns what reads rows: a category of a field is hashed with its key, and
// its id is the remainder of that divided by buckets, from 1 to 2^31; an absent one has
// an id of its own.
func NewRows(keys *[Cats]uint64, missing *[Cats]int32, buckets uint32) *Rows {
	r := new(Rows)
	unknown := float32(math.Copysign(0, -1))
	for v := range r.Logs {
		r.Logs[v] = unknown
	}
	copy(r.fields.missing[:], missing[:])
	for i, at := range [8]int{0, 1, 4, 5, 2, 3, 6, 7} {
		for f := i; f < Cats; f += 8 {
			r.fields.keys[f/8*8+at] = keys[f]
		}
	}
	r.fields.divide(buckets)
	return r
}

// divide prepares the division by buckets.
func (f *fields) divide(buckets uint32) {
	inverse := math.MaxUint64 / uint64(buckets)
	for i := range f.mask {
		if buckets&(buckets-1) == 0 {
			f.mask[i] = buckets - 1
			continue
		}
		f.divisor[i], f.inverse[i%4], f.upper[i%4] = buckets, inverse, inverse>>32
	}
}

// Read reads rows from text[at:] on, as long as they are of the common form: integers
// of up to 8 characters, categories of 8, or none. It puts them into labels, nums and
// ids, and stops when labels is full. next is where it stopped, behind the n rows
// that it read. If an integer of the last of them has no logarithm in Logs, nums has
// its bits with the highest one set, and the others are right; Read has then stopped
// there.
func (r *Rows) Read(text []byte, at int, labels, nums []float32, ids []int32) (next, n int) {
	end := len(text) - rowReach
	if at < rowBefore || at > end || len(labels) == 0 {
		return at, 0
	}
	_, _ = nums[:Nums*len(labels)], ids[:Cats*len(labels)]
	return rowsAVX(&text[0], at, end, &labels[0], &nums[0], &ids[0], len(labels), &r.fields.keys[0], &r.Logs[0])
}
