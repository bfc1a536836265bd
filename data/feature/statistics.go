package feature

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/gangline/gangline/internal/mix"
)

// moments are count, mean, sum of squared distances from it, and extremes of the
// numbers added so far (Welford 1962; merged as by Chan, Golub and LeVeque 1983).
type moments struct {
	n               int64
	mean, squares   float64
	lowest, highest float64
}

// add adds a number. The conversions forbid the compiler to fuse operations, so
// that every machine gets the same bits.
func (m *moments) add(x float64) {
	if m.n++; m.n == 1 {
		m.lowest, m.highest = x, x
	}
	d := x - m.mean
	m.mean += float64(d / float64(m.n))
	m.squares += float64(d * (x - m.mean))
	m.lowest, m.highest = min(m.lowest, x), max(m.highest, x)
}

func (m *moments) merge(o moments) {
	switch {
	case o.n == 0:
		return
	case m.n == 0:
		*m = o
		return
	}
	n, d := float64(m.n+o.n), o.mean-m.mean
	m.mean += float64(d * float64(float64(o.n)/n))
	m.squares += o.squares + float64(float64(d*d)*float64(float64(m.n)*float64(float64(o.n)/n)))
	m.n += o.n
	m.lowest, m.highest = min(m.lowest, o.lowest), max(m.highest, o.highest)
}

// deviation is the standard deviation of the numbers, as of a whole population.
func (m *moments) deviation() float64 {
	if m.n == 0 {
		return 0
	}
	return math.Sqrt(max(0, m.squares/float64(m.n)))
}

// sampleRows is the number of rows that quantiles are read from: with more, the
// rank of a boundary is off by 0.2 % (one standard deviation) at the median.
const sampleRows = 1 << 16

// rowSample keeps the rows whose place in the data has the smallest hashes: a
// uniform sample that depends on nothing but the rows, and holds all of them while
// they are few.
type rowSample struct {
	size  int
	drawn []drawn
	bound uint64 // hashes from here on are not among the smallest
	cut   bool   // bound counts
}

type drawn struct {
	hash  uint64
	value float64
}

// add draws the row that stands on a line of a file.
func (s *rowSample) add(file uint64, line int, value float64) {
	h := mix.Mix(file ^ mix.Mix(uint64(line)))
	if s.cut && h > s.bound {
		return
	}
	if s.drawn = append(s.drawn, drawn{h, value}); len(s.drawn) >= 2*s.size {
		s.trim()
	}
}

// trim keeps the smallest.
func (s *rowSample) trim() {
	slices.SortFunc(s.drawn, func(a, b drawn) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.value, b.value))
	})
	if len(s.drawn) >= s.size {
		s.drawn = s.drawn[:s.size]
		s.bound, s.cut = s.drawn[s.size-1].hash, true
	}
}

func (s *rowSample) merge(o *rowSample) {
	s.drawn = append(s.drawn, o.drawn...)
	s.trim()
}

// boundaries part the sample into n intervals with equally many rows. Equal
// boundaries become one, and none is the lowest value, so there may be fewer.
func (s *rowSample) boundaries(n int) []float64 {
	s.trim()
	values := make([]float64, len(s.drawn))
	for i, d := range s.drawn {
		values[i] = d.value
	}
	slices.Sort(values)
	var b []float64
	for i := 1; i < n && len(values) > 0; i++ {
		v := values[i*len(values)/n]
		if v > values[0] && (len(b) == 0 || v > b[len(b)-1]) {
			b = append(b, v)
		}
	}
	return b
}

// vocabulary counts distinct values up to a limit.
type vocabulary struct {
	texts map[string]int64
	ids   map[uint64]int64 // of entries, instead of texts
	limit int
	bytes int
	full  bool // beyond a limit: counts are no longer kept
}

func newVocabulary(ids bool, limit int) *vocabulary {
	v := &vocabulary{limit: limit}
	if ids {
		v.ids = map[uint64]int64{}
	} else {
		v.texts = map[string]int64{}
	}
	return v
}

func (v *vocabulary) addText(text []byte) {
	if n, ok := v.texts[string(text)]; ok {
		v.texts[string(text)] = n + 1
		return
	}
	v.texts[string(text)] = 1
	v.grow(len(text))
}

func (v *vocabulary) addID(id uint64) {
	n := v.ids[id]
	v.ids[id] = n + 1
	if n == 0 {
		v.grow(8)
	}
}

// grow notes a new value, and gives up beyond the limits.
func (v *vocabulary) grow(bytes int) {
	v.bytes += bytes
	if len(v.texts)+len(v.ids) > v.limit || v.bytes > MaxVocabularyBytes {
		v.full, v.texts, v.ids = true, nil, nil
	}
}

func (v *vocabulary) merge(o *vocabulary) {
	if o.full {
		v.full, v.texts, v.ids = true, nil, nil
	}
	for _, t := range slices.Sorted(maps.Keys(o.texts)) {
		if v.full {
			return
		}
		if v.texts[t] == 0 {
			v.grow(len(t))
		}
		if !v.full {
			v.texts[t] += o.texts[t]
		}
	}
	for id, n := range o.ids {
		if v.full {
			return
		}
		if v.ids[id] == 0 {
			v.grow(8)
		}
		if !v.full {
			v.ids[id] += n
		}
	}
}

// frequent returns the values that stand at least least times, ascending.
func frequent[K cmp.Ordered](counts map[K]int64, least int64) []K {
	var keys []K
	for k, n := range counts {
		if n >= least {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
