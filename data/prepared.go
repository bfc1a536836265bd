package data

import (
	"context"
	"fmt"
	"io"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/prepare"
	"github.com/gangline/gangline/data/rows"
)

// The names of columns that no model is given: they say something of a row.
const (
	WeightColumn = prepare.WeightColumn // what it counts
	GroupColumn  = prepare.GroupColumn  // which rows it belongs with, for metrics by group
)

// Fit learns from the training rows what a pipeline needs of them: vocabularies,
// means, boundaries. Open and Columns of a table take it as Spec.Fitted, for these
// rows and for all others of the model. Rows that are malformed, or of another part
// of a split, are not learned from. Cost: one pass over the files, unless nothing has
// to be learned.
func Fit(ctx context.Context, spec Spec, pipeline feature.Spec) (*feature.Fitted, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	t, err := spec.table(ctx)
	if err != nil {
		return nil, err
	}
	bad := badRows{limit: spec.MaxBadRows, share: spec.MaxBadShare}
	return prepare.Fit(ctx, t, pipeline, bad.add)
}

// table says what of a table is read.
func (s *Spec) table(ctx context.Context) (prepare.Table, error) {
	t := prepare.Table{Format: s.Table, Split: s.Split, Negatives: s.Negatives, Limit: s.Limit, Unlabelled: s.Unlabelled, Group: s.Group}
	t.Format.Format = s.Format
	var err error
	t.Format.Paths, err = locations(ctx, s)
	return t, err
}

// Labelled reports whether rows have labels that are no invention: all have, but
// those of a table whose files lack the column. It reads the beginning of a file.
func Labelled(ctx context.Context, spec Spec) (bool, error) {
	if !spec.Unlabelled || spec.Fitted == nil {
		return true, nil
	}
	t, err := spec.table(ctx)
	if err != nil {
		return false, err
	}
	return prepare.Labelled(ctx, t, spec.Fitted)
}

// openPrepared reads a table.
func openPrepared(ctx context.Context, spec *Spec) (Source, error) {
	if spec.Fitted == nil {
		return nil, fmt.Errorf("data: format %s needs Fitted, which Fit makes of the training rows", spec.Format)
	}
	t, err := spec.table(ctx)
	if err != nil {
		return nil, err
	}
	return gather(ctx, spec, func() (rowReader, io.Closer, error) {
		r, err := prepare.Open(ctx, t, spec.Fitted)
		if err != nil {
			return nil, nil, err
		}
		return r, r, nil
	})
}

// normed scales the entries of every row to a norm of 1.
type normed struct{ *lineFiles }

// Read implements rowReader.
func (r normed) Read(b *rows.Block, n int) error {
	first := b.Rows
	err := r.lineFiles.Read(b, n)
	c := &b.Columns[len(b.Columns)-1]
	for row := first; row < b.Rows; row++ {
		feature.UnitNorm(c.Values[c.Offsets[row]:c.Offsets[row+1]])
	}
	return err
}
