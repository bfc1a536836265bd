package metric_test

import (
	"math"
	"testing"

	"github.com/gangline/gangline/metric"
)

// Short curves are kept as they are; of long ones points are the means of equal
// numbers of steps, in bounded memory.
func TestCurve(t *testing.T) {
	var c metric.Curve
	for i := range int64(1000) {
		c.Add(i+1, float64(i%7), 2)
	}
	if len(c.Points) != 1000 || c.Points[999] != (metric.Point{Step: 1000, Value: float64(999 % 7)}) {
		t.Fatalf("%d points, the last %+v", len(c.Points), c.Points[len(c.Points)-1])
	}
	for i := int64(1000); i < 12_345; i++ {
		c.Add(i+1, float64(i%7), 2)
	}
	const width = 16
	if len(c.Points) != (12_345+width-1)/width {
		t.Fatalf("%d points", len(c.Points))
	}
	for i, p := range c.Points {
		lo, hi := i*width, min((i+1)*width, 12_345)
		mean := 0.0
		for s := lo; s < hi; s++ {
			mean += float64(s%7) / float64(hi-lo)
		}
		if p.Step != int64(hi) || math.Abs(p.Value-mean) > 1e-9 {
			t.Fatalf("point %d is %+v, want step %d and %v", i, p, hi, mean)
		}
	}
	n := len(c.Points)
	c.Add(12_346, math.NaN(), 1)
	c.Add(12_346, math.Inf(1), 1)
	c.Add(12_346, 5, 0)
	if len(c.Points) != n || c.Points[n-1].Step != 12_345 {
		t.Error("what is no number, or weighs nothing, is in the curve")
	}
	var w metric.Curve
	for i := range int64(2000) {
		w.Add(i+1, float64(i%2), []float64{3, 1}[i%2])
	}
	if len(w.Points) != 1000 || w.Points[0].Value != .25 {
		t.Errorf("weights do not count: %+v", w.Points[0])
	}
}
