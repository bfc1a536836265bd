package rows

import (
	"math"
	"runtime"
)

// Read fills out with the given rows of consecutive blocks, each of which but the
// last has 2^shift rows. Only the blocks that hold one of the rows need be there.
// Cost: one copy of every value.
func Read(specs []ColumnSpec, blocks []*Block, shift uint, at []int, out *Batch) {
	out.Reset(len(at), len(specs))
	for i := range specs {
		c := &out.Columns[i]
		if specs[i].Kind == DenseColumn {
			readDense(&specs[i], i, blocks, shift, at, c)
		} else {
			readRagged(&specs[i], i, blocks, shift, at, c)
		}
	}
}

func readDense(spec *ColumnSpec, column int, blocks []*Block, shift uint, at []int, out *Column) {
	dim, mask := spec.Dim, 1<<shift-1
	out.Values, out.Offsets, out.IDs = Resize(out.Values, len(at)*dim), out.Offsets[:0], out.IDs[:0]
	for i, row := range at {
		if dim > line && i%group == 0 {
			touchFloats(dim, column, blocks, shift, at[i:min(i+group, len(at))])
		}
		c := &blocks[row>>shift].Columns[column]
		from := (row & mask) * dim
		switch {
		case c.Bytes != nil:
			dst := out.Values[i*dim : (i+1)*dim]
			for j, b := range c.Bytes[from : from+dim] {
				dst[j] = c.Table[b]
			}
		case dim == 1:
			out.Values[i] = c.Values[from]
		default:
			copy(out.Values[i*dim:(i+1)*dim], c.Values[from:from+dim])
		}
	}
}

// Rows of a batch are anywhere in memory: copying one would wait for every cache line
// of it in turn. So the lines of a group of rows are loaded first, in loops so short
// that a core has all its loads under way at once.
const (
	group = 32
	// line is how many elements of 4 bytes a cache line has.
	line = 16
)

// run is where the entries of a row stand.
type run struct {
	in     *Packed
	lo, hi int
}

func readRagged(spec *ColumnSpec, column int, blocks []*Block, shift uint, at []int, out *Column) {
	out.Offsets = Resize(out.Offsets, len(at)+1)
	out.Offsets[0] = 0
	ids, values, from := out.IDs[:0], out.Values[:0], 0
	var room [group]run
	ones := 0
	if out.Ones != nil {
		ones = min(*out.Ones, cap(values))
	}
	for first := 0; first < len(at); first += group {
		runs := room[:min(group, len(at)-first)]
		ends := out.Offsets[first+1 : first+1+len(runs)]
		weighted := find(spec, column, blocks, shift, at[first:], runs, int64(from), ends)
		touch(runs)
		to := int(ends[len(ends)-1])
		if to > cap(values) {
			ones = min(ones, from) // what is behind does not move along
		}
		ids, values = Resize(ids, to), Resize(values, to)
		copyIDs(ids[from:to], runs)
		switch {
		case weighted:
			copyWeights(values[from:to], runs)
			ones = min(ones, from)
		case to > ones:
			Ones(values[max(from, ones):to])
			if from <= ones {
				ones = to
			}
		}
		from = to
	}
	out.IDs, out.Values = ids, values
	if out.Ones != nil {
		*out.Ones = ones
	}
}

// find finds the entries of the first rows of at, and where they will end in a batch
// that has so many before. It reports whether any have weights.
func find(spec *ColumnSpec, column int, blocks []*Block, shift uint, at []int, runs []run, before int64, ends []int64) (weighted bool) {
	mask := 1<<shift - 1
	for i := range runs {
		c := &blocks[at[i]>>shift].Columns[column]
		r := at[i] & mask
		lo, hi := r*spec.PerRow, (r+1)*spec.PerRow
		if c.Offsets != nil {
			lo, hi = int(c.Offsets[r]), int(c.Offsets[r+1])
		}
		runs[i] = run{c, lo, hi}
		weighted = weighted || c.Values != nil
	}
	for i := range runs {
		before += int64(runs[i].hi - runs[i].lo)
		ends[i] = before
	}
	return weighted
}

// touch loads the cache lines of entries.
func touch(runs []run) {
	sum := uint32(0)
	for i := range runs {
		e := &runs[i]
		if e.lo == e.hi {
			continue
		}
		ids := e.in.IDs[:e.hi]
		for j := e.lo; j < len(ids); j += line {
			sum |= uint32(ids[j])
		}
		sum |= uint32(ids[len(ids)-1])
		if e.in.Values == nil {
			continue
		}
		values := e.in.Values[:e.hi]
		for j := e.lo; j < len(values); j += line {
			sum |= math.Float32bits(values[j])
		}
		sum |= math.Float32bits(values[len(values)-1])
	}
	runtime.KeepAlive(sum)
}

func copyIDs(dst []int64, runs []run) {
	for i := range runs {
		src := runs[i].in.IDs[runs[i].lo:runs[i].hi]
		to := dst[:len(src)]
		dst = dst[len(src):]
		for len(src) >= 4 && len(to) >= 4 {
			to[0], to[1], to[2], to[3] = int64(src[0]), int64(src[1]), int64(src[2]), int64(src[3])
			src, to = src[4:], to[4:]
		}
		for j, id := range src {
			to[j] = int64(id)
		}
	}
}

// copyWeights copies the weights of entries, 1 where none are kept.
func copyWeights(dst []float32, runs []run) {
	for i := range runs {
		e, n := &runs[i], runs[i].hi-runs[i].lo
		if e.in.Values != nil {
			copy(dst[:n], e.in.Values[e.lo:e.hi])
		} else {
			Ones(dst[:n])
		}
		dst = dst[n:]
	}
}

// touchFloats loads the cache lines of rows of a dense column.
func touchFloats(dim, column int, blocks []*Block, shift uint, at []int) {
	mask, sum := 1<<shift-1, uint32(0)
	for _, row := range at {
		c := &blocks[row>>shift].Columns[column]
		from := (row & mask) * dim
		if c.Bytes != nil {
			sum |= uint32(c.Bytes[from])
			continue
		}
		values := c.Values[from : from+dim]
		for j := 0; j < len(values); j += line {
			sum |= math.Float32bits(values[j])
		}
	}
	runtime.KeepAlive(sum)
}
