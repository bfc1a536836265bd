package optim_test

import (
	"testing"

	"github.com/gangline/gangline/optim"
)

// A scale halves where a step was skipped for it, doubles after so many steps without,
// and stays within its bounds; steps without examples say nothing.
func TestLossScale(t *testing.T) {
	l := optim.LossScale{Start: 8, Every: 3}
	scale, good := l.Start, 0.0
	for i, s := range []struct{ total, scale, good float64 }{
		{5, 8, 1}, {5, 8, 2}, {0, 8, 2}, {5, 16, 0}, {5, 16, 1}, {optim.Skip(), 8, 0}, {optim.Skip(), 4, 0}, {1, 4, 1},
	} {
		if scale, good = l.Next(scale, good, s.total); scale != s.scale || good != s.good {
			t.Errorf("step %d: scale %v after %v good steps, want %v after %v", i, scale, good, s.scale, s.good)
		}
	}
	if s, _ := l.Next(optim.ScaleMin, 0, optim.Skip()); s != optim.ScaleMin {
		t.Errorf("below the least: %v", s)
	}
	if s, _ := l.Next(optim.ScaleMax, 2, 1); s != optim.ScaleMax {
		t.Errorf("above the largest: %v", s)
	}
}

// The scale of a sum over a batch is that of the mean, divided by a power of two near
// the batch.
func TestLossScaleForBatch(t *testing.T) {
	for batch, want := range map[int]float64{0: 1 << 16, 1: 1 << 16, 2: 1 << 15, 3: 1 << 15, 128: 512, 1000: 128, 1 << 40: optim.ScaleMin} {
		if got := optim.DefaultLossScale().ForBatch(batch).Start; got != want {
			t.Errorf("batch %d: %v, want %v", batch, got, want)
		}
	}
}
