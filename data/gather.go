package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/data/rejects"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/split"
)

// rowReader delivers the rows of files from beginning to end, as parse.Reader
// does.
type rowReader interface {
	// Columns describes the rows; what it says of Dim is final after the last.
	Columns() []ColumnSpec
	// Read appends at most n rows to b, and returns io.EOF after the last. A
	// malformed row is a *RowError, after which Read may be called again.
	Read(b *rows.Block, n int) error
	// Raw is the text of the last malformed row; nil if there is none.
	Raw() []byte
	// Lines is how many lines, or rows of a binary file, were read.
	Lines() int
}

// named says which file the rows read last are in.
type named interface{ File() string }

// opener opens a file's rows from the beginning.
type opener func() (rowReader, io.Closer, error)

// gather makes a source of the rows that an opener delivers: those that the spec
// wants, in memory as far as they fit, else in a cache file. Where that file is
// already there, nothing is opened.
func gather(ctx context.Context, spec *Spec, open opener) (src Source, err error) {
	p, err := newPlace(ctx, spec)
	if err != nil {
		return nil, err
	}
	if src, err := p.open(); src != nil || err != nil {
		return src, err
	}
	s, err := splitter(spec, open)
	if err != nil {
		return nil, err
	}
	r, c, err := open()
	if err != nil {
		return nil, err
	}
	rejected, err := rejects.Create(spec.Rejects)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	g := newCollector(spec, r, s, p)
	g.bad.rejects = rejected
	g.create = func() (*cache.Writer, error) { return p.create(ctx) }
	g.where, _ = c.(named)
	err = errors.Join(g.read(r), c.Close(), rejected.Close())
	return g.finish(r, err)
}

// splitter prepares the split of a spec's rows; nil: there is none, or a table's,
// whose rows were split before features were made of them.
func splitter(spec *Spec, open opener) (*split.Splitter, error) {
	if spec.Split == nil || slices.Contains(strings.Split(tables, ", "), spec.Format) {
		return nil, nil
	}
	s, err := split.New(*spec.Split)
	if err != nil {
		return nil, fmt.Errorf("data: split: %w", err)
	}
	if s.NeedsTotal() {
		n, err := count(open)
		if err != nil {
			return nil, err
		}
		s.SetTotal(n)
	}
	return s, nil
}

// count is how many good rows there are.
func count(open opener) (n int, err error) {
	r, c, err := open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var b rows.Block
	for {
		b.Reset(r.Columns())
		err := r.Read(&b, stride)
		n += b.Rows
		if _, bad := errors.AsType[*RowError](err); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil && !bad {
			return 0, err
		}
	}
}

// How rows are cut into blocks: a block has a power of two of them, as many as fit
// Intake.blockBytes going by the first, at most blockRowsMax.
const (
	blockRowsMax = 1 << 13
	// stride is how many rows are read at a time.
	stride = 256
)

// collector cuts what a reader delivers into blocks.
type collector struct {
	spec   *Spec
	bad    badRows
	sieve  *sieve       // nil: all rows pass
	raw    rows.Block   // what the sieve is given
	specs  []ColumnSpec // of the rows that pass
	chunk  rows.Block   // rows that are in no block yet
	shift  uint         // a block has 2^shift rows
	fixed  bool         // shift is decided
	blocks []*rows.Block
	rows   int   // in blocks
	seen   int   // rows that the reader delivered
	held   int64 // bytes of blocks
	where  named // nil: files have no names
	place  *place
	create func() (*cache.Writer, error)
	file   *cache.Writer // takes the blocks once they are too many; nil before
}

func newCollector(spec *Spec, r rowReader, s *split.Splitter, p *place) *collector {
	c := &collector{
		spec: spec, place: p, shift: floorLog2(blockRowsMax), specs: spec.columns(r.Columns()),
		bad: badRows{limit: spec.MaxBadRows, share: spec.MaxBadShare},
	}
	c.sieve = newSieve(&spec.Intake, r.Columns(), s)
	c.chunk.Reset(c.specs)
	return c
}

