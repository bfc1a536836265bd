package data

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/gangline/gangline/internal/number"
)

// The shape of Criteo rows: label, integers, categories, parted by tabs.
const (
	criteoNums    = 13
	criteoCats    = 26
	criteoColumns = 1 + criteoNums + criteoCats
)

// criteoSpecs describes the columns of Criteo rows and of generated ones.
func criteoSpecs(buckets int) (label, num, cat ColumnSpec) {
	return ColumnSpec{Name: "label", Kind: DenseColumn, Dim: 1},
		ColumnSpec{Name: "num", Kind: DenseColumn, Dim: criteoNums},
		ColumnSpec{Name: "cat", Kind: RaggedColumn, Dim: buckets, PerRow: criteoCats}
}

// CategoryID returns the id of a category: the value (a hexadecimal number in
// the file) of a field (0 to 25), hashed into [0, buckets). Equal values of
// different fields are different categories. The id depends on nothing else, so
// it is the same in every file and on every rank.
func CategoryID(field int, value uint64, buckets int) int64 {
	return int64(mix64(mix64(uint64(field)+1)^value) % uint64(buckets))
}

// MissingID returns the id of an absent value of a field: a category of its own.
func MissingID(field, buckets int) int64 {
	return int64(mix64(^mix64(uint64(field)+1)) % uint64(buckets))
}

// criteoParser reads the tab separated lines of the Criteo click logs: a label
// 0 or 1, 13 integers of which each may be absent, 26 categories as hexadecimal
// numbers of which each may be absent.
type criteoParser struct {
	buckets int
	labels  []float32
	nums    []float32
	cats    []int32
	logs    [1024]float32 // numeric of the small integers that most are
	keys    [criteoCats]uint64
}

func readCriteo(file string, r io.Reader, spec *Spec) (*memory, error) {
	p := newCriteoParser(spec.Buckets)
	bad := badRows{limit: spec.MaxBadRows}
	if err := readLines(file, r, p, spec.Limit, &bad); err != nil {
		return nil, err
	}
	label, num, cat := criteoSpecs(spec.Buckets)
	return newMemory(p.rows(), bad,
		stored{spec: label, values: p.labels},
		stored{spec: num, values: p.nums},
		stored{spec: cat, ids: p.cats}), nil
}

func newCriteoParser(buckets int) *criteoParser {
	p := &criteoParser{buckets: buckets}
	for v := range p.logs {
		p.logs[v] = numeric(int64(v))
	}
	for f := range p.keys {
		p.keys[f] = mix64(uint64(f) + 1)
	}
	return p
}

// numeric is what becomes of an integer feature: log(1+max(v,0)).
func numeric(v int64) float32 { return float32(math.Log1p(float64(max(v, 0)))) }

func (p *criteoParser) rows() int { return len(p.labels) }

// parse implements rowParser.
func (p *criteoParser) parse(line []byte) (skip bool, reason string) {
	if len(line) == 0 {
		return true, ""
	}
	n := len(p.labels)
	if reason := p.row(line); reason != "" {
		p.labels, p.nums, p.cats = p.labels[:n], p.nums[:n*criteoNums], p.cats[:n*criteoCats]
		return false, reason
	}
	return false, ""
}

// row appends a row. If it returns a reason the caller cuts off what was
// appended.
func (p *criteoParser) row(line []byte) (reason string) {
	if n := bytes.Count(line, []byte{'\t'}) + 1; n != criteoColumns {
		return fmt.Sprintf("the row has %d columns parted by tabs, want %d (label, %d integers, %d categories)",
			n, criteoColumns, criteoNums, criteoCats)
	}
	token, line := cutTab(line)
	if len(token) != 1 || token[0]|1 != '1' {
		return fmt.Sprintf("label %s is not 0 or 1", quote(token))
	}
	p.labels = append(p.labels, float32(token[0]-'0'))
	for i := range criteoNums {
		token, line = cutTab(line)
		if len(token) == 0 {
			p.nums = append(p.nums, 0)
			continue
		}
		v, ok := number.Int(token)
		if !ok {
			return fmt.Sprintf("integer column %d: %s is not a whole number", i+1, quote(token))
		}
		if uint64(v) < uint64(len(p.logs)) {
			p.nums = append(p.nums, p.logs[v])
			continue
		}
		p.nums = append(p.nums, numeric(v))
	}
	return p.categories(line)
}

// categories appends the last 26 columns.
func (p *criteoParser) categories(line []byte) (reason string) {
	var token []byte
	for f := range criteoCats {
		token, line = cutTab(line)
		// What CategoryID and MissingID do, with the field's half done before.
		h := ^p.keys[f]
		if len(token) > 0 {
			v, ok := number.Hex(token)
			if !ok {
				return fmt.Sprintf("category column %d: %s is not a hexadecimal number of up to 16 digits",
					f+1, quote(token))
			}
			h = p.keys[f] ^ v
		}
		p.cats = append(p.cats, int32(mix64(h)%uint64(p.buckets)))
	}
	return ""
}

// cutTab returns what stands before the first tab and after it.
func cutTab(s []byte) (token, rest []byte) {
	// The columns are short: a plain loop beats bytes.IndexByte.
	for i, c := range s {
		if c == '\t' {
			return s[:i], s[i+1:]
		}
	}
	return s, nil
}
