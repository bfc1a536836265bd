package collective

import (
	"fmt"

	"github.com/gangline/gangline/collective/internal/merge"
	"github.com/gangline/gangline/tensor"
)

// RowSum sums sparse values that are all here, as Rows does those of several ranks:
// in the order in which they are given. Once warm, a Run allocates nothing. It is not
// safe for concurrent use.
type RowSum struct{ rows Rows }

// NewRowSum binds a sum of n sparse values with rows of dim elements of type d.
func NewRowSum(n int, d tensor.DType, dim int) (*RowSum, error) {
	if n < 1 || !d.IsFloat() || dim < 1 {
		return nil, fmt.Errorf("collective: %d values with rows of %d elements of type %v cannot be summed", n, dim, d)
	}
	return &RowSum{Rows{Party: Party{Group: upTo(n)}, dtype: d, dim: dim, given: make([]merge.Block, n)}}, nil
}

// Run sums the pairs (keys, rows) of in into (outKeys, outRows), which are resized to
// [K] and [K dim] and must be none of them. Keys of a pair that do not ascend are an
// error.
func (s *RowSum) Run(in []*tensor.Tensor, outKeys, outRows *tensor.Tensor) error {
	r := &s.rows
	if len(in) != 2*len(r.given) {
		return fmt.Errorf("collective: sum of %d sparse values given %d tensors", len(r.given), len(in))
	}
	for i := range r.given {
		keys, rows := in[2*i], in[2*i+1]
		if err := r.fits(keys, rows, outKeys, outRows); err != nil {
			return err
		}
		r.given[i] = merge.Block{Keys: keys.I64(), Rows: rows.Bytes()}
	}
	return r.sum(outKeys, outRows)
}
