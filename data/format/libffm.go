package format

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/nearest"
)

// libffmParser reads lines in the format of field-aware factorization machines
// (Juan, Zhuang, Chin and Lin, 2016):
//
//	label field:feature:value ...
//
// Features are numbered across fields. The columns are label, x (the features)
// and field (the field of each feature, in the same order); or label and one
// column for each field that is declared.
type libffmParser struct {
	namespaces []string // the fields; nil: x and field
	numbers    []uint64 // of them
}

// The columns of libffm.
const (
	ffmLabel = iota
	ffmFeatures
	ffmField
)

// openLibffm implements opener.
func openLibffm(ctx context.Context, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	p, err := newLibffm(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", location, err)
	}
	return openRows(ctx, spec, location, like, p)
}

func newLibffm(spec *Spec) (*libffmParser, error) {
	p := &libffmParser{namespaces: spec.Namespaces}
	for _, name := range spec.Namespaces {
		u, ok := unsigned([]byte(name))
		if !ok {
			return nil, fmt.Errorf("namespace %q is not the number of a field", name)
		}
		p.numbers = append(p.numbers, u)
	}
	return p, nil
}

// fields implements lineParser.
func (p *libffmParser) fields() []table.Field {
	fields := append([]table.Field{{Name: "label", Kind: table.Number}}, entryFields(p.namespaces)...)
	if p.namespaces == nil {
		fields = append(fields, table.Field{Name: "field", Kind: table.Numbers})
	}
	return fields
}

// parse implements lineParser.
func (p *libffmParser) parse(columns []table.Column, _ int, line []byte) (column, reason string) {
	word, rest := token(line)
	label, reason := finite("label", word)
	if reason != "" {
		return "label", reason
	}
	columns[ffmLabel].Numbers = append(columns[ffmLabel].Numbers, label)
	for {
		if word, rest = token(rest); len(word) == 0 {
			break
		}
		if reason := p.entry(columns, word); reason != "" {
			return "", reason
		}
	}
	for i := range columns[ffmFeatures:] {
		c := &columns[ffmFeatures+i]
		c.EndList(len(c.Numbers))
	}
	return "", ""
}

// entry appends field:feature:value.
func (p *libffmParser) entry(columns []table.Column, word []byte) (reason string) {
	field, rest, _ := bytes.Cut(word, []byte{':'})
	feature, text, ok := bytes.Cut(rest, []byte{':'})
	if !ok {
		return fmt.Sprintf("entry %s has not two colons, want field:feature:value", table.Quote(word))
	}
	space, ok := unsigned(field)
	if !ok || space > 1<<53 {
		return fmt.Sprintf("field %s is not a whole number below 2^53", table.Quote(field))
	}
	id, ok := unsigned(feature)
	if !ok {
		return fmt.Sprintf("feature %s is not a whole number below 2^64", table.Quote(feature))
	}
	value, reason := finite("value", text)
	if reason != "" {
		return reason + fmt.Sprintf(" (entry %s)", table.Quote(word))
	}
	i := 0
	if p.namespaces != nil {
		if i = slices.Index(p.numbers, space); i < 0 {
			return fmt.Sprintf("field %d is not declared%s", space, nearest.Hint(string(field), p.namespaces))
		}
	} else {
		columns[ffmField].Numbers = append(columns[ffmField].Numbers, float64(space))
	}
	c := &columns[ffmFeatures+i]
	c.Integers = append(c.Integers, int64(id))
	c.Numbers = append(c.Numbers, value)
	return ""
}
