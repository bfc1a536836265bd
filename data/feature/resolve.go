package feature

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/nearest"
)

// Input is a field that a pipeline reads.
type Input struct {
	Name  string     `json:"name"`
	Kind  table.Kind `json:"kind"`
	Width int        `json:"width,omitempty"`
}

// columns finds fields by name.
type columns struct {
	fields []table.Field
	at     map[string]int
	used   []bool
}

func newColumns(fields []table.Field) *columns {
	c := &columns{fields: fields, at: make(map[string]int, len(fields)), used: make([]bool, len(fields))}
	for i, f := range fields {
		c.at[f.Name] = i
	}
	return c
}

// find returns the index of a field, and notes that it is read.
func (c *columns) find(declared, name string) (int, error) {
	i, ok := c.at[name]
	if !ok {
		var names []string
		for _, f := range c.fields {
			names = append(names, f.Name)
		}
		return 0, &DeclError{declared, fmt.Sprintf("the file has no column %q%s", name, nearest.Hint(name, names))}
	}
	c.used[i] = true
	return i, nil
}

// inputs lists the fields that are read, in the order of the file.
func (c *columns) inputs() []Input {
	var in []Input
	for i, f := range c.fields {
		if c.used[i] {
			in = append(in, Input{f.Name, f.Kind, f.Width})
		}
	}
	return in
}

// bound is a feature with the places of its columns in a block.
type bound struct {
	*Feature
	field int // index of Column
	kind  table.Kind
	width int // dense values of the column
	parts []part
	auto  bool // not declared: may become hashed
}

// part is one column of a cross.
type part struct {
	field   int
	kind    table.Kind
	feature int // index of a number feature with intervals, or -1
}

// bind finds the columns of features. auto says that they were not declared.
func bind(features []Feature, c *columns, auto bool) ([]bound, error) {
	bounds := make([]bound, len(features))
	for i := range features {
		f := &features[i]
		at := fmt.Sprintf("features[%d]", i)
		bounds[i] = bound{Feature: f, auto: auto}
		if f.Kind == Cross {
			continue
		}
		field, err := c.find(at+".column", f.Column)
		if err != nil {
			return nil, err
		}
		b := &bounds[i]
		b.field, b.kind, b.width = field, c.fields[field].Kind, max(1, c.fields[field].Width)
		if fault := b.misfit(c.fields[field]); fault != nil {
			fault.Field = at + "." + fault.Field
			return nil, fault
		}
	}
	for i := range bounds {
		if err := bounds[i].bindParts(fmt.Sprintf("features[%d].columns", i), bounds, c); err != nil {
			return nil, err
		}
	}
	return bounds, nil
}

// misfit says how a feature cannot be made of a field.
func (b *bound) misfit(f table.Field) *DeclError {
	numeric := f.Kind == table.Number || f.Kind == table.Integer
	vector := f.Kind == table.Numbers && f.Width > 0
	switch {
	case b.Kind == Number && f.Kind == table.Numbers && !vector:
		return &DeclError{"column", fmt.Sprintf("%q has lists of different lengths, a number needs one length for all rows: leave the column out, or add it to data.ignore", f.Name)}
	case b.Kind == Number && !numeric && !vector:
		return &DeclError{"column", fmt.Sprintf("%q is %s, not number: set kind: category, or declare its type as number where the file is opened", f.Name, f.Kind)}
	case b.Bucketed() && vector:
		return &DeclError{"column", fmt.Sprintf("%q is a vector: intervals are for single numbers", f.Name)}
	case b.Kind == Category && f.Kind == table.Numbers:
		return &DeclError{"column", fmt.Sprintf("%q is a vector of numbers: set kind: number", f.Name)}
	case b.UnitNorm && f.Kind != table.Texts && f.Kind != table.Entries:
		return &DeclError{"unit_norm", fmt.Sprintf("is for lists, %q has one value a row: leave it out", f.Name)}
	}
	return nil
}

// bindParts finds the columns of a cross.
func (b *bound) bindParts(at string, features []bound, c *columns) error {
	for _, name := range b.Columns {
		i := slices.IndexFunc(features, func(o bound) bool { return o.Bucketed() && o.name() == name })
		if i >= 0 {
			b.parts = append(b.parts, part{feature: i})
			continue
		}
		field, err := c.find(at, name)
		if err != nil {
			return err
		}
		kind := c.fields[field].Kind
		if listed(kind) {
			return &DeclError{at, fmt.Sprintf("%q has several values a row: a cross takes columns of one", name)}
		}
		b.parts = append(b.parts, part{field: field, kind: kind, feature: -1})
	}
	return nil
}

// Columns names the fields that the declarations may read, nil if that is all of
// them. Names of features that a cross is of may be among them.
func (s *Spec) Columns() []string {
	if len(s.Features) == 0 {
		return nil
	}
	names := []string{s.Label.Column}
	if s.Weight != "" {
		names = append(names, s.Weight)
	}
	for i := range s.Features {
		f := &s.Features[i]
		if f.Column != "" {
			names = append(names, f.Column)
		}
		names = append(names, f.Columns...)
	}
	return names
}

// automatic declares a feature for every field that has no other role.
func automatic(s *Spec, fields []table.Field) []Feature {
	var features []Feature
	for _, f := range fields {
		if f.Name == s.Label.Column || f.Name == s.Weight || slices.Contains(s.Ignore, f.Name) {
			continue
		}
		switch f.Kind {
		case table.Number, table.Integer, table.Numbers:
			features = append(features, Feature{Kind: Number, Column: f.Name, Normalize: "standard"})
		case table.Text, table.Texts, table.Entries:
			features = append(features, Feature{Kind: Category, Column: f.Name})
		}
	}
	return features
}
