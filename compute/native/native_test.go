package native_test

import (
	"testing"

	"github.com/gangline/gangline/compute/computetest"
	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/tensor"
)

// TestConformance proves that native computes what ref does.
func TestConformance(t *testing.T) { computetest.Run(t, native.New(), tensor.F32, tensor.F64) }
