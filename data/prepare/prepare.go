// Package prepare reads tables of raw fields and makes features of their rows: what
// stands between data/format and data/feature on the one side and a source of rows
// on the other.
package prepare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/data/split"
	"github.com/gangline/gangline/data/table"
)

// The names of columns that no model is given: they say something of a row.
const (
	WeightColumn = "weight" // what it counts
	GroupColumn  = "group"  // which rows it belongs with, for metrics by group
)

// Table says which rows are read.
type Table struct {
	// Format says which files, and how they are read; Select is left to this package.
	Format format.Spec
	// Split says which part of the rows is meant; nil: all.
	Split *split.Rule
	// Negatives samples the rows with label 0, which Limit goes by: Reader does not
	// sample, and features learn from rows that are not kept, too.
	Negatives split.Negatives
	// Limit is how many rows of the sample are learned from, and all others before the
	// last of those; 0: all.
	Limit int
	// Unlabelled says that rows need neither label nor weight: where the files have no
	// column for the label, labels are 0 and weights 1.
	Unlabelled bool
	// Group is the column that becomes GroupColumn; "": none.
	Group string
}

// opener opens a table from the beginning.
type opener func() (table.Reader, error)

// stride is how many rows are read at a time.
const stride = 256

// Fit learns from the rows what a pipeline needs of them: vocabularies, means,
// boundaries. bad is told of malformed rows, and ends the reading with an error of
// its own. Rows of another part of a split are not learned from. The context bounds
// the reading. Cost: one pass over the files, one more if rows are split by their
// number from the end, none if nothing has to be learned.
func Fit(ctx context.Context, t Table, pipeline feature.Spec, bad func(*table.RowError) error) (*feature.Fitted, error) {
	want := pipeline.Columns()
	if want != nil && t.Split != nil {
		want = append(want, t.Split.Column)
	}
	f, err := t.fit(pipeline, bad, func() (table.Reader, error) { return t.open(ctx, want, nil) })
	if _, declared := errors.AsType[*feature.DeclError](err); !declared || want == nil {
		return f, err
	}
	// It lists the columns that were wanted; all of the file say more.
	return t.fit(pipeline, bad, func() (table.Reader, error) { return t.open(ctx, nil, nil) })
}

// fit is Fit for whatever opens the table.
func (t *Table) fit(pipeline feature.Spec, bad func(*table.RowError) error, open opener) (f *feature.Fitted, err error) {
	parts, err := newParts(t.Split, open)
	if err != nil {
		return nil, err
	}
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	fitter, err := feature.NewFitter(pipeline, in.Fields())
	if err != nil {
		return nil, err
	}
	meant, err := parts.filter(in.Fields())
	if err != nil {
		return nil, err
	}
	fitter.Filter(meant)
	if fitter.NeedsRows() {
		read, err := t.fitRows(in, fitter, bad)
		if err != nil {
			return nil, err
		}
		if fitter.Rows() == 0 {
			_, err := fitter.Fitted()
			return nil, fmt.Errorf("%s: %w", t.without(read), err)
		}
	}
	return fitter.Fitted()
}

// without describes the rows of which none was of use.
func (t *Table) without(read int) string {
	name := "the files"
	if len(t.Format.Paths) == 1 {
		name = t.Format.Paths[0]
	}
	if t.Split == nil {
		return fmt.Sprintf("%s (%d rows read)", name, read)
	}
	return fmt.Sprintf("%s (%d rows read, split by %s)", name, read, t.Split.By)
}

// fitRows shows a Fitter the rows up to the limit. It returns how many rows it read.
func (t *Table) fitRows(in table.Reader, fitter *feature.Fitter, bad func(*table.RowError) error) (read int, err error) {
	var b table.Block
	sampled := 0
	for end := false; !end && (t.Limit == 0 || sampled < t.Limit); {
		n := stride
		if t.Limit > 0 {
			n = min(n, t.Limit-sampled)
		}
		b.Rows = 0
		err := in.Read(&b, n)
		if row, ok := errors.AsType[*table.RowError](err); ok {
			err = bad(row)
		}
		end = errors.Is(err, io.EOF)
		if err != nil && !end {
			return read, err
		}
		if read += b.Rows; b.Rows > 0 {
			first := fitter.Rows()
			if err := fitter.Add(&b); err != nil {
				return read, err
			}
			for i, label := range fitter.Labels() {
				if t.Negatives.Weight(first+i, label == 0) > 0 {
					sampled++
				}
			}
		}
	}
	return read, nil
}

// open opens the files for the columns that are wanted, of those there are; nil: all.
// A column that nobody reads can have nothing wrong with it. like are the columns of
// the rows that features were fitted to.
func (t *Table) open(ctx context.Context, want []string, like []feature.Input) (table.Reader, error) {
	spec := t.Format
	in, err := format.Open(ctx, spec)
	if err != nil || want == nil {
		return in, err
	}
	spec.Select, spec.Columns = nil, maps.Clone(spec.Columns)
	wanted, kinds := map[string]bool{}, map[string]table.Kind{}
	for _, name := range want {
		wanted[name] = true
	}
	for _, f := range like {
		kinds[f.Name] = f.Kind
	}
	for _, f := range in.Fields() {
		if !wanted[f.Name] {
			continue
		}
		spec.Select = append(spec.Select, f.Name)
		if kinds[f.Name] == "" || spec.Format != "csv" || spec.Columns[f.Name] != "" {
			continue
		}
		if spec.Columns == nil {
			spec.Columns = map[string]table.Kind{}
		}
		spec.Columns[f.Name] = kinds[f.Name] // text that is all digits here need not be so there
	}
	if spec.Select == nil { // the features will say what is absent
		return in, nil
	}
	if err := in.Close(); err != nil {
		return nil, err
	}
	return format.Open(ctx, spec)
}
