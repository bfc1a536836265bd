// Package split says which rows are for training, which for validation and which
// for the test, and keeps a sample of negative ones: pure functions of a row and its
// number, so that all ranks and all programs agree.
package split

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/internal/mix"
	"github.com/gangline/gangline/internal/nearest"
)

// The parts of a data set.
const (
	Train      = "train"
	Validation = "validation"
	Test       = "test"
)

// The ways to split.
const (
	// ByFraction draws a part for each row by its number: Validation and Test are
	// shares.
	ByFraction = "fraction"
	// ByTail takes the test rows from the end and the validation rows before them:
	// Validation and Test are shares.
	ByTail = "tail"
	// ByFile goes by the name of the file that a row is in: Validation and Test are
	// names, or patterns of them such as day-2?.csv.
	ByFile = "file"
	// ByColumn goes by the text of a column: Validation and Test are its values.
	ByColumn = "column"
	// ByTime goes by the order of a column: Validation and Test are where they begin,
	// numbers or texts that order as times do, such as 2024-05-01.
	ByTime = "time"
)

// Rule says how rows are split, and which part is meant.
type Rule struct {
	// By is one of the ways; "": all rows are meant.
	By string
	// Part is the part that is meant; "" is Train.
	Part string
	// Column is the column of ByColumn and ByTime.
	Column string
	// Validation and Test say which rows are in them; the rest is for training.
	Validation, Test []string
	// Seed makes ByFraction draw in another way.
	Seed uint64
}

// Columns reports whether the rule needs a named column.
func (r *Rule) Columns() bool { return r.By == ByColumn || r.By == ByTime }

// Splitter is a Rule ready for use.
type Splitter struct {
	rule             Rule
	validation, test float64 // shares
	key              uint64
	first, second    bound // where validation and test begin
	total            int   // rows, for ByTail
}

