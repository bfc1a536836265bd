package feature

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/internal/nearest"
)

// Validate says what is wrong with the declarations themselves, as a *DeclError;
// whether a file has the columns is known when it is opened.
func (s *Spec) Validate() error {
	if err := s.validateLabel(); err != nil {
		return err
	}
	names := map[string]int{}
	for i := range s.Features {
		f := &s.Features[i]
		if fault := f.validate(); fault != nil {
			fault.Field = fmt.Sprintf("features[%d].%s", i, fault.Field)
			return fault
		}
		if fault := f.leaks(s.Label.Column); fault != nil {
			fault.Field = fmt.Sprintf("features[%d].%s", i, fault.Field)
			return fault
		}
		if first, twice := names[f.name()]; twice {
			return &DeclError{fmt.Sprintf("features[%d].name", i), fmt.Sprintf("%q is that of features[%d], too; give one another name", f.name(), first)}
		}
		names[f.name()] = i
	}
	return nil
}

// name is the feature's name, declared or made.
func (f *Feature) name() string {
	switch {
	case f.Name != "":
		return f.Name
	case f.Kind == Cross:
		return strings.Join(f.Columns, "*")
	}
	return f.Column
}

func (s *Spec) validateLabel() error {
	l := &s.Label
	for _, c := range []struct {
		bad   bool
		field string
		fix   string
	}{
		{l.Column == "", "label.column", "is missing: name the column that is predicted"},
		{len(l.Positive) > 0 && s.Task != Binary, "label.positive", "is for two classes; the model is for " + string(s.Task) + ": leave it out"},
		{len(l.Negative) > 0 && s.Task != Binary, "label.negative", "is for two classes; the model is for " + string(s.Task) + ": leave it out"},
		{len(l.Negative) > 0 && len(l.Positive) == 0, "label.positive", "is missing: say which values are 1, as negative says which are 0"},
		{len(l.Classes) > 0 && s.Task != Multiclass, "label.classes", "is for several classes; the model is for " + string(s.Task) + ": leave it out"},
		{s.Classes > 0 && len(l.Classes) > s.Classes, "label.classes", fmt.Sprintf("has %d values, the model %d classes", len(l.Classes), s.Classes)},
		{s.Weight != "" && s.Weight == l.Column, "weight", "is the label's column: name another"},
	} {
		if c.bad {
			return &DeclError{c.field, c.fix}
		}
	}
	seen := map[string]bool{}
	for _, v := range slices.Concat(l.Positive, l.Negative, l.Classes) {
		if seen[v] {
			return &DeclError{"label", fmt.Sprintf("the value %q is there twice", v)}
		}
		seen[v] = true
	}
	return nil
}

// leaks refuses a feature of the label: a model would be given what it predicts.
func (f *Feature) leaks(label string) *DeclError {
	for field, names := range map[string][]string{"column": {f.Column}, "columns": f.Columns} {
		if label != "" && slices.Contains(names, label) {
			return &DeclError{field, fmt.Sprintf("%q is the label, which a model is not given: name another column", label)}
		}
	}
	return nil
}

// validate reports the first fault of a feature, with the field's own name.
func (f *Feature) validate() *DeclError {
	kinds := []string{string(Number), string(Category), string(Cross)}
	if !slices.Contains(kinds, string(f.Kind)) {
		if f.Kind == "" {
			return &DeclError{"kind", "is missing: set number, category or cross"}
		}
		return &DeclError{"kind", fmt.Sprintf("%q is not known%s", f.Kind, nearest.Hint(string(f.Kind), kinds))}
	}
	if fault := f.unused(); fault != nil {
		return fault
	}
	switch f.Kind {
	case Number:
		return f.validateNumber()
	case Category, Cross:
	}
	for _, c := range []struct {
		bad   bool
		field string
		fix   string
	}{
		{f.Kind == Category && f.Column == "", "column", "is missing: name a column of the file"},
		{f.Kind == Cross && len(f.Columns) < 2, "columns", "must name at least two columns to cross"},
		{f.Kind == Cross && f.Buckets == 0, "buckets", "is missing: say how many ids the cross is hashed into"},
		{f.Buckets < 0 || f.Buckets >= MaxIDs, "buckets", fmt.Sprintf("must be 1 to %d, is %d", MaxIDs-1, f.Buckets)},
		{f.MinCount < 0, "min_count", "must not be negative"},
		{f.MinCount > 0 && f.Buckets > 0, "min_count", "counts the values of an exact vocabulary, buckets hash them: leave one out"},
	} {
		if c.bad {
			return &DeclError{c.field, c.fix}
		}
	}
	for i, c := range f.Columns {
		if slices.Contains(f.Columns[:i], c) {
			return &DeclError{"columns", fmt.Sprintf("%q is there twice", c)}
		}
	}
	return nil
}

