package data

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/data/rows"
)

// DefaultMemory is how much of a source's rows is in memory where a spec says
// nothing else.
const DefaultMemory = 2 << 30

// cached is a Source over a cache file that does not fit into memory: blocks are
// loaded when a row of theirs is read, and those used last are kept.
type cached struct {
	badRows
	file   *cache.File
	pool   *cache.Pool
	block  int // bytes of a block in memory, about
	window int
	limit  int64
	room   sync.Pool // of *pins
}

// pins are the blocks of one Read.
type pins struct {
	blocks  []*rows.Block // one for every block of the file, nil but for a few
	touched []int
	part    Batch
}

// openCached opens a cache file, as memory where it fits.
func openCached(path string, limit int64, source string) (Source, error) {
	f, err := cache.Open(path)
	if err != nil {
		return nil, err
	}
	if source != "" && f.Source != source {
		return nil, errors.Join(fmt.Errorf("data: cache %s: %w: it is of other rows", path, cache.ErrFile), f.Close())
	}
	bad := badRows{count: f.BadRows, samples: f.Samples}
	if f.Memory <= limit {
		return loadCached(f, bad)
	}
	c := &cached{badRows: bad, file: f, pool: cache.NewPool(f, limit), limit: limit}
	c.block = int(f.Memory)/len(f.Blocks) + 1
	// Two windows, the next being loaded while the current one is read, and a part
	// of the file's tail are within the limit.
	c.window = max(1, int(limit/3)/c.block)
	c.room.New = func() any { return &pins{blocks: make([]*rows.Block, len(f.Blocks))} }
	return c, nil
}

// loadCached reads all of a cache file.
func loadCached(f *cache.File, bad badRows) (Source, error) {
	m := &memory{badRows: bad, specs: f.Columns, shift: f.Shift, rows: f.Rows}
	var buf []byte
	for i := range f.Blocks {
		b, err := f.Block(i, &buf)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		m.blocks = append(m.blocks, b)
	}
	return m, f.Close()
}

func (c *cached) Columns() []ColumnSpec { return slices.Clone(c.file.Columns) }
func (c *cached) Rows() int             { return c.file.Rows }
func (c *cached) Close() error          { return c.file.Close() }

// checked is true: package cache delivers no other ids.
func (c *cached) checked() bool { return true }

// Layout implements Blocked.
func (c *cached) Layout() (block, window int) { return 1 << c.file.Shift, c.window }

// Warm implements Blocked.
func (c *cached) Warm(block int) error {
	_, err := c.pool.Get(block)
	if err == nil {
		c.pool.Put(block)
	}
	return err
}

// Read implements Source. Memory beyond the pool's is that of the blocks which the
// rows are in, as far as they fit the limit: rows of more are read part by part.
func (c *cached) Read(at []int, b *Batch) error {
	if err := rows.Check(at, c.file.Rows); err != nil {
		return err
	}
	p := c.room.Get().(*pins)
	defer c.room.Put(p)
	defer p.release(c.pool)
	most := max(1, int(c.limit)/c.block)
	first := 0
	for i, row := range at {
		n := row >> c.file.Shift
		if p.blocks[n] != nil {
			continue
		}
		if len(p.touched) == most {
			c.part(p, at[first:i], first == 0, b)
			p.release(c.pool)
			first = i
		}
		block, err := c.pool.Get(n)
		if err != nil {
			return err
		}
		p.blocks[n] = block
		p.touched = append(p.touched, n)
	}
	c.part(p, at[first:], first == 0, b)
	return nil
}

// part reads rows whose blocks are there into b, or appends them to it.
func (c *cached) part(p *pins, at []int, whole bool, b *Batch) {
	if whole {
		rows.Read(c.file.Columns, p.blocks, c.file.Shift, at, b)
		return
	}
	rows.Read(c.file.Columns, p.blocks, c.file.Shift, at, &p.part)
	b.Append(&p.part)
}

// release lets the pool's blocks go.
func (p *pins) release(pool *cache.Pool) {
	for _, n := range p.touched {
		p.blocks[n] = nil
		pool.Put(n)
	}
	p.touched = p.touched[:0]
}
