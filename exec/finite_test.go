package exec

import (
	"math"
	"testing"

	"github.com/gangline/gangline/tensor"
)

// A value that is not finite is found wherever it stands, and large finite ones
// are left alone.
func TestFinite(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for at := range n {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				single, double := tensor.New(tensor.F32, n), tensor.New(tensor.F64, n)
				for i := range n {
					single.F32()[i], double.F64()[i] = math.MaxFloat32, -math.MaxFloat64
				}
				if !finite(single) || !finite(double) {
					t.Fatalf("%d large values are not finite", n)
				}
				single.F32()[at], double.F64()[at] = float32(bad), bad
				if finite(single) || finite(double) {
					t.Errorf("%v at %d of %d was not found", bad, at, n)
				}
			}
		}
	}
}
