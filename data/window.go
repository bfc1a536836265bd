package data

import "github.com/gangline/gangline/internal/mix"

// What the keys of a windowed order are for.
const (
	streamBlocks = 1<<32 + iota
	streamWindow
)

// windows is one epoch of an order by blocks and windows: a bijection on its rows
// that is computed point by point.
type windows struct {
	block, window int
	rows          int
	key           uint64
	blocks        permutation
	short         int // where the last block, the only one that may be shorter, comes
	lacking       int // rows that it has fewer than the others
	at            span
}

// span is one window: positions [lo, hi) and the permutation within.
type span struct {
	lo, hi, number int
	rows           permutation
}

// newWindows prepares an epoch. Cost: about 100 ns.
func newWindows(o *Order, epoch int) windows {
	count := (o.Rows-1)/o.Block + 1
	key := mix.At(mix.Mix(o.Seed), uint64(epoch))
	w := windows{
		block: o.Block, window: o.Window, rows: o.Rows, key: key,
		blocks: keyedPermutation(count, mix.At(key, streamBlocks)), lacking: count*o.Block - o.Rows,
	}
	w.short = int(w.blocks.from(uint64(count - 1)))
	return w
}

// start is the position that a window begins at.
func (w *windows) start(window int) int {
	p := window * w.window * w.block
	if w.short < window*w.window {
		p -= w.lacking
	}
	return min(p, w.rows)
}

// enter makes the window of a position the current one.
func (w *windows) enter(position int) {
	n := position / (w.window * w.block)
	if w.start(n+1) <= position { // behind the short block
		n++
	}
	lo, hi := w.start(n), w.start(n+1)
	w.at = span{lo, hi, n, keyedPermutation(hi-lo, mix.At(w.key, streamWindow+uint64(n)<<33))}
}

// row is the row at a position. Cost: about 40 ns.
func (w *windows) row(position int) int {
	if position < w.at.lo || position >= w.at.hi {
		w.enter(position)
	}
	i := int(w.at.rows.at(uint64(position - w.at.lo)))
	slot := w.at.number*w.window + i/w.block
	if w.short >= w.at.number*w.window && w.short < slot+1 {
		// Count the rows as if the short block stood last in its window.
		return w.behindShort(i)
	}
	return int(w.blocks.at(uint64(slot)))*w.block + i%w.block
}

// behindShort is row i of the current window where the short block stands before it,
// or is the one.
func (w *windows) behindShort(i int) int {
	first := (w.short - w.at.number*w.window) * w.block
	slot, in := w.short, i-first
	if left := w.block - w.lacking; in >= left {
		in -= left
		slot, in = w.short+1+in/w.block, in%w.block
	}
	return int(w.blocks.at(uint64(slot)))*w.block + in
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
	w := newWindows(&o, epoch)
	w.enter(lo)
	n := w.at.hi - w.at.lo
	from := (lo - w.at.lo) * o.Window / n
	to := (min(hi, w.at.hi) - w.at.lo) * o.Window / n
	next := w.at.number + 1
	if w.at.hi == o.Rows {
		w, next = newWindows(&o, epoch+1), 0
	}
	for slot := next*o.Window + from; slot < next*o.Window+to && slot < int(w.blocks.n); slot++ {
		dst = append(dst, int(w.blocks.at(uint64(slot))))
	}
	return dst
}
