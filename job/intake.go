package job

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/data/split"
)

// Split says which rows of a file are for training, which for validation and which
// for the test.
type Split struct {
	// By is fraction (drawn by the number of the row), tail (the end of the rows),
	// file, column or time.
	By string `yaml:"by,omitempty"`
	// Part is which rows are meant: train, validation or test.
	Part string `yaml:"part,omitempty"`
	// Column is what column and time go by (files with named columns).
	Column string `yaml:"column,omitempty"`
	// Validation and Test say which rows are in them: a share (fraction, tail),
	// names or patterns of files (file), values (column), or where they begin (time).
	Validation Texts `yaml:"validation,omitempty"`
	Test       Texts `yaml:"test,omitempty"`
	// Seed draws in another way (fraction).
	Seed uint64 `yaml:"seed,omitempty"`
}

// Rule is the split in the words of package split; nil: there is none.
func (s *Split) Rule() *split.Rule {
	if s.By == "" {
		return nil
	}
	return &split.Rule{By: s.By, Part: s.Part, Column: s.Column, Validation: s.Validation, Test: s.Test, Seed: s.Seed}
}

// Negatives says how many of the rows with label 0 are kept.
type Negatives struct {
	// Keep is the probability of keeping such a row, which then counts 1/Keep; 0:
	// all are kept.
	Keep float64 `yaml:"keep,omitempty"`
	// Seed draws another sample.
	Seed uint64 `yaml:"seed,omitempty"`
}

// Sample is the same in the words of package split.
func (n Negatives) Sample() split.Negatives { return split.Negatives{Keep: n.Keep, Seed: n.Seed} }

// Texts is a list that may be written as its only element.
type Texts []string

// UnmarshalYAML reads a value or a list of values, numbers as they are written
// shortest.
func (t *Texts) UnmarshalYAML(decode func(any) error) error {
	var v any
	if err := decode(&v); err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	*t = nil
	for _, v := range list {
		switch v := v.(type) {
		case string:
			*t = append(*t, v)
		case float64:
			*t = append(*t, strconv.FormatFloat(v, 'g', -1, 64))
		case uint64, int64, int, bool:
			*t = append(*t, fmt.Sprint(v))
		default:
			return fmt.Errorf("want a value or a list of values, not %v", v)
		}
	}
	return nil
}

// Files are names or patterns of files, written as one of them or a list.
type Files []string

// UnmarshalYAML reads a name or a list of names.
func (f *Files) UnmarshalYAML(decode func(any) error) error {
	err := (*Texts)(f).UnmarshalYAML(decode)
	if slices.Equal(*f, Files{""}) {
		*f = nil
	}
	return err
}

// MarshalYAML writes what UnmarshalYAML reads, shortest.
func (f Files) MarshalYAML() (any, error) {
	switch len(f) {
	case 0:
		return "", nil
	case 1:
		return f[0], nil
	}
	return []string(f), nil
}

// First is the only one, "" if there is none, or the first of several.
func (f Files) First() string {
	if len(f) == 0 {
		return ""
	}
	return f[0]
}

// several reports whether a format reads more than one file.
func several(format string) bool {
	return !slices.Contains([]string{"idx", "text", "generated", "cache"}, format)
}

// Size is a number of bytes, written as 300MB or 2GB in a job.
type Size int64

// units are what sizes are written in: powers of 1000, and of 1024 with an i.
func units() []struct {
	name  string
	bytes float64
} {
	return []struct {
		name  string
		bytes float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}
}

// UnmarshalText reads 2GB, 300MB, 1.5GiB, or a number of bytes.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := strings.TrimSpace(string(text)), 1.0
	for _, u := range units() {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0 && v*unit < math.MaxInt64/2) {
		return fmt.Errorf("%q is no size: want a number and a unit, such as 300MB or 2GB", text)
	}
	*s = Size(v * unit)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) {
	for _, u := range []struct {
		name  string
		bytes Size
	}{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s >= u.bytes && s%u.bytes == 0 {
			return fmt.Appendf(nil, "%d%s", s/u.bytes, u.name), nil
		}
	}
	return fmt.Appendf(nil, "%d", int64(s)), nil
}

// BadRows is the limit of malformed rows: a number of them, or a share of all rows.
func (s *Source) BadRows() (rows int, share float64) {
	if s.MaxBadRows > 0 && s.MaxBadRows < 1 {
		return 0, s.MaxBadRows
	}
	return int(s.MaxBadRows), 0
}

// completeIntake makes eval the rows that the training rows' split puts aside, if it
// names no rows of its own.
func (d *Data) completeIntake() {
	t, e := &d.Train, &d.Eval
	if t.Split.By == "" || e.Format != "" {
		return
	}
	part := e.Split.Part
	if part == "" && len(t.Split.Validation) > 0 {
		part = split.Validation
	} else if part == "" {
		part = split.Test
	}
	*e = *t
	e.Split.Part, e.Negatives = part, Negatives{}
}

// validateIntake checks which rows are kept, and where.
func (d *Data) validateIntake() error {
	for _, s := range []struct {
		at     string
		source *Source
	}{{"data.train", &d.Train}, {"data.eval", &d.Eval}} {
		if n := s.source.MaxBadRows; !(n >= 0 && (n < 1 || n == math.Trunc(n) && n <= math.MaxInt32)) {
			return &FieldError{s.at + ".max_bad_rows", fmt.Sprintf("%v is neither a whole number of rows nor a share below 1", n)}
		}
		if len(s.source.Path) > 1 && !several(s.source.Format) {
			return &FieldError{s.at + ".path", fmt.Sprintf("format %s reads one file, not %d", s.source.Format, len(s.source.Path))}
		}
		if err := s.source.Negatives.Sample().Check(); err != nil {
			return &FieldError{s.at + ".negatives", err.Error()}
		}
		rule := s.source.Split.Rule()
		if rule == nil {
			continue
		}
		if _, err := split.New(*rule); err != nil {
			return &FieldError{s.at + ".split", err.Error()}
		}
		if rule.Columns() && !s.source.IsTable() {
			return &FieldError{s.at + ".split.by", fmt.Sprintf("%s needs named columns, which %s has not: set %s, %s or %s",
				rule.By, s.source.Format, split.ByFraction, split.ByTail, split.ByFile)}
		}
	}
	return nil
}
