package data

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gangline/gangline/internal/number"
)

// libsvmParser reads lines of the form
//
//	label index:value index:value ... # comment
//
// with indexes from 1 (or 0 if the spec says so), in any order but each at most
// once a row. Blank lines and comments hold no row.
type libsvmParser struct {
	spec    *Spec
	base    int64 // the smallest index: 1, or 0
	labels  []float32
	offsets []int64
	ids     []int32
	weights []float32 // nil as long as every value is 1
	most    int32     // largest id seen
	scratch []int32
}

func readLibsvm(file string, r io.Reader, spec *Spec) (*memory, error) {
	p := &libsvmParser{spec: spec, base: 1, offsets: []int64{0}, most: -1}
	if spec.ZeroBased {
		p.base = 0
	}
	bad := badRows{limit: spec.MaxBadRows}
	if err := readLines(file, r, p, spec.Limit, &bad); err != nil {
		return nil, err
	}
	dim := spec.Features
	if dim == 0 {
		dim = int(p.most) + 1
	}
	if dim == 0 {
		return nil, fmt.Errorf("data: no row of %s has a feature: declare the number of features", file)
	}
	specs := libsvmSpecs(dim)
	return newMemory(p.rows(), bad,
		stored{spec: specs[0], values: p.labels},
		stored{
			spec:    specs[1],
			values:  p.weights,
			offsets: p.offsets,
			ids:     p.ids,
		}), nil
}

// libsvmSpecs are the columns of a file with so many features.
func libsvmSpecs(features int) []ColumnSpec {
	return []ColumnSpec{
		{Name: "label", Kind: DenseColumn, Dim: 1},
		{Name: "x", Kind: RaggedColumn, Dim: features},
	}
}

func (p *libsvmParser) rows() int { return len(p.labels) }

// parse implements rowParser.
func (p *libsvmParser) parse(line []byte) (skip bool, reason string) {
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	token, rest := nextToken(line)
	if len(token) == 0 {
		return true, ""
	}
	label, reason := p.label(token)
	if reason != "" {
		return false, reason
	}
	if reason := p.entries(rest); reason != "" {
		start := p.offsets[len(p.offsets)-1]
		p.ids = p.ids[:start]
		if p.weights != nil {
			p.weights = p.weights[:start]
		}
		return false, reason
	}
	for _, id := range p.ids[p.offsets[len(p.offsets)-1]:] {
		p.most = max(p.most, id)
	}
	p.labels = append(p.labels, label)
	p.offsets = append(p.offsets, int64(len(p.ids)))
	return false, ""
}

// entries appends the entries of a row. If it returns a reason the caller cuts
// off what was appended.
func (p *libsvmParser) entries(line []byte) (reason string) {
	start := len(p.ids)
	last, ascending := int32(-1), true
	for {
		var token []byte
		if token, line = nextToken(line); len(token) == 0 {
			break
		}
		colon := bytes.IndexByte(token, ':')
		if colon < 0 {
			return fmt.Sprintf("entry %s has no colon, want index:value", quote(token))
		}
		id, reason := p.index(token[:colon])
		if reason != "" {
			return reason
		}
		value, ok := number.Float(token[colon+1:])
		if !ok {
			return fmt.Sprintf("value %s of index %s is not a finite number", quote(token[colon+1:]), token[:colon])
		}
		ascending = ascending && id > last
		last = id
		if value != 1 && p.weights == nil {
			p.weights = make([]float32, len(p.ids), cap(p.ids))
			ones(p.weights)
		}
		p.ids = append(p.ids, id)
		if p.weights != nil {
			p.weights = append(p.weights, value)
		}
	}
	if ascending {
		return ""
	}
	return p.duplicate(p.ids[start:])
}

// duplicate tells whether an id stands twice in a row that is not ascending.
func (p *libsvmParser) duplicate(ids []int32) (reason string) {
	p.scratch = append(p.scratch[:0], ids...)
	slices.Sort(p.scratch)
	for i := 1; i < len(p.scratch); i++ {
		if p.scratch[i] == p.scratch[i-1] {
			return fmt.Sprintf("index %d stands twice in the row", int64(p.scratch[i])+p.base)
		}
	}
	return ""
}

// index reads a feature index and turns it into an id from 0.
func (p *libsvmParser) index(s []byte) (id int32, reason string) {
	v, ok := number.Int(s)
	if !ok {
		return 0, fmt.Sprintf("index %s is not a whole number", quote(s))
	}
	if v < p.base {
		hint := ""
		if v == 0 {
			hint = "; if the file counts from 0, say so with zero_based: true"
		}
		return 0, fmt.Sprintf("index %d is below %d%s", v, p.base, hint)
	}
	v -= p.base
	if f := p.spec.Features; f > 0 && v >= int64(f) {
		return 0, fmt.Sprintf("index %s is beyond the %d features declared", s, f)
	}
	if v >= maxID {
		return 0, fmt.Sprintf("index %s is beyond the limit of %d", s, maxID)
	}
	return int32(v), ""
}

// label reads a label and maps it as the spec says.
func (p *libsvmParser) label(s []byte) (v float32, reason string) {
	v, ok := number.Float(s)
	if !ok {
		return 0, fmt.Sprintf("label %s is not a finite number", quote(s))
	}
	if p.spec.LabelMap == "binary" {
		switch v {
		case 1:
			return 1, ""
		case 0, -1:
			return 0, ""
		}
		hint := ""
		if v == 2 {
			hint = "; if the classes are 1 and 2, say so with label_base: 1"
		}
		return 0, fmt.Sprintf("label %s is not -1, 0 or 1%s", quote(s), hint)
	}
	base, classes := p.spec.LabelBase, p.spec.Classes
	if base == 0 && classes == 0 {
		return v, ""
	}
	switch c := float64(v) - float64(base); {
	case c < 0 || c != math.Trunc(c):
		return 0, fmt.Sprintf("label %s is not a class: want a whole number from %d", quote(s), base)
	case classes > 0 && c >= float64(classes):
		hint := ""
		if base == 0 && c == float64(classes) {
			hint = "; if the file counts classes from 1, say so with label_base: 1"
		}
		return 0, fmt.Sprintf("label %s is beyond the %d classes from %d%s", quote(s), classes, base, hint)
	default:
		return float32(c), ""
	}
}

// nextToken cuts the first run of bytes between spaces or tabs off line.
func nextToken(line []byte) (token, rest []byte) {
	i := 0
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	j := i
	for j < len(line) && line[j] != ' ' && line[j] != '\t' {
		j++
	}
	return line[i:j], line[j:]
}
