package feature

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/gangline/gangline/data/table"
)

// Fitter sees the training rows once and learns what the features need of them.
//
// Its memory is bounded: a vocabulary by MaxDistinct and MaxVocabularyBytes,
// quantiles by a sample of 65,536 rows. What it learns does not depend on how the
// rows are cut into blocks.
type Fitter struct {
	spec     Spec
	inputs   []Input
	checker  *checker
	features []fitting
	rows     int64
	refused  *table.RowError // the first row that nothing was learned from
	text     []byte
}

// fitting is what is known of one feature.
type fitting struct {
	bound
	missing int64
	moments []moments   // dense numbers
	sample  *rowSample  // quantiles
	values  *vocabulary // exact categories
}

// NewFitter prepares to fit a pipeline to rows with the given fields. Errors are
// *DeclError.
func NewFitter(s Spec, fields []table.Field) (*Fitter, error) {
	return newFitter(s, fields, MaxDistinct)
}

func newFitter(s Spec, fields []table.Field, distinct int) (*Fitter, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	c := newColumns(fields)
	f := &Fitter{spec: s}
	var err error
	if f.checker, err = newChecker(&s, c, true); err != nil {
		return nil, err
	}
	declared, auto := slices.Clone(s.Features), len(s.Features) == 0
	if auto {
		declared = automatic(&s, fields)
	}
	if len(declared) == 0 {
		return nil, &DeclError{"features", "there is nothing to predict from: the file has no other columns"}
	}
	bounds, err := bind(declared, c, auto)
	if err != nil {
		return nil, err
	}
	f.checker.features, f.inputs = bounds, c.inputs()
	for _, b := range bounds {
		f.features = append(f.features, newFitting(b, distinct))
	}
	return f, nil
}

func newFitting(b bound, distinct int) fitting {
	f := fitting{bound: b}
	switch {
	case b.Kind == Number && !b.Bucketed():
		f.moments = make([]moments, b.width)
	case b.Quantiles > 0:
		f.sample = &rowSample{size: sampleRows}
	case b.Kind == Category && b.Buckets == 0:
		f.values = newVocabulary(b.kind == table.Entries, distinct)
	}
	return f
}

// Filter makes the Fitter pass over rows that are not meant.
func (f *Fitter) Filter(meant Filter) { f.checker.filter = meant }

// Rows is the number of good rows seen so far.
func (f *Fitter) Rows() int { return int(f.rows) }

// Labels are those of the good rows that Add was given last. Values of which a class
// is learned are 0 before the end of the fit.
func (f *Fitter) Labels() []float32 { return f.checker.target }

// NeedsRows reports whether anything is learned from rows; if not, Fitted may be
// called without having added any.
func (f *Fitter) NeedsRows() bool {
	if f.checker.labels.learn {
		return true
	}
	return slices.ContainsFunc(f.features, func(f fitting) bool {
		return f.values != nil || f.sample != nil || f.moments != nil && (f.Normalize != "" || f.Fill == "" || f.Fill == "mean")
	})
}

// Add learns from a block. Rows that Apply would leave out for what is known
// before fitting are left out here, too; they are not reported twice. Cost: some
// tens of ns a value.
func (f *Fitter) Add(b *table.Block) error {
	f.checker.rows(b)
	kept := f.checker.kept
	f.rows += int64(len(kept))
	if bad := f.checker.bad; f.refused == nil && len(bad) > 0 {
		f.refused = new(bad[0])
	}
	for i := range f.features {
		t := &f.features[i]
		if t.Kind == Cross {
			continue
		}
		c := &b.Columns[t.field]
		for _, row := range kept {
			if missing(c, row) {
				t.missing++
			}
		}
		switch {
		case t.moments != nil:
			t.addMoments(c, kept)
		case t.sample != nil:
			t.addSample(b, kept)
		case t.values != nil:
			if err := f.addValues(i, c, kept); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *fitting) addMoments(c *table.Column, kept []int) {
	for _, row := range kept {
		if missing(c, row) {
			continue
		}
		if t.kind != table.Numbers {
			t.moments[0].add(t.transform(numberAt(c, t.kind, row)))
			continue
		}
		for j, v := range c.Numbers[c.Offsets[row]:c.Offsets[row+1]] {
			t.moments[j].add(t.transform(v))
		}
	}
}

func (t *fitting) addSample(b *table.Block, kept []int) {
	// The directory does not count: ranks may have it elsewhere.
	c, salt := &b.Columns[t.field], Salt(path.Base(b.File))
	for _, row := range kept {
		if !missing(c, row) {
			t.sample.add(salt, line(b, row), t.transform(numberAt(c, t.kind, row)))
		}
	}
}

// addValues counts the values of a category.
func (f *Fitter) addValues(i int, c *table.Column, kept []int) error {
	t := &f.features[i]
	for _, row := range kept {
		if missing(c, row) {
			continue
		}
		lo, hi := row, row+1
		if listed(t.kind) {
			lo, hi = c.Offsets[row], c.Offsets[row+1]
		}
		for e := lo; e < hi && !t.values.full; e++ {
			switch t.kind {
			case table.Entries:
				t.values.addID(uint64(c.Integers[e]))
			case table.Texts:
				t.values.addText(text(c, e))
			case table.Text, table.Integer, table.Number, table.Numbers:
				f.text = AppendText(f.text[:0], c, t.kind, row)
				t.values.addText(f.text)
			}
		}
	}
	return f.checkVocabulary(i)
}

// checkVocabulary refuses a declared vocabulary beyond its limit.
func (f *Fitter) checkVocabulary(i int) error {
	t := &f.features[i]
	if !t.values.full || t.auto {
		return nil
	}
	return &DeclError{fmt.Sprintf("features[%d].buckets", i), fmt.Sprintf(
		"is missing: %q has more than %d distinct values or %d MiB of them, too many for an exact vocabulary; say how many ids they are hashed into",
		t.Column, t.values.limit, MaxVocabularyBytes>>20)}
}

// Merge adds what another Fitter of the same pipeline and fields learned from
// other rows. Merging parts in another order may change the last bits of means.
func (f *Fitter) Merge(o *Fitter) error {
	if len(f.features) != len(o.features) || !slices.Equal(f.inputs, o.inputs) {
		return errors.New("feature: two pipelines that differ cannot be merged")
	}
	f.rows += o.rows
	for v := range o.checker.labels.seen {
		f.checker.labels.seen[v] = true
	}
	for i := range f.features {
		a, b := &f.features[i], &o.features[i]
		a.missing += b.missing
		for j := range a.moments {
			a.moments[j].merge(b.moments[j])
		}
		if a.sample != nil {
			a.sample.merge(b.sample)
		}
		if a.values == nil {
			continue
		}
		a.values.merge(b.values)
		if err := f.checkVocabulary(i); err != nil {
			return err
		}
	}
	return nil
}
