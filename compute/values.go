package compute

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/tensor"
)

// CheckIDs reports the first id outside [0, rows).
func CheckIDs(ids []int64, rows int) error {
	for e, id := range ids {
		if uint64(id) >= uint64(rows) {
			return fmt.Errorf("entry %d has id %d, want one in [0, %d)", e, id, rows)
		}
	}
	return nil
}

// CheckKeys is CheckIDs for keys, which must also ascend, without repeats.
func CheckKeys(keys []int64, rows int) error {
	if err := CheckIDs(keys, rows); err != nil {
		return err
	}
	for e := 1; e < len(keys); e++ {
		if keys[e-1] >= keys[e] {
			return fmt.Errorf("entry %d has key %d after key %d: want ascending, distinct keys", e, keys[e], keys[e-1])
		}
	}
	return nil
}

// CheckOffsets reports where offsets do not cut the entries into consecutive
// bags, from 0 to their number.
func CheckOffsets(offsets []int64, entries int) error {
	last := len(offsets) - 1
	if offsets[0] != 0 || offsets[last] != int64(entries) {
		return fmt.Errorf("offsets run from %d to %d, want 0 to the number of entries, %d", offsets[0], offsets[last], entries)
	}
	for b := range last {
		if offsets[b] > offsets[b+1] {
			return fmt.Errorf("offsets of bag %d run from %d to %d, want them ascending", b, offsets[b], offsets[b+1])
		}
	}
	return nil
}

// CheckTargets reports the first label of a logistic loss outside [0, 1].
func CheckTargets[T tensor.Float](labels []T) error {
	for i, y := range labels {
		if !(y >= 0 && y <= 1) {
			return fmt.Errorf("row %d has label %v, want one in [0, 1]", i, y)
		}
	}
	return nil
}

// CheckClasses reports the first label of a softmax loss that is no whole
// number in [0, classes).
func CheckClasses[T tensor.Float](labels []T, classes int) error {
	for i, y := range labels {
		if !(y >= 0 && y < T(classes)) || y != T(int64(y)) {
			return fmt.Errorf("row %d has label %v, want a class in [0, %d)", i, y, classes)
		}
	}
	return nil
}

// AttentionScale is what the products of queries and keys of size dim are
// multiplied by: alpha, or 1/sqrt(dim) for 0.
func AttentionScale(alpha float64, dim int) float64 {
	if alpha == 0 {
		return 1 / math.Sqrt(float64(dim))
	}
	return alpha
}