// New prepares a rule. The error says what is wrong with it.
func New(r Rule) (*Splitter, error) {
	ways, parts := []string{ByFraction, ByTail, ByFile, ByColumn, ByTime}, []string{Train, Validation, Test}
	if r.Part == "" {
		r.Part = Train
	}
	s := &Splitter{rule: r, key: mix.At(mix.Mix(r.Seed), 1<<40)}
	switch {
	case !slices.Contains(ways, r.By):
		return nil, fmt.Errorf("by: unknown way %q%s", r.By, nearest.Hint(r.By, ways))
	case !slices.Contains(parts, r.Part):
		return nil, fmt.Errorf("part: unknown part %q%s", r.Part, nearest.Hint(r.Part, parts))
	case r.Columns() != (r.Column != ""):
		return nil, fmt.Errorf("column: by %s and %s need the name of a column, the others have none", ByColumn, ByTime)
	case len(r.Validation)+len(r.Test) == 0:
		return nil, errors.New("validation and test: both are missing, so nothing is split")
	case r.Part == Validation && len(r.Validation) == 0 || r.Part == Test && len(r.Test) == 0:
		return nil, fmt.Errorf("part: %s rows are asked for, but %s is missing", r.Part, r.Part)
	case r.Seed != 0 && r.By != ByFraction:
		return nil, fmt.Errorf("seed: only by %s draws anything", ByFraction)
	}
	var err error
	switch r.By {
	case ByFraction, ByTail:
		err = s.shares()
	case ByTime:
		err = s.bounds()
	case ByFile:
		for _, p := range slices.Concat(r.Validation, r.Test) {
			if _, err := path.Match(p, ""); err != nil {
				return nil, fmt.Errorf("%q is no pattern of names: a [ without its ]", p)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// shares reads the two shares.
func (s *Splitter) shares() error {
	for _, f := range []struct {
		name  string
		texts []string
		into  *float64
	}{{Validation, s.rule.Validation, &s.validation}, {Test, s.rule.Test, &s.test}} {
		if len(f.texts) == 0 {
			continue
		}
		v, err := strconv.ParseFloat(f.texts[0], 64)
		if len(f.texts) > 1 || err != nil || !(v > 0 && v < 1) {
			return fmt.Errorf("%s: %q is no share of the rows: want one number between 0 and 1", f.name, strings.Join(f.texts, ", "))
		}
		*f.into = v
	}
	if s.validation+s.test >= 1 {
		return fmt.Errorf("validation %v and test %v leave no rows for training", s.validation, s.test)
	}
	return nil
}

// bound is where a part begins: a number, or else a text.
type bound struct {
	set, number bool
	value       float64
	text        string
}

func newBound(text string) bound {
	v, err := strconv.ParseFloat(text, 64)
	return bound{set: true, number: err == nil, value: v, text: text}
}

// reached reports whether a value is at the bound or behind it.
func (b *bound) reached(value string) (bool, error) {
	if !b.number {
		return value >= b.text, nil
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return false, fmt.Errorf("%q is no number, as %s is", value, b.text)
	}
	return v >= b.value, nil
}

// bounds reads where the parts begin.
func (s *Splitter) bounds() error {
	for _, f := range []struct {
		name  string
		texts []string
		into  *bound
	}{{Validation, s.rule.Validation, &s.first}, {Test, s.rule.Test, &s.second}} {
		if len(f.texts) > 1 {
			return fmt.Errorf("%s: %d values: want the one that it begins with", f.name, len(f.texts))
		}
		if len(f.texts) == 1 {
			*f.into = newBound(f.texts[0])
		}
	}
	if s.first.set && s.second.set {
		if late, err := s.first.reached(s.second.text); err != nil || !late || s.first.number != s.second.number {
			return fmt.Errorf("validation begins with %s, which is not before test, %s", s.first.text, s.second.text)
		}
	}
	return nil
}

// NeedsTotal reports whether SetTotal must be called before Meant.
func (s *Splitter) NeedsTotal() bool { return s.rule.By == ByTail }

// SetTotal says how many rows there are.
func (s *Splitter) SetTotal(rows int) { s.total = rows }

// Column is the column whose text Meant is given; "" if none.
func (s *Splitter) Column() string { return s.rule.Column }

// Meant reports whether a row is of the part that is meant. number counts the rows of
// all files from 0, file is the name of its file and value the text of the rule's
// column. The error says why a value cannot be told.
func (s *Splitter) Meant(number int, file, value string) (bool, error) {
	part, err := s.part(number, file, value)
	return part == s.rule.Part, err
}

func (s *Splitter) part(number int, file, value string) (string, error) {
	switch r := &s.rule; r.By {
	case ByFraction:
		u := mix.Unit(mix.At(s.key, uint64(number)))
		return pick(u < s.test, u < s.test+s.validation), nil
	case ByTail:
		test := int(s.test * float64(s.total))
		validation := int(s.validation * float64(s.total))
		return pick(number >= s.total-test, number >= s.total-test-validation), nil
	case ByFile:
		return pick(matches(r.Test, file), matches(r.Validation, file)), nil
	case ByColumn:
		return pick(slices.Contains(r.Test, value), slices.Contains(r.Validation, value)), nil
	}
	test, validation := false, false
	var err error
	if s.second.set {
		test, err = s.second.reached(value)
	}
	if s.first.set && err == nil {
		validation, err = s.first.reached(value)
	}
	return pick(test, validation), err
}

func pick(test, validation bool) string {
	switch {
	case test:
		return Test
	case validation:
		return Validation
	}
	return Train
}

// matches reports whether the last element of a name, or all of it, is of a pattern.
func matches(patterns []string, file string) bool {
	base := file[strings.LastIndexAny(file, `/\`)+1:]
	return slices.ContainsFunc(patterns, func(p string) bool {
		whole, _ := path.Match(p, file)
		last, _ := path.Match(p, base)
		return whole || last
	})
}

// Negatives keeps a sample of the rows with label 0, which is right again by weight:
// each that is kept counts as 1/Keep rows (King and Zeng, "Logistic Regression in Rare
// Events Data", 2001, section 4.2).
type Negatives struct {
	// Keep is the probability of keeping such a row, in (0, 1]; 0 keeps all.
	Keep float64
	// Seed draws another sample.
	Seed uint64
}

// Check tells whether the numbers make sense.
func (n Negatives) Check() error {
	if !(n.Keep >= 0 && n.Keep <= 1) {
		return fmt.Errorf("keep: %v is no probability: want a number above 0 and up to 1", n.Keep)
	}
	return nil
}

// Weight returns what a row counts, 0 if it is left out: a function of its number and
// whether its label is 0, so that every rank draws the same sample.
func (n Negatives) Weight(number int, negative bool) float32 {
	if !negative || n.Keep == 0 {
		return 1
	}
	if mix.Unit(mix.At(mix.At(mix.Mix(n.Seed), 1<<41), uint64(number))) >= n.Keep {
		return 0
	}
	return float32(1 / n.Keep)
}
