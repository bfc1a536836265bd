package shuffle

import "github.com/gangline/gangline/internal/mix"

// What the keys of a windowed order are for.
const (
	streamBlocks = 1<<32 + iota
	streamWindow
)

// Layout says how rows stand in blocks, and how many blocks are shuffled together.
type Layout struct {
	// Rows is how many there are, Block how many a block has (the last has the rest),
	// Window how many blocks a window has. All are above 0.
	Rows, Block, Window int
}

// Windows is one epoch of a layout: a bijection on its rows that is computed point by
// point. The blocks are permuted and cut into windows, and the rows of each window are
// permuted among themselves.
type Windows struct {
	block, window int
	rows          int
	key           uint64
	blocks        Permutation
	short         int // where the last block, the only one that may be shorter, comes
	lacking       int // rows that it has fewer than the others
	at            span
}

// span is one window: positions [lo, hi) and the permutation within.
type span struct {
	lo, hi, number int
	rows           Permutation
}

// InWindows prepares an epoch. Cost: about 100 ns.
func InWindows(l Layout, seed uint64, epoch int) Windows {
	count := (l.Rows-1)/l.Block + 1
	key := mix.At(mix.Mix(seed), uint64(epoch))
	w := Windows{
		block: l.Block, window: l.Window, rows: l.Rows, key: key,
		blocks: keyed(count, mix.At(key, streamBlocks)), lacking: count*l.Block - l.Rows,
	}
	w.short = int(w.blocks.from(uint64(count - 1)))
	return w
}

// start is the position that a window begins at.
func (w *Windows) start(window int) int {
	p := window * w.window * w.block
	if w.short < window*w.window {
		p -= w.lacking
	}
	return min(p, w.rows)
}

// enter makes the window of a position the current one.
func (w *Windows) enter(position int) {
	n := position / (w.window * w.block)
	if w.start(n+1) <= position { // behind the short block
		n++
	}
	lo, hi := w.start(n), w.start(n+1)
	w.at = span{lo, hi, n, keyed(hi-lo, mix.At(w.key, streamWindow+uint64(n)<<33))}
}

// At returns the row at a position below Rows. Cost: about 40 ns.
func (w *Windows) At(position int) int {
	if position < w.at.lo || position >= w.at.hi {
		w.enter(position)
	}
	i := int(w.at.rows.At(uint64(position - w.at.lo)))
	slot := w.at.number*w.window + i/w.block
	if w.short >= w.at.number*w.window && w.short < slot+1 {
		// Count the rows as if the short block stood last in its window.
		return w.behindShort(i)
	}
	return int(w.blocks.At(uint64(slot)))*w.block + i%w.block
}

// behindShort is row i of the current window where the short block stands before it,
// or is the one.
func (w *Windows) behindShort(i int) int {
	first := (w.short - w.at.number*w.window) * w.block
	slot, in := w.short, i-first
	if left := w.block - w.lacking; in >= left {
		in -= left
		slot, in = w.short+1+in/w.block, in%w.block
	}
	return int(w.blocks.At(uint64(slot)))*w.block + in
}

// Window returns the window that a position is in: its number, and the positions
// [lo, hi) that it has.
func (w *Windows) Window(position int) (number, lo, hi int) {
	w.enter(position)
	return w.at.number, w.at.lo, w.at.hi
}

// Blocks appends to dst blocks [from, to) of a window, as far as it has them.
func (w *Windows) Blocks(window, from, to int, dst []int) []int {
	for slot := window*w.window + from; slot < window*w.window+to && slot < int(w.blocks.n); slot++ {
		dst = append(dst, int(w.blocks.At(uint64(slot))))
	}
	return dst
}
