package feature

import (
	"math"
	"strconv"

	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/mix"
)

// FNV-1a of 64 bits (Fowler, Noll and Vo).
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Salt is where the hash of a feature's values begins: the hash of its name.
func Salt(name string) uint64 {
	return hashText(fnvOffset, []byte(name))
}

// hashText is the hash of a value's text: FNV-1a from the salt on, and the
// finalizer of splitmix64 over it. It is the same in every file, on every machine
// and in every release.
func hashText(salt uint64, text []byte) uint64 {
	h := salt
	for _, c := range text {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return mix.Mix(h)
}

// hashID is the hash of the id of an entry.
func hashID(salt, id uint64) uint64 { return mix.Mix(salt ^ id) }

// bucket is the id, from 0, that a hash has among n.
func bucket(h uint64, n int) int32 { return int32(h % uint64(n)) }

// missingHash stands for a missing part of a cross.
const missingHash = 0x6d697373696e6721

// AppendText appends the text of a single value, by which categories, labels and
// crosses know it: text as it is, a whole number below 2^53 in digits, any other
// number in the shortest form that reads back as it.
func AppendText(dst []byte, c *table.Column, kind table.Kind, row int) []byte {
	switch kind {
	case table.Text:
		return append(dst, text(c, row)...)
	case table.Integer:
		return strconv.AppendInt(dst, c.Integers[row], 10)
	case table.Number:
		return appendNumber(dst, c.Numbers[row])
	case table.Numbers, table.Entries, table.Texts:
	}
	return dst
}

// appendNumber appends the text of a number.
func appendNumber(dst []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

// text is element i of a column of texts, in the column's memory.
func text(c *table.Column, i int) []byte {
	begin := 0
	if i > 0 {
		begin = c.Ends[i-1]
	}
	return c.Bytes[begin:c.Ends[i]]
}

// missing reports whether a row has no value.
func missing(c *table.Column, row int) bool { return c.Missing != nil && c.Missing[row] }
