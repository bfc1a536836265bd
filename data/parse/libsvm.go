package parse

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gangline/gangline/data/parse/internal/scan"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/internal/number"
)

// LibsvmOptions say what the numbers of a libsvm file mean.
type LibsvmOptions struct {
	// Features is the Dim of column x; 0 takes the largest index in the file, which
	// then must be below UndeclaredMax.
	Features int
	// ZeroBased says that indexes count from 0 instead of 1.
	ZeroBased bool
	// Binary makes 0 of label -1 and refuses what is not -1, 0 or 1.
	Binary bool
	// LabelBase is the number of the first class, Classes how many there are; both
	// 0: labels are any numbers.
	LabelBase, Classes int
}

// UndeclaredMax bounds the indexes of a file of which nobody said how many features it
// has: one index that is wrong would make models of many gigabytes.
const UndeclaredMax = 1 << 27

// LibsvmSpecs are the columns of a file with so many features: label, x.
func LibsvmSpecs(features int) []rows.ColumnSpec {
	return []rows.ColumnSpec{
		{Name: "label", Kind: rows.DenseColumn, Dim: 1},
		{Name: "x", Kind: rows.RaggedColumn, Dim: features},
	}
}

// libsvm reads lines of the form
//
//	label index:value index:value ... # comment
//
// with indexes from 1 (or 0 if the options say so), in any order but each at most
// once a row. Blank lines and comments hold no row.
type libsvm struct {
	LibsvmOptions
	scan.Entries
	vectors bool  // common entries are read by package scan
	most    int32 // largest id seen
	scratch []int32
	tens    *number.Powers
	columns []rows.ColumnSpec // Dim is not known before the end
}

// Libsvm reads libsvm lines. file is the name that errors give.
func Libsvm(file string, in io.Reader, o LibsvmOptions) *Reader {
	p := &libsvm{
		LibsvmOptions: o, Entries: scan.Entries{Base: 1, Beyond: UndeclaredMax}, vectors: scan.Here(), most: -1,
		tens: number.NewPowers(), columns: LibsvmSpecs(o.Features),
	}
	if o.ZeroBased {
		p.Base = 0
	}
	if o.Features > 0 {
		p.Beyond = uint64(o.Features)
	}
	return newReader(file, in, p)
}

func (p *libsvm) specs() []rows.ColumnSpec {
	if p.Features > 0 {
		return LibsvmSpecs(p.Features)
	}
	return LibsvmSpecs(int(p.most) + 1)
}

// scan implements parser.
func (p *libsvm) scan(b *rows.Block, text []byte, at, end, n int) (next, appended int) {
	p.Begin()
	for appended < n && at < end {
		label, i, ok := p.scanLabel(text, at)
		if !ok {
			break
		}
		if i, ok = p.scanEntries(&b.Columns[1], text, i); !ok {
			b.Truncate(p.columns, b.Rows)
			break
		}
		b.Columns[0].Values = append(b.Columns[0].Values, label)
		b.Columns[1].Offsets = append(b.Columns[1].Offsets, int32(len(b.Columns[1].IDs)))
		b.Rows++
		appended++
		at = i
	}
	return at, appended
}

// scanLabel reads a label that stands at the beginning of a line.
func (p *libsvm) scanLabel(text []byte, i int) (v float32, next int, ok bool) {
	c := text[i]
	if c == '+' {
		i++
	}
	if text[i+1] == ' ' && (text[i] == '0' || text[i] == '1') {
		v, next = float32(text[i]-'0'), i+1
	} else if c == '-' && text[i+1] == '1' && text[i+2] == ' ' {
		v, next = -1, i+2
	} else if v, next, ok = p.tens.Prefix(text, i); !ok || c == '+' && text[i] == '-' {
		return 0, 0, false
	}
	v, reason := p.label(v, nil)
	return v, next, reason == ""
}

