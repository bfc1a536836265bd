package stats

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/gangline/gangline/internal/mix"
)

// registersLog is the binary logarithm of the number of registers of a distinct
// counter: its error is 1.04/sqrt(2^14) = .8 % (one standard deviation).
const registersLog = 14

// distinct estimates the number of different hashes (HyperLogLog; Flajolet et al.
// 2007, with 64-bit hashes as Heule et al. 2013 have it, and linear counting below
// 2.5 times the registers).
type distinct struct{ registers []uint8 }

func (d *distinct) add(h uint64) {
	if d.registers == nil {
		d.registers = make([]uint8, 1<<registersLog)
	}
	i := h >> (64 - registersLog)
	rank := uint8(bits.LeadingZeros64(h<<registersLog|1<<(registersLog-1)) + 1)
	d.registers[i] = max(d.registers[i], rank)
}

func (d *distinct) estimate() float64 {
	if d.registers == nil {
		return 0
	}
	m, sum, empty := float64(len(d.registers)), 0.0, 0
	for _, r := range d.registers {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			empty++
		}
	}
	e := .7213 / (1 + 1.079/m) * m * m / sum
	if e <= 2.5*m && empty > 0 {
		return m * math.Log(m/float64(empty))
	}
	return e
}

// Value is one value of a column and how often it stands there.
type Value struct {
	Text string `json:"value"`
	// Count is exact, or at most Error too small.
	Count int64 `json:"count"`
	Error int64 `json:"error,omitempty"`
}

// counts counts values: exactly up to a limit of different ones, beyond it those
// that are frequent (Misra and Gries 1982, in portions: with limit counters no
// count is more than n/limit too small).
type counts struct {
	limit int
	of    map[uint64]*counted
	lost  int64 // what any count may be too small by
	all   distinct
}

type counted struct {
	n    int64
	text string
}

// add takes a value by its hash; text is called when it is new.
func (c *counts) add(key uint64, text func() string) {
	c.all.add(mix.Mix(key))
	if v := c.of[key]; v != nil {
		v.n++
		return
	}
	if c.of == nil {
		c.of = map[uint64]*counted{}
	}
	c.of[key] = &counted{1, text()}
	if len(c.of) > 2*c.limit {
		c.prune()
	}
}

// prune leaves the more frequent half and takes the largest count of the others
// off all.
func (c *counts) prune() {
	all := make([]int64, 0, len(c.of))
	for _, v := range c.of {
		all = append(all, v.n)
	}
	slices.Sort(all)
	off := all[len(all)-c.limit-1]
	c.lost += off
	for key, v := range c.of {
		if v.n -= off; v.n <= 0 {
			delete(c.of, key)
		}
	}
}

// distinct is the number of different values, and whether it is exact.
func (c *counts) distinct() (n int64, exact bool) {
	if c.lost == 0 {
		return int64(len(c.of)), true
	}
	return int64(math.Round(c.all.estimate())), false
}

// top returns the most frequent values.
func (c *counts) top(n int) []Value {
	values := make([]Value, 0, len(c.of))
	for _, v := range c.of {
		values = append(values, Value{v.text, v.n, c.lost})
	}
	slices.SortFunc(values, func(a, b Value) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text)) })
	return values[:min(n, len(values))]
}

// moments are the first three moments of numbers, updated one at a time (Welford
// 1962; Pébay 2008), so that large means do not spoil them.
type moments struct {
	n                int64
	mean, m2, m3     float64
	lowest, greatest float64
}

func (m *moments) add(x float64) {
	if m.n == 0 {
		m.lowest, m.greatest = x, x
	}
	m.lowest, m.greatest = min(m.lowest, x), max(m.greatest, x)
	m.n++
	n := float64(m.n)
	d := x - m.mean
	step := d / n
	term := d * step * (n - 1)
	m.mean += step
	m.m3 += term*step*(n-2) - 3*step*m.m2
	m.m2 += term
}

// deviation is the standard deviation of the numbers, with n below.
func (m *moments) deviation() float64 { return math.Sqrt(m.m2 / float64(m.n)) }

// skewness is the third standardized moment, 0 for numbers that do not vary:
// above 0, the tail is on the right.
func (m *moments) skewness() float64 {
	if m.m2 == 0 {
		return 0
	}
	return math.Sqrt(float64(m.n)) * m.m3 / math.Pow(m.m2, 1.5)
}