// read takes all rows that pass the sieve, or the first Limit of them.
func (c *collector) read(r rowReader) error {
	for end := false; !end; {
		n := stride
		if c.fixed { // so that a block ends where a Read does
			n = min(n, 1<<c.shift-c.chunk.Rows)
		}
		if c.spec.Limit > 0 {
			n = min(n, c.spec.Limit-c.rows-c.chunk.Rows)
		}
		if n == 0 {
			break
		}
		err := c.take(r, n)
		end = errors.Is(err, io.EOF)
		if row, ok := errors.AsType[*RowError](err); ok {
			err = c.bad.addRaw(row, r.Raw())
		}
		if err != nil && !end {
			return err
		}
		if err := c.cut(end); err != nil {
			return err
		}
	}
	if err := c.cut(true); err != nil {
		return err
	}
	if c.seen == 0 && c.spec.Split != nil && r.Lines() > c.bad.count {
		c.seen = r.Lines() - c.bad.count // of a table, which is split before
	}
	if c.seen == 0 {
		return fmt.Errorf("data: %s holds no rows (%d lines read, %d malformed)", c.spec.Path, r.Lines(), c.bad.count)
	}
	if c.rows == 0 {
		return fmt.Errorf("data: none of the %d rows of %s is of the part that is meant", c.seen, c.spec.Path)
	}
	return c.bad.judge(c.seen)
}

// take reads at most n rows into the chunk, through the sieve if there is one.
func (c *collector) take(r rowReader, n int) error {
	if c.sieve == nil {
		before := c.chunk.Rows
		err := r.Read(&c.chunk, n)
		c.seen += c.chunk.Rows - before
		return err
	}
	c.raw.Reset(c.sieve.in)
	err := r.Read(&c.raw, n)
	c.seen += c.raw.Rows
	name := ""
	if c.where != nil {
		name = c.where.File()
	}
	if failed := c.sieve.pass(&c.raw, name, &c.chunk); failed != nil {
		return failed
	}
	return err
}

// cut moves whole blocks out of the chunk, and at the end what is left.
func (c *collector) cut(end bool) error {
	size := c.spec.blockBytes()
	full := c.chunk.Rows >= blockRowsMax || c.chunk.Bytes() >= int64(size)
	if !c.fixed && (end || full) && c.chunk.Rows > 0 {
		each := int(c.chunk.Bytes())/c.chunk.Rows + 1
		c.shift = floorLog2(max(1, min(blockRowsMax, size/each)))
		c.fixed = true
	}
	if !c.fixed {
		return nil
	}
	if size := c.chunk.Bytes(); size > cache.BlockMax {
		return fmt.Errorf("data: %s: %d rows from row %d on take %d bytes, the limit is %d: they are much larger than the first",
			c.spec.Path, c.chunk.Rows, c.rows, size, cache.BlockMax)
	}
	per, at := 1<<c.shift, 0
	if c.chunk.Rows == per {
		return c.add(c.chunk.Take(c.specs))
	}
	for c.chunk.Rows-at >= per || end && c.chunk.Rows > at {
		to := min(at+per, c.chunk.Rows)
		if err := c.add(c.chunk.Slice(c.specs, at, to)); err != nil {
			return err
		}
		at = to
	}
	if at > 0 {
		c.chunk.Drop(c.specs, at)
	}
	return nil
}

// add keeps a block, in memory as long as there is room.
func (c *collector) add(b *rows.Block) error {
	c.rows += b.Rows
	if c.file != nil {
		return c.file.Add(c.specs, b)
	}
	c.blocks = append(c.blocks, b)
	if c.held += b.Bytes(); c.held <= c.spec.memory() {
		return nil
	}
	file, err := c.create()
	if err != nil {
		return err
	}
	c.file = file
	for i, b := range c.blocks {
		if err := c.file.Add(c.specs, b); err != nil {
			return err
		}
		c.blocks[i] = nil
	}
	c.blocks, c.held = nil, 0
	return nil
}

// finish makes a source of what was read, unless err says that this failed.
func (c *collector) finish(r rowReader, err error) (Source, error) {
	if errors.Is(err, errMade) {
		return c.place.openNow()
	}
	specs := c.spec.columns(r.Columns())
	if err == nil {
		err = checkDims(c.spec, specs)
	}
	if err != nil {
		if c.file != nil {
			err = errors.Join(err, c.file.Abort())
		}
		return nil, errors.Join(err, c.place.release())
	}
	if c.file == nil {
		return &memory{badRows: c.bad, specs: specs, blocks: c.blocks, shift: c.shift, rows: c.rows}, nil
	}
	h := cache.Header{Columns: specs, Shift: c.shift, Source: c.place.source, BadRows: c.bad.count, Samples: c.bad.samples}
	h.Features, err = keptFeatures(c.spec)
	if err != nil {
		return nil, errors.Join(err, c.file.Abort(), c.place.release())
	}
	if err := c.file.Commit(h); err != nil {
		return nil, errors.Join(err, c.place.release())
	}
	return c.place.openNow()
}

// checkDims refuses columns without ids.
func checkDims(spec *Spec, specs []ColumnSpec) error {
	for _, c := range specs {
		if c.Dim == 0 {
			return fmt.Errorf("data: no row of %s has a feature: declare the number of features", spec.Path)
		}
	}
	return nil
}
