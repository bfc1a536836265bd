package format

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/nearest"
)

// The columns of Vowpal Wabbit text before the features.
const (
	vwLabel = iota
	vwWeight
	vwTag
	vwFeatures
)

// vwParser reads lines in the input format of Vowpal Wabbit:
//
//	label weight tag|namespace:factor feature:value feature |namespace feature ...
//
// Label, weight (1 if absent) and tag may each be absent; a tag touches the bar
// or begins with '. A value that is absent is 1; the factor of a namespace, 1 if
// absent, multiplies its values. A namespace touches the bar before it.
//
// The id of a feature is the FNV-1a hash of 64 bits (Fowler, Noll and Vo) of
// namespace, '^' and name, or the name itself as a number.
type vwParser struct {
	namespaces []string // columns; nil: one for all
	numeric    bool
	location   string
	first      []byte // the namespace of numeric ids without columns of their own
	seen       bool   // first is set
}

// openVW implements opener.
func openVW(ctx context.Context, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	return openRows(ctx, spec, location, like, newVW(spec, location))
}

func newVW(spec *Spec, location string) *vwParser {
	return &vwParser{namespaces: spec.Namespaces, numeric: spec.NumericIDs, location: location}
}

// fields implements lineParser.
func (p *vwParser) fields() []table.Field {
	return append([]table.Field{
		{Name: "label", Kind: table.Number}, {Name: "weight", Kind: table.Number}, {Name: "tag", Kind: table.Text},
	}, entryFields(p.namespaces)...)
}

// entryFields is one column of features for all, or one a namespace.
func entryFields(namespaces []string) []table.Field {
	if namespaces == nil {
		namespaces = []string{"x"}
	}
	var fields []table.Field
	for _, name := range namespaces {
		fields = append(fields, table.Field{Name: name, Kind: table.Entries})
	}
	return fields
}

// parse implements lineParser.
func (p *vwParser) parse(columns []table.Column, rows int, line []byte) (column, reason string) {
	head, body, ok := bytes.Cut(line, []byte{'|'})
	if !ok {
		return "", "the line has no |, want label weight tag|namespace feature:value ..."
	}
	if column, reason := p.head(columns, rows, head); reason != "" {
		return column, reason
	}
	for {
		part, rest, more := bytes.Cut(body, []byte{'|'})
		if column, reason := p.namespace(columns, part); reason != "" {
			return column, reason
		}
		if !more {
			break
		}
		body = rest
	}
	for i := range columns[vwFeatures:] {
		c := &columns[vwFeatures+i]
		c.EndList(len(c.Integers))
	}
	return "", ""
}

// head reads what stands before the first bar.
func (p *vwParser) head(columns []table.Column, rows int, head []byte) (column, reason string) {
	var words [4][]byte
	var tag []byte
	n := 0
	touches := len(head) > 0 && len(trimSpaces(head[len(head)-1:])) > 0
	for {
		word, rest := token(head)
		if len(word) == 0 {
			break
		}
		head = rest
		if word[0] == '\'' || touches && len(rest) == 0 {
			tag = bytes.TrimPrefix(word, []byte{'\''})
			continue
		}
		if n == len(words) {
			break
		}
		words[n] = word
		n++
	}
	if n > 2 {
		return "", fmt.Sprintf("%s stands before the bar after label and weight: initial predictions and labels of several parts are not read", table.Quote(words[2]))
	}
	label := &columns[vwLabel]
	if n == 0 {
		label.AddMissing(table.Number, rows)
	} else {
		v, reason := finite("label", words[0])
		if reason != "" {
			return "label", reason
		}
		label.Numbers = append(label.Numbers, v)
		label.AddPresent()
	}
	weight := 1.
	if n == 2 {
		if weight, reason = finite("weight", words[1]); reason != "" {
			return "weight", reason
		}
		if weight < 0 {
			return "weight", fmt.Sprintf("weight %s is negative", words[1])
		}
	}
	columns[vwWeight].Numbers = append(columns[vwWeight].Numbers, weight)
	return p.tag(&columns[vwTag], rows, tag)
}

// tag appends the tag of a row.
func (p *vwParser) tag(c *table.Column, rows int, tag []byte) (column, reason string) {
	if len(tag) == 0 {
		c.AddMissing(table.Text, rows)
		return "", ""
	}
	if !utf8.Valid(tag) {
		_, reason := notUTF8(tag)
		return "tag", reason
	}
	c.Bytes = append(c.Bytes, tag...)
	c.Ends = append(c.Ends, len(c.Bytes))
	c.AddPresent()
	return "", ""
}

// namespace reads what stands between two bars.
func (p *vwParser) namespace(columns []table.Column, part []byte) (column, reason string) {
	var name []byte
	factor := 1.
	if len(part) > 0 && part[0] != ' ' && part[0] != '\t' {
		var word []byte
		word, part = token(part)
		before, after, ok := bytes.Cut(word, []byte{':'})
		name = before
		if ok {
			if factor, reason = finite("factor of the namespace", after); reason != "" {
				return string(name), reason
			}
		}
	}
	i, reason := p.column(name, len(trimSpaces(part)) > 0)
	if reason != "" {
		return "", reason
	}
	c := &columns[vwFeatures+i]
	space := fnv(fnv(fnvStart, name), []byte{'^'})
	for {
		var word []byte
		if word, part = token(part); len(word) == 0 {
			return "", ""
		}
		if reason := p.feature(c, space, factor, word); reason != "" {
			return string(name), reason
		}
	}
}

// column returns the index of the column of a namespace.
func (p *vwParser) column(name []byte, used bool) (i int, reason string) {
	if p.namespaces != nil {
		i = slices.Index(p.namespaces, string(name))
		if i < 0 && used {
			return 0, fmt.Sprintf("namespace %s is not declared%s", table.Quote(name), nearest.Hint(string(name), p.namespaces))
		}
		return max(i, 0), ""
	}
	if p.numeric && used {
		if p.seen && !bytes.Equal(p.first, name) {
			return 0, fmt.Sprintf("namespaces %q and %s have numbers as names that mean different features: declare the namespaces", p.first, table.Quote(name))
		}
		if !p.seen {
			p.first, p.seen = bytes.Clone(name), true
		}
	}
	return 0, ""
}

// feature appends one feature.
func (p *vwParser) feature(c *table.Column, space uint64, factor float64, word []byte) (reason string) {
	name, value, ok := bytes.Cut(word, []byte{':'})
	if len(name) == 0 {
		return fmt.Sprintf("feature %s has no name", table.Quote(word))
	}
	v := 1.
	if ok {
		if v, reason = finite("value", value); reason != "" {
			return reason + fmt.Sprintf(" (feature %s)", table.Quote(name))
		}
	}
	id := fnv(space, name)
	if p.numeric {
		if id, ok = unsigned(name); !ok {
			return fmt.Sprintf("feature %s is not a whole number below 2^64, and numeric_ids says that names are numbers", table.Quote(name))
		}
	}
	c.Integers = append(c.Integers, int64(id))
	c.Numbers = append(c.Numbers, v*factor)
	return ""
}

// fnvStart is the offset basis of FNV-1a with 64 bits.
const fnvStart = 0xcbf29ce484222325

// fnv goes on with the hash FNV-1a.
func fnv(h uint64, text []byte) uint64 {
	const prime = 0x100000001b3
	for _, c := range text {
		h = (h ^ uint64(c)) * prime
	}
	return h
}
