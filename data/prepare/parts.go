package prepare

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/split"
	"github.com/gangline/gangline/data/table"
)

// parts tells which rows of a table a split means; nil: all.
type parts struct {
	split  *split.Splitter
	column int // -1: the split looks at none
	number int // of the next row
	text   []byte
}

// newParts prepares a split, for which it may have to count the rows.
func newParts(rule *split.Rule, open opener) (*parts, error) {
	if rule == nil {
		return nil, nil
	}
	s, err := split.New(*rule)
	if err != nil {
		return nil, fmt.Errorf("split: %w", err)
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
			return nil, fmt.Errorf("split: the file has no column %q to split by", name)
		}
		if kind := fields[p.column].Kind; !slices.Contains([]table.Kind{table.Text, table.Number, table.Integer}, kind) {
			return nil, fmt.Errorf("split: the column %q is %s: want one value a row", name, kind)
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
func countTable(open opener) (n int, err error) {
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
		if _, bad := errors.AsType[*table.RowError](err); err != nil && !bad {
			return 0, err
		}
	}
}
