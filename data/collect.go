package data

import (
	"errors"
	"fmt"
	"io"

	"github.com/gangline/gangline/data/rows"
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

// How rows are cut into blocks: a block has a power of two of them, as many as fit
// blockBytes going by the first, at most blockRowsMax.
const (
	blockBytes   = 1 << 20
	blockRowsMax = 1 << 13
	// stride is how many rows are read at a time.
	stride = 256
)

// collector cuts what a reader delivers into blocks.
type collector struct {
	specs  []ColumnSpec
	chunk  rows.Block // rows that are in no block yet
	shift  uint       // a block has 2^shift rows
	fixed  bool       // shift is decided
	blocks []*rows.Block
	rows   int
}

// collect reads all rows.
func collect(file string, r rowReader, limit int, bad badRows) (*memory, error) {
	c := collector{specs: r.Columns(), shift: floorLog2(blockRowsMax)}
	c.chunk.Reset(c.specs)
	for limit == 0 || c.rows+c.chunk.Rows < limit {
		n := stride
		if limit > 0 {
			n = min(n, limit-c.rows-c.chunk.Rows)
		}
		err := r.Read(&c.chunk, n)
		if errors.Is(err, io.EOF) {
			break
		}
		if row, ok := errors.AsType[*RowError](err); ok {
			err = bad.add(row)
		}
		if err != nil {
			return nil, err
		}
		c.cut(false)
	}
	c.cut(true)
	if c.rows == 0 {
		return nil, fmt.Errorf("data: %s holds no rows (%d lines read, %d malformed)", file, r.Lines(), bad.count)
	}
	return &memory{badRows: bad, specs: r.Columns(), blocks: c.blocks, shift: c.shift, rows: c.rows}, nil
}

// cut moves whole blocks out of the chunk, and at the end what is left.
func (c *collector) cut(end bool) {
	if !c.fixed && (end || c.chunk.Rows >= blockRowsMax || c.chunk.Bytes() >= blockBytes) && c.chunk.Rows > 0 {
		each := int(c.chunk.Bytes())/c.chunk.Rows + 1
		c.shift = floorLog2(max(1, min(blockRowsMax, blockBytes/each)))
		c.fixed = true
	}
	if !c.fixed {
		return
	}
	per, at := 1<<c.shift, 0
	for ; c.chunk.Rows-at >= per; at += per {
		c.add(c.chunk.Slice(c.specs, at, at+per))
	}
	if end && c.chunk.Rows > at {
		c.add(c.chunk.Slice(c.specs, at, c.chunk.Rows))
		at = c.chunk.Rows
	}
	if at > 0 {
		c.chunk.Drop(c.specs, at)
	}
}

func (c *collector) add(b *rows.Block) {
	c.blocks = append(c.blocks, b)
	c.rows += b.Rows
}
