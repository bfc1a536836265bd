package data

import (
	"fmt"

	"github.com/gangline/gangline/data/shuffle"
)

// Order says which rows form which step: a pure function of its fields. The
// batch is the global one; ranks take contiguous parts of it, so which rows
// form a step does not depend on how many ranks there are.
//
// An epoch is a pass over all rows. Steps go through its positions batch by
// batch, the last batch of an epoch being smaller where Rows is no multiple of
// Batch. With Shuffle, position p of epoch e holds row π(p), π being a
// permutation keyed by (Seed, e); without it, row p.
//
// Where rows are in blocks that do not all fit into memory, the permutation is of
// two levels: the blocks are permuted and cut into windows, and the rows of each
// window permuted among themselves. A step then touches the blocks of one window,
// of two where it reaches over an end.
type Order struct {
	Seed    uint64
	Rows    int
	Batch   int
	Shuffle bool
	// Block is how many rows a block has (the last has the rest) and Window how many
	// blocks are shuffled together; both 0: all rows are.
	Block, Window int
}

// Blocked is a source whose rows are in blocks that do not all fit into memory.
type Blocked interface {
	// Layout is what an order of its rows has as Block and Window.
	Layout() (block, window int)
	// Warm loads a block that will soon be read.
	Warm(block int) error
}

// Shuffled is the order in which training passes over a source.
func Shuffled(src Source, seed uint64, batch int) Order {
	o := Order{Seed: seed, Rows: src.Rows(), Batch: batch, Shuffle: true}
	if b, ok := src.(Blocked); ok {
		o.Block, o.Window = b.Layout()
	}
	return o
}

// Validate tells whether rows and batch are positive, which every other method
// takes for granted.
func (o Order) Validate() error {
	if o.Rows <= 0 || o.Batch <= 0 {
		return fmt.Errorf("data: an order needs rows and a batch above 0, has %d and %d", o.Rows, o.Batch)
	}
	if o.Block < 0 || (o.Block > 0) != (o.Window > 0) {
		return fmt.Errorf("data: an order has both a block and a window above 0, or neither, not %d and %d", o.Block, o.Window)
	}
	return nil
}

// StepsPerEpoch is the number of batches in a pass over all rows.
func (o Order) StepsPerEpoch() int { return (o.Rows-1)/o.Batch + 1 }

// At returns the epoch of a step and the range of positions [lo, hi) in it.
func (o Order) At(step int64) (epoch, lo, hi int) {
	per := int64(o.StepsPerEpoch())
	lo = int(step%per) * o.Batch
	return int(step / per), lo, lo + min(o.Batch, o.Rows-lo)
}

// RankRows appends to dst[:0] the rows of a rank's part of a step's batch, in order,
// and returns it. Parts differ by at most one row, and are empty for some ranks
// if the batch has fewer rows than there are ranks. It panics if the rank is not
// in [0, ranks). Cost: about 30 ns a row.
func (o Order) RankRows(step int64, rank, ranks int, dst []int) []int {
	return o.rankRows(step, rank, ranks, dst, nil)
}

// rankRows is RankRows, for a third of its time where a table is kept for the steps of
// an epoch.
func (o Order) rankRows(step int64, rank, ranks int, dst []int, t *shuffle.Table) []int {
	if rank < 0 || rank >= ranks {
		panic(fmt.Sprintf("data: rank %d is not in [0,%d)", rank, ranks))
	}
	epoch, lo, hi := o.At(step)
	n := hi - lo
	lo, hi = lo+part(n, rank, ranks), lo+part(n, rank+1, ranks)
	dst = dst[:0]
	if !o.Shuffle {
		for p := lo; p < hi; p++ {
			dst = append(dst, p)
		}
		return dst
	}
	if o.Block > 0 {
		w := o.windows(epoch)
		for p := lo; p < hi; p++ {
			dst = append(dst, w.At(p))
		}
		return dst
	}
	perm := shuffle.Of(o.Rows, o.Seed, epoch)
	if t == nil {
		return perm.Append(dst, uint64(lo), uint64(hi))
	}
	t.Set(perm)
	return t.Append(dst, uint64(lo), uint64(hi))
}

// RankStart is where a rank's part of a step's batch begins within the batch.
func (o Order) RankStart(step int64, rank, ranks int) int {
	_, lo, hi := o.At(step)
	return part(hi-lo, rank, ranks)
}

// part is where part i of n begins, of which there are parts in all.
func part(n, i, parts int) int {
	return n/parts*i + n%parts*i/parts
}

func (o *Order) windows(epoch int) shuffle.Windows {
	return shuffle.InWindows(shuffle.Layout{Rows: o.Rows, Block: o.Block, Window: o.Window}, o.Seed, epoch)
}

// Ahead appends to dst[:0] the blocks of the next window that it is a step's turn to
// load, so that they are there when the window begins: as large a part of the next
// window as the step is of its own. There is none in an order without windows.
func (o Order) Ahead(step int64, dst []int) []int {
	dst = dst[:0]
	if o.Block == 0 || !o.Shuffle {
		return dst
	}
	epoch, lo, hi := o.At(step)
	w := o.windows(epoch)
	for lo < hi {
		number, first, end := w.Window(lo)
		stop, next := min(hi, end), w
		if number++; end == o.Rows {
			next, number = o.windows(epoch+1), 0
		}
		share := func(position int) int { return (position - first) * o.Window / (end - first) }
		dst = next.Blocks(number, share(lo), share(stop), dst)
		lo = stop
	}
	return dst
}