// scanEntries appends the entries up to the line end, behind which next is. If ok is
// false the caller cuts off what was appended.
func (p *libsvm) scanEntries(x *rows.Packed, text []byte, i int) (next int, ok bool) {
	start := len(x.IDs)
	ids, values := x.IDs[:cap(x.IDs)], x.Values[:cap(x.Values)]
	k, last, ascending := start, int64(-1), true
	for text[i] == ' ' {
		if p.vectors {
			var n int
			var up, ok bool
			if i, n, up, ok = p.Read(text, i, ids[k:], values[k:], last); !ok {
				return 0, false
			}
			if k += n; n > 0 {
				last, ascending = int64(ids[k-1]), ascending && up
			}
			if text[i] != ' ' {
				break
			}
		}
		i++
		w := number.Word(text, i)
		n := number.First(number.NonDigits(w))
		index := number.Leading(w, n)
		switch n {
		case 0:
			continue // another space, the line end, or what does not belong here
		case 8:
			index, n = number.Digits(text, i)
		}
		i += n
		id := index - p.Base
		if text[i] != ':' || id >= p.Beyond || n > 15 {
			return 0, false
		}
		i++
		// A value is mostly 1, or up to 7 digits and a point. Those are read here: a call
		// costs as much as reading them.
		var value float32
		w = number.Word(text, i)
		marks := number.NonDigits(w)
		point, end := number.First(marks), number.First(marks&(marks-1))
		switch {
		case number.Byte(w, point) == '.' && end > 1 && text[i+end] <= ' ':
			value = p.tens.Short(number.Pointed(w, point, end), end-point-1)
			i += end
		case text[i] == '1' && text[i+1] <= ' ':
			value = 1
			i++
		default:
			if value, i, ok = p.scanValue(text, i); !ok {
				return 0, false
			}
		}
		if k == len(ids) || k == len(values) {
			x.IDs, x.Values = slices.Grow(ids[:k], k+64), slices.Grow(values[:k], k+64)
			ids, values = x.IDs[:cap(x.IDs)], x.Values[:cap(x.Values)]
		}
		ids[k], values[k] = int32(id), value
		if int64(id) <= last {
			ascending = false
		}
		last = int64(id)
		k++
	}
	x.IDs, x.Values = ids[:k], values[:k]
	next, ok = pastEnd(text, i)
	return next, ok && p.admit(ids[start:k], ascending)
}

// pastEnd returns what is behind the line end at i, if there is one.
func pastEnd(text []byte, i int) (next int, ok bool) {
	if text[i] == '\r' {
		i++
	}
	return i + 1, text[i] == '\n'
}

// admit tells whether no id of a row stands there twice, and notes the largest.
func (p *libsvm) admit(ids []int32, ascending bool) bool {
	switch {
	case len(ids) == 0:
	case ascending:
		p.most = max(p.most, ids[len(ids)-1])
	case p.twice(ids) >= 0:
		return false
	default:
		p.most = max(p.most, slices.Max(ids))
	}
	return true
}

// scanValue reads a number of any form, up to a space or line end.
func (p *libsvm) scanValue(text []byte, i int) (v float32, next int, ok bool) {
	if v, next, ok = p.tens.Prefix(text, i); ok {
		return v, next, ok
	}
	next = i
	for text[next] > ' ' {
		next++
	}
	v, ok = number.Float(text[i:next])
	return v, next, ok
}

// line implements parser.
func (p *libsvm) line(b *rows.Block, line []byte) (skip bool, f *fault) {
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	token, rest := nextToken(line)
	if len(token) == 0 {
		return true, nil
	}
	v, ok := number.Float(token)
	if !ok {
		return false, &fault{"label", fmt.Sprintf("label %s is not a finite number", quote(token))}
	}
	label, reason := p.label(v, token)
	if reason != "" {
		return false, &fault{"label", reason}
	}
	x := &b.Columns[1]
	if f := p.entries(x, rest); f != nil {
		b.Truncate(p.columns, b.Rows)
		return false, f
	}
	for _, id := range x.IDs[x.Offsets[b.Rows]:] {
		p.most = max(p.most, id)
	}
	b.Columns[0].Values = append(b.Columns[0].Values, label)
	x.Offsets = append(x.Offsets, int32(len(x.IDs)))
	b.Rows++
	return false, nil
}

