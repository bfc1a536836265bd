package data

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/gangline/gangline/data/rows"
)

// wholeShift makes one block of all rows.
const wholeShift = 62

// memory is a Source whose rows are all in memory, in blocks of 2^shift rows.
type memory struct {
	badRows
	specs  []ColumnSpec
	blocks []*rows.Block
	shift  uint
	rows   int
	once   sync.Once // guards good
	good   bool
}

// newMemory returns a source of rows that stand in one block.
func newMemory(b *rows.Block, bad badRows, specs ...ColumnSpec) *memory {
	return &memory{badRows: bad, specs: specs, blocks: []*rows.Block{b}, shift: wholeShift, rows: b.Rows}
}

func (m *memory) Columns() []ColumnSpec { return slices.Clone(m.specs) }
func (m *memory) Rows() int             { return m.rows }
func (m *memory) Close() error          { return nil }

func (m *memory) Read(at []int, b *Batch) error {
	if err := rows.Check(at, m.rows); err != nil {
		return err
	}
	rows.Read(m.specs, m.blocks, m.shift, at, b)
	return nil
}

// checked reports whether all ids are of their columns. Cost: a pass over them, once.
func (m *memory) checked() bool {
	m.once.Do(func() {
		m.good = true
		for _, b := range m.blocks {
			for i := range b.Columns {
				dim := uint32(m.specs[i].Dim)
				m.good = m.good && !slices.ContainsFunc(b.Columns[i].IDs, func(id int32) bool { return uint32(id) >= dim })
			}
		}
	})
	return m.good
}

// floorLog2 is the largest k with 2^k <= n; n is above 0.
func floorLog2(n int) uint { return uint(bits.Len(uint(n)) - 1) }