// unused refuses fields that the kind does not read.
func (f *Feature) unused() *DeclError {
	for _, c := range []struct {
		field string
		set   bool
		kinds string
	}{
		{"column", f.Column != "", "number category"},
		{"columns", len(f.Columns) > 0, "cross"},
		{"clip", len(f.Clip) > 0, "number"},
		{"log", f.Log != "", "number"},
		{"normalize", f.Normalize != "", "number"},
		{"fill", f.Fill != "", "number"},
		{"indicator", f.Indicator, "number"},
		{"boundaries", len(f.Boundaries) > 0, "number"},
		{"quantiles", f.Quantiles != 0, "number"},
		{"min_count", f.MinCount != 0, "category"},
		{"buckets", f.Buckets != 0, "category cross"},
		{"unit_norm", f.UnitNorm, "category"},
	} {
		if c.set && !strings.Contains(c.kinds, string(f.Kind)) {
			return &DeclError{c.field, fmt.Sprintf("has no meaning for kind %s (only for %s): leave it out", f.Kind, c.kinds)}
		}
	}
	return nil
}

func (f *Feature) validateNumber() *DeclError {
	dense := !f.Bucketed()
	_, fillFault := f.fill()
	for _, c := range []struct {
		bad   bool
		field string
		fix   string
	}{
		{f.Column == "", "column", "is missing: name a column of the file"},
		{len(f.Clip) > 0 && (len(f.Clip) != 2 || !(f.Clip[0] < f.Clip[1])), "clip", fmt.Sprintf("must be [lowest, highest], is %v", f.Clip)},
		{!ascending(f.Boundaries), "boundaries", fmt.Sprintf("must be finite and ascending, are %v", f.Boundaries)},
		{len(f.Boundaries) > 0 && f.Quantiles != 0, "quantiles", "are boundaries that the rows decide: leave one of the two out"},
		{f.Quantiles != 0 && (f.Quantiles < 2 || f.Quantiles > MaxQuantiles), "quantiles", fmt.Sprintf("must be 2 to %d, is %d", MaxQuantiles, f.Quantiles)},
		{!dense && f.Normalize != "", "normalize", "changes no id: leave it out, or the intervals"},
		{!dense && f.Fill != "", "fill", "is not needed, a missing value has an id of its own: leave it out"},
		{!dense && f.Indicator, "indicator", "is not needed, a missing value has an id of its own: leave it out"},
		{fillFault, "fill", fmt.Sprintf("must be mean or a finite number, is %q", f.Fill)},
	} {
		if c.bad {
			return &DeclError{c.field, c.fix}
		}
	}
	for _, c := range []struct {
		field, value string
		known        []string
	}{
		{"log", f.Log, []string{"", "signed", "clipped"}},
		{"normalize", f.Normalize, []string{"", "standard", "minmax"}},
	} {
		if !slices.Contains(c.known, c.value) {
			return &DeclError{c.field, fmt.Sprintf("%q is not known%s", c.value, nearest.Hint(c.value, c.known[1:]))}
		}
	}
	return nil
}

// fill returns the value that stands for a missing one, NaN for the mean.
func (f *Feature) fill() (v float64, fault bool) {
	if f.Fill == "" || f.Fill == "mean" {
		return math.NaN(), false
	}
	v, err := strconv.ParseFloat(f.Fill, 64)
	return v, err != nil || math.IsNaN(v) || math.Abs(v) > math.MaxFloat32
}

// ascending reports whether numbers are finite and each is above the one before.
func ascending(v []float64) bool {
	for i, b := range v {
		if math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && b <= v[i-1] {
			return false
		}
	}
	return true
}