// entries appends the entries of a row. If it returns a fault the caller cuts off
// what was appended.
func (p *libsvm) entries(x *rows.Packed, line []byte) *fault {
	start := len(x.IDs)
	for n := 1; ; n++ {
		bad := func(format string, args ...any) *fault {
			return &fault{fmt.Sprintf("entry %d", n), fmt.Sprintf(format, args...)}
		}
		var token []byte
		if token, line = nextToken(line); len(token) == 0 {
			break
		}
		colon := bytes.IndexByte(token, ':')
		if colon < 0 {
			return bad("%s has no colon, want index:value", quote(token))
		}
		id, reason := p.index(token[:colon])
		if reason != "" {
			return bad("%s", reason)
		}
		value, ok := number.Float(token[colon+1:])
		if !ok {
			return bad("value %s of index %s is not a finite number", quote(token[colon+1:]), token[:colon])
		}
		x.IDs, x.Values = append(x.IDs, id), append(x.Values, value)
	}
	if i := p.twice(x.IDs[start:]); i >= 0 {
		id := x.IDs[start+i]
		return &fault{fmt.Sprintf("entry %d", i+1), fmt.Sprintf("index %d stands twice in the row", uint64(id)+p.Base)}
	}
	return nil
}

// twice returns where the second of two equal ids stands, or -1.
func (p *libsvm) twice(ids []int32) int {
	p.scratch = append(p.scratch[:0], ids...)
	slices.Sort(p.scratch)
	for i := 1; i < len(p.scratch); i++ {
		if id := p.scratch[i]; id == p.scratch[i-1] {
			first := slices.Index(ids, id)
			return first + 1 + slices.Index(ids[first+1:], id)
		}
	}
	return -1
}

// index reads a feature index and turns it into an id from 0.
func (p *libsvm) index(s []byte) (id int32, reason string) {
	v, ok := number.Int(s)
	if !ok {
		return 0, fmt.Sprintf("index %s is not a whole number", quote(s))
	}
	base := int64(p.Base)
	if v < base {
		hint := ""
		if v == 0 {
			hint = "; if the file counts from 0, say so with zero_based: true"
		}
		return 0, fmt.Sprintf("index %d is below %d%s", v, base, hint)
	}
	switch v -= base; {
	case p.Features > 0 && v >= int64(p.Features):
		return 0, fmt.Sprintf("index %s is beyond the %d features declared", s, p.Features)
	case v >= rows.MaxID:
		return 0, fmt.Sprintf("index %s is beyond the limit of %d", s, rows.MaxID)
	case p.Features == 0 && v >= UndeclaredMax:
		return 0, fmt.Sprintf("index %s makes a model of more than %d features: if that is meant, say how many there are (features)", s, UndeclaredMax)
	}
	return int32(v), ""
}

// label maps a label as the options say. The text is what a reason quotes.
func (p *libsvm) label(v float32, text []byte) (mapped float32, reason string) {
	if p.Binary {
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
		return 0, fmt.Sprintf("label %s is not -1, 0 or 1%s", quote(text), hint)
	}
	base, classes := p.LabelBase, p.Classes
	if base == 0 && classes == 0 {
		return v, ""
	}
	switch c := float64(v) - float64(base); {
	case c < 0 || c != math.Trunc(c):
		return 0, fmt.Sprintf("label %s is not a class: want a whole number from %d", quote(text), base)
	case classes > 0 && c >= float64(classes):
		hint := ""
		if base == 0 && c == float64(classes) {
			hint = "; if the file counts classes from 1, say so with label_base: 1"
		}
		return 0, fmt.Sprintf("label %s is beyond the %d classes from %d%s", quote(text), classes, base, hint)
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
