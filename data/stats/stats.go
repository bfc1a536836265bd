// Package stats says what is in data: rows, and for every column what is missing,
// how many different values there are, which are the most frequent, and the moments
// of numbers.
//
// One pass, in memory that does not grow with the rows. Counts of different values
// are exact up to a limit and estimated beyond it, which the result says.
package stats

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/mix"
)

// Limits of what is counted exactly.
const (
	// valuesMax is the different values of all columns together, valuesLeast of
	// any one column.
	valuesMax   = 1 << 20
	valuesLeast = 256
	// rowsMax is the different rows that are told apart exactly.
	rowsMax = 1 << 21
	// columnsMax is the columns that are looked at one by one.
	columnsMax = 4096
	// topMax is how many frequent values a column shows.
	topMax = 5
	// textMax is how much of a long text is kept to show.
	textMax = 40
)

// Column says what is in one column.
type Column struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Missing is the number of rows without a value.
	Missing int64 `json:"missing"`
	// Values is the number of values: of lists, of all their elements.
	Values int64 `json:"values"`
	// Distinct is the number of different values; Exact says whether it is that, or
	// an estimate with a standard error of .8 %.
	Distinct int64 `json:"distinct"`
	Exact    bool  `json:"exact"`
	// Top are the most frequent values, and Share is that of the first.
	Top   []Value `json:"top"`
	Share float64 `json:"top_share"`
	// Numbers are the moments of a column of numbers.
	Numbers *Numbers `json:"numbers,omitempty"`
	// PerRow are the moments of the lengths of lists.
	PerRow *Numbers `json:"per_row,omitempty"`
}

// Numbers describes some numbers. What is beyond float64, as the squares of numbers of
// 1e200, is not a number.
type Numbers struct {
	Min  float64
	Mean float64
	Max  float64
	// Std is the standard deviation, Skewness the third standardized moment.
	Std      float64
	Skewness float64
}

// MarshalJSON implements json.Marshaler: what is not a number is null.
func (n *Numbers) MarshalJSON() ([]byte, error) {
	known := func(v float64) *float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	return json.Marshal(struct {
		Min      *float64 `json:"min"`
		Mean     *float64 `json:"mean"`
		Max      *float64 `json:"max"`
		Std      *float64 `json:"std"`
		Skewness *float64 `json:"skewness"`
	}{known(n.Min), known(n.Mean), known(n.Max), known(n.Std), known(n.Skewness)})
}

// Table says what is in all columns.
type Table struct {
	Rows int64 `json:"rows"`
	// Duplicates is the number of rows that are equal to an earlier one in every
	// column; DuplicatesExact as Column.Exact.
	Duplicates      int64    `json:"duplicates"`
	DuplicatesExact bool     `json:"duplicates_exact"`
	BadRows         int64    `json:"bad_rows"`
	BadSamples      []string `json:"bad_samples,omitempty"`
	Columns         []Column `json:"columns"`
}

// column collects one.
type column struct {
	name, kind string
	missing    int64
	values     int64
	counts     counts
	numbers    moments
	lengths    moments
	numeric    bool
	list       bool
}

// number takes a number.
func (c *column) number(v float64) {
	if math.IsNaN(v) {
		c.missing++
		return
	}
	c.values++
	v += 0 // -0 becomes 0
	if !math.IsInf(v, 0) {
		c.numbers.add(v)
	}
	c.counts.add(math.Float64bits(v), func() string { return strconv.FormatFloat(v, 'g', -1, 64) })
}

// short takes a float32, which is shown with as many digits as it has.
func (c *column) short(v float32) {
	if math.IsNaN(float64(v)) {
		c.missing++
		return
	}
	c.values++
	v += 0 // -0 becomes 0
	if f := float64(v); !math.IsInf(f, 0) {
		c.numbers.add(f)
	}
	c.counts.add(math.Float64bits(float64(v)), func() string { return strconv.FormatFloat(float64(v), 'g', -1, 32) })
}

// integer takes a whole number.
func (c *column) integer(v int64) {
	c.values++
	c.numbers.add(float64(v))
	c.counts.add(uint64(v), func() string { return strconv.FormatInt(v, 10) })
}

// id takes what is a number and no quantity.
func (c *column) id(v int64) {
	c.values++
	c.counts.add(uint64(v), func() string { return strconv.FormatInt(v, 10) })
}

// text takes a text.
func (c *column) text(b []byte) {
	c.values++
	c.counts.add(hashBytes(b), func() string {
		if len(b) > textMax {
			return strconv.Quote(string(b[:textMax])) + "..."
		}
		return strconv.Quote(string(b))
	})
}

// hashBytes is FNV-1a, mixed: the length counts too.
func hashBytes(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return mix.Mix(h ^ uint64(len(b))<<40)
}

// result sums a column up.
func (c *column) result() Column {
	r := Column{Name: c.name, Kind: c.kind, Missing: c.missing, Values: c.values, Top: c.counts.top(topMax)}
	r.Distinct, r.Exact = c.counts.distinct()
	if len(r.Top) > 0 {
		r.Share = float64(r.Top[0].Count) / float64(c.values)
	}
	if c.numeric {
		r.Numbers = c.numbers.result()
	}
	if c.list {
		r.PerRow = c.lengths.result()
	}
	return r
}

// result is nil without numbers.
func (m *moments) result() *Numbers {
	if m.n == 0 {
		return nil
	}
	return &Numbers{Min: m.lowest, Mean: m.mean, Max: m.greatest, Std: m.deviation(), Skewness: m.skewness()}
}

// rows tells equal rows by their hashes.
type rows struct {
	n    int64
	seen map[uint64]struct{}
	all  distinct
	many bool // there were more than rowsMax different ones
}

func (r *rows) add(h uint64) {
	r.n++
	r.all.add(mix.Mix(h))
	if r.many {
		return
	}
	if r.seen == nil {
		r.seen = map[uint64]struct{}{}
	}
	r.seen[h] = struct{}{}
	if len(r.seen) > rowsMax {
		r.many, r.seen = true, nil
	}
}

func (r *rows) duplicates() (n int64, exact bool) {
	if !r.many {
		return r.n - int64(len(r.seen)), true
	}
	return max(0, r.n-int64(math.Round(r.all.estimate()))), false
}

// noValue stands for a missing value in the hash of a row.
const noValue = math.MaxUint64

// fold mixes a value into the hash of its row.
func fold(h *uint64, v uint64) { *h = mix.Mix(*h ^ v) }

// each is how many values of a column are counted exactly.
func each(columns int) int { return max(valuesLeast, valuesMax/max(columns, 1)/2) }

// isNumeric reports whether a kind has quantities.
func isNumeric(k table.Kind) bool {
	return k == table.Number || k == table.Integer || k == table.Numbers
}
