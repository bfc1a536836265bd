package bench

import (
	"math/rand/v2"

	"github.com/gangline/gangline/data"
)

// rows is a source of random rows in memory: numbers from a normal distribution,
// ids from a uniform one.
type rows struct {
	columns []data.ColumnSpec
	values  []data.Column // without weights
	n       int
}

func newRows(columns []data.ColumnSpec, n int) *rows {
	r := &rows{columns: columns, values: make([]data.Column, len(columns)), n: n}
	rng := rand.New(rand.NewPCG(1, 2))
	for i, c := range columns {
		v := &r.values[i]
		for range n * c.PerRow {
			v.IDs = append(v.IDs, rng.Int64N(int64(c.Dim)))
		}
		if c.Kind == data.RaggedColumn {
			continue
		}
		for range n * c.Dim {
			x := float32(rng.NormFloat64())
			if c.Name == label {
				x = float32(rng.IntN(2)) // a class of any model
			}
			v.Values = append(v.Values, x)
		}
	}
	return r
}

// Columns implements data.Source.
func (r *rows) Columns() []data.ColumnSpec { return r.columns }

// Rows implements data.Source.
func (r *rows) Rows() int { return r.n }

// Close implements data.Source.
func (r *rows) Close() error { return nil }

// Read implements data.Source.
func (r *rows) Read(which []int, b *data.Batch) error {
	b.Rows = len(which)
	if b.Columns == nil {
		b.Columns = make([]data.Column, len(r.columns))
	}
	for i, c := range r.columns {
		from, to := &r.values[i], &b.Columns[i]
		to.Values, to.IDs = to.Values[:0], to.IDs[:0]
		if c.Kind != data.RaggedColumn {
			for _, row := range which {
				to.Values = append(to.Values, from.Values[row*c.Dim:(row+1)*c.Dim]...)
			}
			continue
		}
		to.Offsets = append(to.Offsets[:0], 0)
		for _, row := range which {
			to.IDs = append(to.IDs, from.IDs[row*c.PerRow:(row+1)*c.PerRow]...)
			to.Offsets = append(to.Offsets, int64(len(to.IDs)))
		}
		for range to.IDs {
			to.Values = append(to.Values, 1)
		}
	}
	return nil
}
