package collective

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/tensor"
)

// Rows of equal keys are added in the order given, of all others the one is taken; the
// second run is of other sizes.
func TestRowSum(t *testing.T) {
	s, err := NewRowSum(3, tensor.F64, 2)
	if err != nil {
		t.Fatal(err)
	}
	keys, rows := tensor.New(tensor.I64, 0), tensor.New(tensor.F64, 0, 2)
	pair := func(keys []int64, rows ...float64) []*tensor.Tensor {
		return []*tensor.Tensor{tensor.From(keys, len(keys)), tensor.From(rows, len(keys), 2)}
	}
	run := func(pairs ...[]*tensor.Tensor) error {
		var in []*tensor.Tensor
		for _, p := range pairs {
			in = append(in, p...)
		}
		return s.Run(in, keys, rows)
	}
	for _, c := range []struct {
		in   [][]*tensor.Tensor
		keys []int64
		rows []float64
	}{
		{[][]*tensor.Tensor{pair([]int64{3, 9}, 1, 2, 3, 4), pair(nil), pair([]int64{1, 3}, 10, 20, 30, 40)}, []int64{1, 3, 9}, []float64{10, 20, 31, 42, 3, 4}},
		{[][]*tensor.Tensor{pair([]int64{5}, 1e16, 1), pair([]int64{5}, 1, 1), pair([]int64{5}, -1e16, 1)}, []int64{5}, []float64{0, 3}},
		{[][]*tensor.Tensor{pair(nil), pair(nil), pair(nil)}, []int64{}, []float64{}},
	} {
		if err := run(c.in...); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.keys, keys.I64()) + cmp.Diff(c.rows, rows.F64()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	if err := run(pair([]int64{3, 3}, 1, 2, 3, 4), pair(nil), pair(nil)); err == nil || !strings.Contains(err.Error(), "not ascending") {
		t.Errorf("equal keys: %v", err)
	}
	if err := run(pair(nil), pair(nil)); err == nil {
		t.Error("two values pass for three")
	}
	if _, err := NewRowSum(0, tensor.F64, 2); err == nil {
		t.Error("a sum of nothing is made")
	}
}
