package prepare

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/table"
)

// Reader makes features of the rows of a table. It is used by one goroutine.
type Reader struct {
	in      table.Reader
	apply   *feature.Applier
	specs   []rows.ColumnSpec
	block   table.Block
	out     feature.Rows
	bad     []table.RowError // of the rows read last, that are not reported yet
	end     error            // what follows them
	lines   int
	groups  map[uint64]int32 // numbers in order of appearance
	grouped int              // column of the group, -1: none

	unlabelled bool
}

// Open opens the table to make features of its rows with a fitted pipeline. The
// context bounds all later reading. The caller closes the Reader.
func Open(ctx context.Context, t Table, f *feature.Fitted) (*Reader, error) {
	want := append(f.Columns(), t.Group)
	if t.Split != nil {
		want = append(want, t.Split.Column)
	}
	r, err := t.read(f, func() (table.Reader, error) { return t.open(ctx, want, f.Inputs) })
	if _, declared := errors.AsType[*feature.DeclError](err); !declared {
		return r, err
	}
	// It lists the columns that were wanted; all of the file say more.
	return t.read(f, func() (table.Reader, error) { return t.open(ctx, nil, f.Inputs) })
}

// read is Open for whatever opens the table.
func (t *Table) read(f *feature.Fitted, open opener) (*Reader, error) {
	parts, err := newParts(t.Split, open)
	if err != nil {
		return nil, err
	}
	in, err := open()
	if err != nil {
		return nil, err
	}
	r := &Reader{in: in, grouped: -1}
	if err := r.bind(t, f, parts); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return r, nil
}

// bind finds the columns that features are made of.
func (r *Reader) bind(t *Table, f *feature.Fitted, parts *parts) error {
	fields := r.in.Fields()
	meant, err := parts.filter(fields)
	if err != nil {
		return err
	}
	r.unlabelled = t.Unlabelled && !hasLabel(fields, f)
	o := feature.Options{Unlabelled: r.unlabelled, Group: t.Group, Filter: meant}
	if r.apply, err = f.Bind(fields, o); err != nil {
		return err
	}
	r.specs = Columns(f, t.Group)
	if t.Group != "" {
		r.grouped, r.groups = len(r.specs)-1, map[uint64]int32{}
	}
	return nil
}

// Labelled reports whether the files have a column for the label.
func Labelled(ctx context.Context, t Table, f *feature.Fitted) (bool, error) {
	in, err := t.open(ctx, nil, nil)
	if err != nil {
		return false, err
	}
	return hasLabel(in.Fields(), f), in.Close()
}

func hasLabel(fields []table.Field, f *feature.Fitted) bool {
	return slices.ContainsFunc(fields, func(o table.Field) bool { return o.Name == f.Spec.Label.Column })
}

// Columns are those of the rows that a pipeline makes: label, num (dense values), cat
// (ids), weight and group, as far as there are any.
func Columns(f *feature.Fitted, group string) []rows.ColumnSpec {
	specs := []rows.ColumnSpec{{Name: "label", Kind: rows.DenseColumn, Dim: 1}}
	if f.Dense() > 0 {
		specs = append(specs, rows.ColumnSpec{Name: "num", Kind: rows.DenseColumn, Dim: f.Dense()})
	}
	if f.IDs() > 0 {
		specs = append(specs, rows.ColumnSpec{Name: "cat", Kind: rows.RaggedColumn, Dim: f.IDs(), PerRow: f.PerRow()})
	}
	if f.Spec.Weight != "" {
		specs = append(specs, rows.ColumnSpec{Name: WeightColumn, Kind: rows.DenseColumn, Dim: 1})
	}
	if group != "" {
		specs = append(specs, rows.ColumnSpec{Name: GroupColumn, Kind: rows.RaggedColumn, Dim: rows.MaxID, PerRow: 1})
	}
	return specs
}

// Close closes the files.
func (r *Reader) Close() error { return r.in.Close() }

// File is the file that the rows read last are in.
func (r *Reader) File() string { return r.block.File }

// Columns describes the rows.
func (r *Reader) Columns() []rows.ColumnSpec { return r.specs }

// Raw is nil: what is wrong is a value, of which no text is kept.
func (r *Reader) Raw() []byte { return nil }

// Lines is the number of rows read so far.
func (r *Reader) Lines() int { return r.lines }

// Read appends at most n rows to b, which Reset has prepared for the columns, and
// returns io.EOF after the last. A malformed row, or one that the features refuse, is
// a *table.RowError: nothing of it is in b, good rows around it are, and Read may be
// called again to go on. Any other error ends the Reader.
func (r *Reader) Read(b *rows.Block, n int) error {
	if len(r.bad) == 0 && r.end == nil {
		r.block.Rows = 0
		r.end = r.in.Read(&r.block, n)
		r.lines += r.block.Rows
		if _, bad := errors.AsType[*table.RowError](r.end); bad {
			r.lines++
		}
		if r.block.Rows > 0 {
			r.apply.Apply(&r.block, &r.out)
			r.append(b)
			r.bad = append(r.bad[:0], r.out.Bad...)
		}
	}
	if len(r.bad) > 0 {
		e := r.bad[0]
		r.bad = r.bad[1:]
		return &e
	}
	err := r.end
	if !errors.Is(err, io.EOF) {
		r.end = nil
	}
	return err
}

// append adds the rows that were made to a block.
func (r *Reader) append(b *rows.Block) {
	out := &r.out
	for i, spec := range r.specs {
		c := &b.Columns[i]
		switch {
		case i == 0:
			if r.unlabelled { // no loss takes NaN
				clear(out.Labels)
			}
			c.Values = append(c.Values, out.Labels...)
		case i == r.grouped:
			for _, g := range out.Groups {
				c.IDs = append(c.IDs, r.number(g))
			}
		case spec.Name == WeightColumn:
			first := len(c.Values)
			c.Values = append(c.Values, out.Weights...)
			for len(c.Values) < first+out.N { // unlabelled rows
				c.Values = append(c.Values, 1)
			}
		case spec.Kind == rows.DenseColumn:
			c.Values = append(c.Values, out.Dense...)
		default:
			if spec.PerRow == 0 {
				base := int32(len(c.IDs))
				for _, o := range out.Offsets[1:] {
					c.Offsets = append(c.Offsets, base+int32(o))
				}
			}
			c.IDs, c.Values = append(c.IDs, out.IDs...), append(c.Values, out.Values...)
		}
	}
	b.Rows += out.N
}

// number counts groups in order of appearance.
func (r *Reader) number(group uint64) int32 {
	n, ok := r.groups[group]
	if !ok {
		n = int32(len(r.groups))
		r.groups[group] = n
	}
	return n
}
