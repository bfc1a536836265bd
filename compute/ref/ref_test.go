package ref_test

import (
	"testing"

	"github.com/gangline/gangline/compute/computetest"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/tensor"
)

// TestConformance proves that ref agrees with itself over dtypes and sizes, and
// its gradients with differences.
func TestConformance(t *testing.T) { computetest.Run(t, ref.New(), tensor.F32, tensor.F64) }
