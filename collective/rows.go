package collective

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/gangline/gangline/collective/internal/merge"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// Rows sums sparse values over a group: each rank gives ascending distinct keys
// and a row for each; each ends with the union of the keys, ascending, and for
// each key the rows summed in the order of the group, the same bits everywhere.
//
// There are two ways to do so. One is a ring all-gather in n-1 steps: with m_i
// bytes (keys and rows) from rank i and M their sum, rank i sends M - m_{i+1} bytes
// and receives M - m_i, then merges in O(K log n) for K keys in all; memory is M.
// The other is a dense all-reduce of the whole table with a column of counts (see
// dense.go): 2(n-1)/n of its size, whatever M is. Where the table's size is known and
// the second can be the cheaper one at all, from three ranks on, the ranks tell each
// other first how many keys they have, 8 bytes from each to each, and take the way
// that moves fewer bytes. In the dense one the sum of a row has the order of the
// ring's chunks, as that of any dense gradient.
//
// Once warm, a Run allocates nothing. It is not safe for concurrent use.
type Rows struct {
	Party
	dtype  tensor.DType
	dim    int
	blocks []block
	given  []merge.Block
	merge  merge.Merger
	counts *Exchange // nil: always gather
	dense  dense
	bytes  int64
	broken error
}

// block is the receive that brings what one rank gave: K keys, then K rows, in one
// piece of memory.
type block struct {
	recv transport.Receive
	mem  *tensor.Tensor
}

// NewRows binds a sum of rows of dim elements of type d. table is how many rows
// there are in all, so that keys are below it; 0 is any number, and the rows are
// always gathered then. It uses the party's tag and, to sum densely without
// streams, that tag with DenseTag set.
func NewRows(p Party, d tensor.DType, dim, table int) (*Rows, error) {
	if err := p.validateEndpoint(); err != nil {
		return nil, err
	}
	if !d.IsFloat() || dim < 1 || table < 0 {
		return nil, fmt.Errorf("collective: rows of %d elements of type %v in a table of %d cannot be summed", dim, d, table)
	}
	n := len(p.Group)
	r := &Rows{
		Party: p, dtype: d, dim: dim, blocks: make([]block, n), given: make([]merge.Block, n),
		dense: dense{table: table, dim: dim, dtype: d},
	}
	if r.mayBeDense() {
		var err error
		if r.counts, err = NewExchange(p, 8); err != nil {
			return nil, err
		}
	}
	for i := range r.blocks {
		b := &r.blocks[i]
		b.mem = tensor.New(tensor.I64, 0)
		b.recv.Grow = func(n int) []byte {
			b.mem.Resize((n + 7) / 8)
			return b.mem.Bytes()
		}
	}
	return r, nil
}

// Bytes is what the last Run moved: sent plus received.
func (r *Rows) Bytes() int64 { return r.bytes }

// Run sums (keys, rows) over the group into (outKeys, outRows), which are
// resized to [K] and [K dim] and must not be the same tensors. ctx bounds every
// wait; an error names the rank that was missing, or whose keys were not
// ascending, and the runner is then used up.
func (r *Rows) Run(ctx context.Context, keys, rows, outKeys, outRows *tensor.Tensor) error {
	if err := r.fits(keys, rows, outKeys, outRows); err != nil {
		return err
	}
	if r.broken != nil {
		return fmt.Errorf("%w: %w", ErrUsedUp, r.broken)
	}
	err := r.run(ctx, keys, rows, outKeys, outRows)
	if err != nil {
		r.broken = fmt.Errorf("collective: sum of rows over ranks %v: %w", r.Group, err)
	}
	return r.broken
}

// run takes the cheaper way.
func (r *Rows) run(ctx context.Context, keys, rows, outKeys, outRows *tensor.Tensor) error {
	r.bytes = 0
	dense, err := r.choose(ctx, keys.Elems())
	if err != nil {
		return err
	}
	if dense {
		return r.sumDense(ctx, keys, rows, outKeys, outRows)
	}
	r.given[r.Index] = merge.Block{Keys: keys.I64(), Rows: rows.Bytes()}
	if err := r.gather(ctx); err != nil {
		return err
	}
	return r.sum(outKeys, outRows)
}

// fits checks what the caller gave.
func (r *Rows) fits(keys, rows, outKeys, outRows *tensor.Tensor) error {
	if keys.DType() != tensor.I64 || rows.DType() != r.dtype || outKeys.DType() != tensor.I64 || outRows.DType() != r.dtype ||
		rows.Elems() != keys.Elems()*r.dim {
		return fmt.Errorf("collective: sum of rows: %v %v keys and %v %v rows where %v rows of %d are summed",
			keys.DType(), keys.Shape(), rows.DType(), rows.Shape(), r.dtype, r.dim)
	}
	if keys == outKeys || rows == outRows {
		return fmt.Errorf("collective: sum of rows in place")
	}
	return nil
}

// gather brings the blocks of all ranks here. All receives are posted at once:
// each has memory of its own.
func (r *Rows) gather(ctx context.Context) error {
	n := len(r.Group)
	next, prev := r.Group[mod(r.Index+1, n)], r.Group[mod(r.Index-1, n)]
	for t := 1; t < n; t++ {
		b := &r.blocks[mod(r.Index-t, n)]
		b.recv.Peer, b.recv.Tag, b.recv.Buf = prev, r.Tag, b.mem.Bytes()
		if err := r.Endpoint.Post(&b.recv); err != nil {
			return r.fail("receive from", prev, err)
		}
	}
	for t := 1; t < n; t++ {
		out := &r.given[mod(r.Index-t+1, n)]
		head := bytesOf(out.Keys)
		if err := r.Endpoint.Send(ctx, next, r.Tag, head, out.Rows); err != nil {
			return r.fail("send to", next, err)
		}
		i := mod(r.Index-t, n)
		in := &r.blocks[i]
		if err := in.recv.Wait(ctx); err != nil {
			return r.fail("receive from", prev, err)
		}
		row := 8 + r.dim*r.dtype.Size()
		if in.recv.N%row != 0 {
			return r.fail("receive from", prev, fmt.Errorf("rows of rank %d: %d bytes are no number of rows of %d: %w",
				r.Group[i], in.recv.N, row, transport.ErrCorrupt))
		}
		k := in.recv.N / row
		r.given[i] = merge.Block{Keys: in.mem.I64()[:k], Rows: in.mem.Bytes()[k*8 : in.recv.N]}
		r.bytes += int64(len(head)+len(out.Rows)) + int64(in.recv.N)
	}
	return nil
}

// sum merges the blocks.
func (r *Rows) sum(outKeys, outRows *tensor.Tensor) error {
	distinct, err := r.merge.Plan(r.given, r.Group)
	if err != nil {
		return err
	}
	outKeys.Resize(distinct)
	outRows.Resize(distinct, r.dim)
	if r.dtype == tensor.F32 {
		merge.SumRows[float32](&r.merge, r.given, r.dim, outKeys.I64(), outRows.F32())
	} else {
		merge.SumRows[float64](&r.merge, r.given, r.dim, outKeys.I64(), outRows.F64())
	}
	return nil
}

// bytesOf is the memory of keys.
func bytesOf(keys []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(keys))), len(keys)*8)
}
