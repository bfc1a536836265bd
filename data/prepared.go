package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/split"
	"github.com/gangline/gangline/data/table"
)

// The names of columns that no model is given: they say something of a row.
const (
	WeightColumn = "weight" // what it counts
	GroupColumn  = "group"  // which rows it belongs with, for metrics by group
)

// Fit learns from the training rows what a pipeline needs of them: vocabularies,
// means, boundaries. Open and Columns of a table take it as Spec.Fitted, for these
// rows and for all others of the model. Rows that are malformed, or of another part
// of a split, are not learned from. Cost: one pass over the files, unless nothing
// has to be learned.
func Fit(spec Spec, pipeline feature.Spec) (*feature.Fitted, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	want := pipeline.Columns()
	if want != nil && spec.Split != nil {
		want = append(want, spec.Split.Column)
	}
	return fitTables(&spec, pipeline, func() (table.Reader, error) { return openTable(&spec, want) })
}

// fitTables is Fit for whatever opens the table.
func fitTables(spec *Spec, pipeline feature.Spec, open func() (table.Reader, error)) (f *feature.Fitted, err error) {
	parts, err := newParts(spec, open)
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
	if fitter.NeedsRows() {
		if err := fitRows(in, fitter, parts, spec); err != nil {
			return nil, err
		}
	}
	return fitter.Fitted()
}

