package collective

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// Rows sums sparse values over a group: each rank gives ascending distinct keys
// and a row for each; each ends with the union of the keys, ascending, and for
// each key the rows summed in the order of the group, the same bits everywhere.
//
// It is a ring all-gather in n-1 steps. With m_i bytes (keys and rows) from
// rank i and M their sum, rank i sends M - m_{i+1} bytes and receives M - m_i,
// then merges in O(K log n) for K keys in all. That beats a dense all-reduce
// while the ranks together touch less than about 2/n of the table; memory is M.
//
// Once warm, a Run allocates nothing. It is not safe for concurrent use.
type Rows struct {
	Party
	dtype  tensor.DType
	dim    int
	blocks []block
	merge  merger
	bytes  int64
	broken error
}

// block is what one rank gave, and the receive that brings it: K keys, then K
// rows, in one piece of memory.
type block struct {
	recv transport.Receive
	mem  *tensor.Tensor
	keys []int64
	rows []byte
}

// NewRows binds a sum of rows of dim elements of type d.
func NewRows(p Party, d tensor.DType, dim int) (*Rows, error) {
	if err := p.validateEndpoint(); err != nil {
		return nil, err
	}
	if !d.IsFloat() || dim < 1 {
		return nil, fmt.Errorf("collective: rows of %d elements of type %v cannot be summed", dim, d)
	}
	r := &Rows{Party: p, dtype: d, dim: dim, blocks: make([]block, len(p.Group))}
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
	own := &r.blocks[r.Index]
	own.keys, own.rows = keys.I64(), rows.Bytes()
	err := r.gather(ctx)
	if err == nil {
		err = r.sum(outKeys, outRows)
	}
	if err != nil {
		r.broken = fmt.Errorf("collective: sum of rows over ranks %v: %w", r.Group, err)
	}
	return r.broken
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
	r.bytes = 0
	for t := 1; t < n; t++ {
		b := &r.blocks[mod(r.Index-t, n)]
		b.recv.Peer, b.recv.Tag, b.recv.Buf = prev, r.Tag, b.mem.Bytes()
		if err := r.Endpoint.Post(&b.recv); err != nil {
			return r.fail("receive from", prev, err)
		}
	}
	for t := 1; t < n; t++ {
		out := &r.blocks[mod(r.Index-t+1, n)]
		head := bytesOf(out.keys)
		if err := r.Endpoint.Send(ctx, next, r.Tag, head, out.rows); err != nil {
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
		in.keys, in.rows = in.mem.I64()[:k], in.mem.Bytes()[k*8:in.recv.N]
		r.bytes += int64(len(head)+len(out.rows)) + int64(in.recv.N)
	}
	return nil
}

// sum merges the blocks.
func (r *Rows) sum(outKeys, outRows *tensor.Tensor) error {
	distinct, err := r.merge.plan(r.blocks, r.Group)
	if err != nil {
		return err
	}
	outKeys.Resize(distinct)
	outRows.Resize(distinct, r.dim)
	if r.dtype == tensor.F32 {
		sumRows[float32](&r.merge, r.blocks, r.dim, outKeys.I64(), outRows.F32())
	} else {
		sumRows[float64](&r.merge, r.blocks, r.dim, outKeys.I64(), outRows.F64())
	}
	return nil
}

// bytesOf is the memory of keys.
func bytesOf(keys []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(keys))), len(keys)*8)
}

// floats reads memory that a block or a tensor aligned to 8 bytes.
func floats[T tensor.Float](b []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}
