package feature

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gangline/gangline/data/table"
)

// LabelValue is what a value of the label's column counts as.
type LabelValue struct {
	Value string  `json:"value"`
	Label float32 `json:"label"`
}

// labels knows what the values of a column count as.
type labels struct {
	task    Task
	classes int
	kind    table.Kind
	values  map[string]float32 // nil: numbers count as what they are
	// learn says that values not in there are taken from the training rows.
	learn bool
	seen  map[string]bool
	text  []byte
}

// newLabels prepares the declared values of a column.
func newLabels(s *Spec, f table.Field) (*labels, error) {
	l := &labels{task: s.Task, classes: s.Classes, kind: f.Kind, seen: map[string]bool{}}
	d := &s.Label
	numeric := f.Kind == table.Number || f.Kind == table.Integer
	if !numeric && f.Kind != table.Text {
		return nil, &DeclError{"label.column", fmt.Sprintf("%q is %s: a label is one value a row", f.Name, f.Kind)}
	}
	values := map[string]float32{}
	add := func(list []string, label func(i int) float32) error {
		for i, v := range list {
			v, ok := l.canonical(v)
			if !ok {
				return &DeclError{"label", fmt.Sprintf("%q is no number, but the column %q has numbers", v, f.Name)}
			}
			values[v] = label(i)
		}
		return nil
	}
	var err error
	switch {
	case s.Task == Multiclass:
		err = add(d.Classes, func(i int) float32 { return float32(i) })
		l.values, l.learn = values, len(d.Classes) == 0
	case len(d.Positive) > 0:
		if err = add(d.Negative, func(int) float32 { return 0 }); err == nil {
			err = add(d.Positive, func(int) float32 { return 1 })
		}
		l.values, l.learn = values, len(d.Negative) == 0
	case s.Task == Binary && !numeric:
		err = &DeclError{"label.positive", fmt.Sprintf("is missing: the column %q is text, so say which values are 1", f.Name)}
	case !numeric:
		err = &DeclError{"label.column", fmt.Sprintf("%q is text, the model predicts a number: name a column of numbers", f.Name)}
	}
	return l, err
}

// canonical brings a declared value to the form that AppendText has.
func (l *labels) canonical(v string) (string, bool) {
	if l.kind == table.Text {
		return v, true
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return v, false
	}
	return string(appendNumber(nil, n)), true
}

// of returns what a row's value counts as, or why it cannot be. While values are
// learned, unknown ones are noted.
func (l *labels) of(c *table.Column, row int) (label float32, reason string) {
	if missing(c, row) {
		return 0, "the label is missing"
	}
	if l.values == nil {
		return l.number(c, row)
	}
	l.text = AppendText(l.text[:0], c, l.kind, row)
	if v, ok := l.values[string(l.text)]; ok {
		return v, ""
	}
	if l.kind == table.Number && !finite(c.Numbers[row]) {
		return 0, "the label is not finite"
	}
	switch {
	case !l.learn:
		return 0, l.unknown()
	case l.seen[string(l.text)]:
	case len(l.seen) < maxLabels: // more than that are an error in the end
		l.seen[string(l.text)] = true
	}
	return 0, ""
}

// unknown says that a value is none of those declared or learned.
func (l *labels) unknown() string {
	const most = 8
	known := make([]string, 0, len(l.values))
	for v := range l.values {
		known = append(known, strconv.Quote(v))
	}
	slices.Sort(known)
	list := fmt.Sprint(known)
	if len(known) > most {
		list = fmt.Sprintf("%v and %d more", known[:most], len(known)-most)
	}
	return fmt.Sprintf("label %.40q is none of %s", l.text, list)
}

// number is of for labels that count as what they are.
func (l *labels) number(c *table.Column, row int) (label float32, reason string) {
	var v float64
	if l.kind == table.Integer {
		v = float64(c.Integers[row])
	} else {
		v = c.Numbers[row]
	}
	if !(math.Abs(v) <= math.MaxFloat32) {
		return 0, fmt.Sprintf("label %v is not a finite number of 32 bits", v)
	}
	if l.task != Binary {
		return float32(v), ""
	}
	switch v {
	case 1:
		return 1, ""
	case 0, -1:
		return 0, ""
	}
	return 0, fmt.Sprintf("label %v is not -1, 0 or 1; set label.positive to say which values are 1", v)
}

// fit returns the values that were declared and learned; none for numbers that
// count as what they are.
func (l *labels) fit() ([]LabelValue, error) {
	if l.values == nil {
		return nil, nil
	}
	if len(l.seen) >= maxLabels {
		return nil, &DeclError{"label.column", fmt.Sprintf("has %d or more values: too many to tell apart; is it the right column?", maxLabels)}
	}
	seen := make([]string, 0, len(l.seen))
	for v := range l.seen {
		if !utf8.ValidString(v) {
			return nil, &DeclError{"label.column", fmt.Sprintf("has the value %.40q, which is not UTF-8: convert the file", v)}
		}
		seen = append(seen, v)
	}
	slices.SortFunc(seen, compareValues)
	fitted := make([]LabelValue, 0, len(l.values)+len(seen))
	for v, label := range l.values {
		fitted = append(fitted, LabelValue{v, label})
	}
	slices.SortFunc(fitted, func(a, b LabelValue) int {
		if a.Label != b.Label {
			return cmp.Compare(a.Label, b.Label)
		}
		return compareValues(a.Value, b.Value)
	})
	if l.task != Multiclass {
		learned := make([]LabelValue, len(seen))
		for i, v := range seen {
			learned[i] = LabelValue{v, 0}
		}
		return append(learned, fitted...), nil
	}
	if l.learn {
		fitted = numbered(seen, l.classes)
	}
	if l.classes > 0 && len(fitted) > l.classes {
		return nil, &DeclError{"label.column", fmt.Sprintf("has %d values, the model %d classes: %s", len(fitted), l.classes, sample(seen))}
	}
	return fitted, nil
}

// numbered gives values the numbers of classes: whole numbers in [0, classes)
// are such numbers, other values are counted.
func numbered(values []string, classes int) []LabelValue {
	own := classes > 0
	for _, v := range values {
		n, err := strconv.Atoi(v)
		own = own && err == nil && n >= 0 && n < classes
	}
	if own {
		values = make([]string, classes)
		for i := range values {
			values[i] = strconv.Itoa(i)
		}
	}
	fitted := make([]LabelValue, len(values))
	for i, v := range values {
		fitted[i] = LabelValue{v, float32(i)}
	}
	return fitted
}

// compareValues orders numbers by size, before texts, and texts by their bytes.
func compareValues(a, b string) int {
	x, isX := parseFinite(a)
	y, isY := parseFinite(b)
	switch {
	case isX && isY && x != y:
		return cmp.Compare(x, y)
	case isX != isY && isX:
		return -1
	case isX != isY:
		return 1
	}
	return strings.Compare(a, b)
}

func parseFinite(s string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && finite(v)
}

// sample shows the first few of many values.
func sample(values []string) string {
	const most = 8
	if len(values) > most {
		return fmt.Sprintf("%.40q ...", values[:most])
	}
	return fmt.Sprintf("%.40q", values)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