// fitRows shows a Fitter the rows that the spec means.
func fitRows(in table.Reader, fitter *feature.Fitter, parts *parts, spec *Spec) error {
	meant, err := parts.filter(in.Fields())
	if err != nil {
		return err
	}
	fitter.Filter(meant)
	bad := badRows{limit: spec.MaxBadRows, share: spec.MaxBadShare}
	var b table.Block
	for end := false; !end && (spec.Limit == 0 || fitter.Rows() < spec.Limit); {
		n := stride
		if spec.Limit > 0 {
			n = min(n, spec.Limit-fitter.Rows())
		}
		b.Rows = 0
		err := in.Read(&b, n)
		if row, ok := errors.AsType[*RowError](err); ok {
			err = bad.add(row)
		}
		end = errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if b.Rows > 0 {
			if err := fitter.Add(&b); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepared makes features of the rows of a table: a rowReader.
type prepared struct {
	in      table.Reader
	apply   *feature.Applier
	fitted  *feature.Fitted
	specs   []ColumnSpec
	block   table.Block
	out     feature.Rows
	bad     []RowError // of the rows read last, that are not reported yet
	end     error      // what follows them
	lines   int
	groups  map[uint64]int32 // numbers in order of appearance
	grouped int              // column of the group, -1: none
}

// newPrepared reads a table through a fitted pipeline.
func newPrepared(in table.Reader, spec *Spec, parts *parts) (*prepared, error) {
	meant, err := parts.filter(in.Fields())
	if err != nil {
		return nil, err
	}
	o := feature.Options{Unlabelled: spec.Unlabelled, Group: spec.Group, Filter: meant}
	apply, err := spec.Fitted.Bind(in.Fields(), o)
	if err != nil {
		return nil, err
	}
	p := &prepared{in: in, apply: apply, fitted: spec.Fitted, specs: preparedSpecs(spec), grouped: -1}
	if spec.Group != "" {
		p.grouped, p.groups = len(p.specs)-1, map[uint64]int32{}
	}
	return p, nil
}

// preparedSpecs are the columns that a pipeline makes.
func preparedSpecs(spec *Spec) []ColumnSpec {
	f := spec.Fitted
	specs := []ColumnSpec{{Name: "label", Kind: DenseColumn, Dim: 1}}
	if f.Dense() > 0 {
		specs = append(specs, ColumnSpec{Name: "num", Kind: DenseColumn, Dim: f.Dense()})
	}
	if f.IDs() > 0 {
		specs = append(specs, ColumnSpec{Name: "cat", Kind: RaggedColumn, Dim: f.IDs(), PerRow: f.PerRow()})
	}
	if f.Spec.Weight != "" && !spec.Unlabelled {
		specs = append(specs, ColumnSpec{Name: WeightColumn, Kind: DenseColumn, Dim: 1})
	}
	if spec.Group != "" {
		specs = append(specs, ColumnSpec{Name: GroupColumn, Kind: RaggedColumn, Dim: rows.MaxID, PerRow: 1})
	}
	return specs
}

// Columns implements rowReader.
func (p *prepared) Columns() []ColumnSpec { return p.specs }

// Raw implements rowReader: what is wrong is a value, of which no text is kept.
func (p *prepared) Raw() []byte { return nil }

// Lines implements rowReader.
func (p *prepared) Lines() int { return p.lines }

// Read implements rowReader. Good rows that stand behind a bad one may be in b
// when that is reported.
func (p *prepared) Read(b *rows.Block, n int) error {
	if len(p.bad) == 0 && p.end == nil {
		p.block.Rows = 0
		p.end = p.in.Read(&p.block, n)
		p.lines += p.block.Rows
		if _, bad := errors.AsType[*RowError](p.end); bad {
			p.lines++
		}
		if p.block.Rows > 0 {
			p.apply.Apply(&p.block, &p.out)
			p.append(b)
			p.bad = append(p.bad[:0], p.out.Bad...)
		}
	}
	if len(p.bad) > 0 {
		e := p.bad[0]
		p.bad = p.bad[1:]
		return &e
	}
	err := p.end
	if !errors.Is(err, io.EOF) {
		p.end = nil
	}
	return err
}

// append adds the rows that were made to a block.
func (p *prepared) append(b *rows.Block) {
	r := &p.out
	for i, spec := range p.specs {
		c := &b.Columns[i]
		switch {
		case i == 0:
			c.Values = append(c.Values, r.Labels...)
		case i == p.grouped:
			for _, g := range r.Groups {
				c.IDs = append(c.IDs, p.number(g))
			}
		case spec.Name == WeightColumn:
			c.Values = append(c.Values, r.Weights...)
		case spec.Kind == DenseColumn:
			c.Values = append(c.Values, r.Dense...)
		default:
			if spec.PerRow == 0 {
				base := int32(len(c.IDs))
				for _, o := range r.Offsets[1:] {
					c.Offsets = append(c.Offsets, base+int32(o))
				}
			}
			c.IDs, c.Values = append(c.IDs, r.IDs...), append(c.Values, r.Values...)
		}
	}
	b.Rows += r.N
}

// number counts groups in order of appearance.
func (p *prepared) number(group uint64) int32 {
	n, ok := p.groups[group]
	if !ok {
		n = int32(len(p.groups))
		p.groups[group] = n
	}
	return n
}

// normed scales the entries of the rows of another reader to a norm of 1.
type normed struct{ rowReader }

// Read implements rowReader.
func (r normed) Read(b *rows.Block, n int) error {
	first := b.Rows
	err := r.rowReader.Read(b, n)
	c := &b.Columns[len(b.Columns)-1]
	for row := first; row < b.Rows; row++ {
		feature.UnitNorm(c.Values[c.Offsets[row]:c.Offsets[row+1]])
	}
	return err
}

// File is the name of the file that the rows read last are in.
func (r normed) File() string {
	if n, ok := r.rowReader.(named); ok {
		return n.File()
	}
	return ""
}

// openPrepared reads a table.
func openPrepared(spec *Spec) (Source, error) {
	if spec.Fitted == nil {
		return nil, fmt.Errorf("data: format %s needs Fitted, which Fit makes of the training rows", spec.Format)
	}
	want := spec.Fitted.Columns()
	if spec.Group != "" {
		want = append(want, spec.Group)
	}
	if spec.Split != nil {
		want = append(want, spec.Split.Column)
	}
	return gatherTables(spec, func() (table.Reader, error) { return openTable(spec, want) })
}

// gatherTables is openPrepared for whatever opens the table.
func gatherTables(spec *Spec, open func() (table.Reader, error)) (Source, error) {
	return gather(spec, func() (rowReader, io.Closer, error) {
		parts, err := newParts(spec, open)
		if err != nil {
			return nil, nil, err
		}
		in, err := open()
		if err != nil {
			return nil, nil, err
		}
		p, err := newPrepared(in, spec, parts)
		if err != nil {
			return nil, nil, errors.Join(err, in.Close())
		}
		return p, in, nil
	})
}

// parts tells which rows of a table a split means; nil: all.
type parts struct {
	split  *split.Splitter
	column int // -1: the split looks at none
	number int // of the next row
	text   []byte
}

// newParts prepares the split of a spec, for which it may have to count the rows.
func newParts(spec *Spec, open func() (table.Reader, error)) (*parts, error) {
	if spec.Split == nil {
		return nil, nil
	}
	s, err := split.New(*spec.Split)
	if err != nil {
		return nil, fmt.Errorf("data: split: %w", err)
	}
	if s.NeedsTotal() {
		n, err := countTable(open)
		if err != nil {
			return nil, err
		}
		s.SetTotal(n)
	}
	return &parts{split: s}, nil
}

// filter begins at the first row of a table with the given fields.
func (p *parts) filter(fields []table.Field) (feature.Filter, error) {
	if p == nil {
		return nil, nil
	}
	p.number, p.column = 0, -1
	if name := p.split.Column(); name != "" {
		p.column = slices.IndexFunc(fields, func(f table.Field) bool { return f.Name == name })
		if p.column < 0 {
			return nil, fmt.Errorf("data: split: the file has no column %q to split by", name)
		}
		if kind := fields[p.column].Kind; !slices.Contains([]table.Kind{table.Text, table.Number, table.Integer}, kind) {
			return nil, fmt.Errorf("data: split: the column %q is %s: want one value a row", name, kind)
		}
	}
	return func(b *table.Block, row int) (column int, keep bool, reason string) {
		number := p.number
		p.number++
		if p.column < 0 {
			keep, err := p.split.Meant(number, b.File, "")
			return 0, keep && err == nil, ""
		}
		c := &b.Columns[p.column]
		if c.Missing != nil && c.Missing[row] {
			return p.column, false, "the value that rows are split by is missing"
		}
		p.text = feature.AppendText(p.text[:0], c, fields[p.column].Kind, row)
		keep, err := p.split.Meant(number, b.File, string(p.text))
		if err != nil {
			return p.column, false, err.Error()
		}
		return p.column, keep, ""
	}, nil
}

// countTable is how many rows of a table are not malformed.
func countTable(open func() (table.Reader, error)) (n int, err error) {
	in, err := open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	var b table.Block
	for {
		b.Rows = 0
		err := in.Read(&b, stride)
		n += b.Rows
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if _, bad := errors.AsType[*RowError](err); err != nil && !bad {
			return 0, err
		}
	}
}

// openTable opens the files of a table for the columns that are wanted, of those
// there are; nil: all. A column that nobody reads can have nothing wrong with it.
// Requests to object stores have deadlines of their own.
func openTable(spec *Spec, want []string) (table.Reader, error) {
	ctx := context.Background()
	t := spec.Table
	var err error
	if t.Paths, err = file.Expand(ctx, "", []string{spec.Path}); err != nil {
		return nil, fmt.Errorf("data: %s: %w", spec.Format, err)
	}
	t.Format = spec.Format
	in, err := format.Open(ctx, t)
	if err != nil || want == nil {
		return in, err
	}
	t.Select = []string{}
	kinds := maps.Clone(t.Columns)
	for _, f := range in.Fields() {
		if slices.Contains(want, f.Name) {
			t.Select = append(t.Select, f.Name)
		}
		if kind, ok := fittedKind(spec, f.Name); ok && t.Columns[f.Name] == "" {
			if kinds == nil {
				kinds = map[string]table.Kind{}
			}
			kinds[f.Name] = kind
		}
	}
	t.Columns = kinds
	if len(t.Select) == 0 { // the features will say what is absent
		return in, nil
	}
	if err := in.Close(); err != nil {
		return nil, err
	}
	return format.Open(ctx, t)
}

// fittedKind is the kind that a column of text had when features were fitted to
// it: other rows may look otherwise.
func fittedKind(spec *Spec, name string) (kind table.Kind, ok bool) {
	if spec.Format != "csv" || spec.Fitted == nil {
		return "", false
	}
	for _, in := range spec.Fitted.Inputs {
		if in.Name == name {
			return in.Kind, true
		}
	}
	return "", false
}
