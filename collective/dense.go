package collective

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gangline/gangline/tensor"
)

// DenseTag is a bit of the tags under which Rows that have no streams sum densely.
const DenseTag = 1 << 31

// dense is a table that rows are added to where they belong: dim elements a row, then
// for each row the number of ranks that have it.
type dense struct {
	table, dim int
	dtype      tensor.DType
	// runner and whole are made when they are needed first: a table whose rows are
	// always few is never held here.
	runner *Runner
	whole  *tensor.Tensor
}

// elems is the length of whole.
func (d *dense) elems() int { return d.table * (d.dim + 1) }

// mayBeDense reports whether the dense way is the cheaper one if every rank has every
// row. Two ranks gather at most twice a table, and so does an all-reduce.
func (r *Rows) mayBeDense() bool { return r.dense.table > 0 && r.densest(r.dense.table*len(r.Group)) }

// densest reports whether an all-reduce of the table moves fewer bytes than a gather
// of so many keys and rows in all.
func (r *Rows) densest(keys int) bool {
	size := int64(r.dtype.Size())
	gather := int64(keys) * (8 + int64(r.dim)*size)
	return 2*int64(r.dense.elems())*size < gather
}

// choose agrees on the way with all ranks: each computes it from the same counts.
func (r *Rows) choose(ctx context.Context, keys int) (dense bool, err error) {
	if r.counts == nil {
		return false, nil
	}
	var mine [8]byte
	binary.LittleEndian.PutUint64(mine[:], uint64(keys))
	all, err := r.counts.Run(ctx, mine[:])
	if err != nil {
		return false, err
	}
	r.bytes += r.counts.Bytes()
	sum := 0
	for i := range r.Group {
		k := binary.LittleEndian.Uint64(all[8*i:])
		if k > uint64(r.dense.table) {
			return false, fmt.Errorf("rank %d has %d keys of a table of %d rows", r.Group[i], k, r.dense.table)
		}
		sum += int(k)
	}
	return r.densest(sum), nil
}

// sumDense adds the rows to a table of zeros, sums the table over the ranks, and
// takes the rows that some rank had.
func (r *Rows) sumDense(ctx context.Context, keys, rows, outKeys, outRows *tensor.Tensor) error {
	d := &r.dense
	if d.runner == nil {
		p := r.Party
		p.Tag |= DenseTag
		var err error
		if d.runner, err = NewRunner(p, RingAllReduce(len(r.Group)), d.dtype, d.elems()); err != nil {
			return err
		}
		d.whole = tensor.New(d.dtype, d.elems())
	}
	clear(d.whole.Bytes())
	var err error
	if d.dtype == tensor.F32 {
		err = scatter(d, keys.I64(), rows.F32(), d.whole.F32())
	} else {
		err = scatter(d, keys.I64(), rows.F64(), d.whole.F64())
	}
	if err != nil {
		return fmt.Errorf("rank %d: %w", r.rank(), err)
	}
	if err := d.runner.Run(ctx, d.whole); err != nil {
		return err
	}
	r.bytes += d.runner.Bytes()
	if d.dtype == tensor.F32 {
		extract(d, d.whole.F32(), outKeys, outRows, (*tensor.Tensor).F32)
	} else {
		extract(d, d.whole.F64(), outKeys, outRows, (*tensor.Tensor).F64)
	}
	return nil
}

// scatter puts rows in their places and counts them.
func scatter[T tensor.Float](d *dense, keys []int64, rows, whole []T) error {
	last := int64(-1)
	counts := whole[d.table*d.dim:]
	for i, k := range keys {
		if k <= last || k >= int64(d.table) {
			return fmt.Errorf("keys are not ascending and distinct numbers below %d: %d after %d at %d", d.table, k, last, i)
		}
		last = k
		copy(whole[int(k)*d.dim:][:d.dim], rows[i*d.dim:])
		counts[k] = 1
	}
	return nil
}

// extract takes the rows that some rank had, in order.
func extract[T tensor.Float](d *dense, whole []T, outKeys, outRows *tensor.Tensor, of func(*tensor.Tensor) []T) {
	counts := whole[d.table*d.dim:]
	n := 0
	for _, c := range counts {
		if c > 0 {
			n++
		}
	}
	outKeys.Resize(n)
	outRows.Resize(n, d.dim)
	keys, rows := outKeys.I64(), of(outRows)
	at := 0
	for k, c := range counts {
		if c > 0 {
			keys[at] = int64(k)
			copy(rows[at*d.dim:(at+1)*d.dim], whole[k*d.dim:])
			at++
		}
	}
}
