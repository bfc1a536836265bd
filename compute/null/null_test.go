package null_test

import (
	"testing"

	"github.com/gangline/gangline/compute/computetest"
	"github.com/gangline/gangline/compute/null"
	"github.com/gangline/gangline/tensor"
)

// TestConformance proves that null has the shapes of ref, and zeros.
func TestConformance(t *testing.T) { computetest.RunShapes(t, null.New(), tensor.F32, tensor.F64) }
