package optim

import "math"

// LossScale says how the loss is multiplied before its gradients are taken, so that
// those in binary16 do not vanish below its least number (Micikevicius et al.: Mixed
// Precision Training, 2018, 3.2): by Start, a power of two, at first; by half of that
// after a step whose gradients were not finite, which changes nothing else; and by
// twice that after Every steps without.
type LossScale struct {
	Start float64
	Every int
}

// The bounds of a loss scale. At the lower one, gradients overflow that are above 2^29
// themselves.
const (
	ScaleMin = 0x1p-14
	ScaleMax = 0x1p24
)

// DefaultLossScale is what frameworks begin with.
func DefaultLossScale() LossScale { return LossScale{Start: 1 << 16, Every: 2000} }

// ForBatch is the scale for a loss that is the sum over so many examples: what its mean
// would be multiplied by, divided by a power of two near the batch.
func (l LossScale) ForBatch(examples int) LossScale {
	_, exp := math.Frexp(float64(max(examples, 1)))
	l.Start = max(l.Start*math.Ldexp(1, 1-exp), ScaleMin)
	return l
}

// Skip marks in a total weight that the step was skipped for gradients that were not
// finite: 0 as for any step that is skipped, but -0.
func Skip() float64 { return math.Copysign(0, -1) }

// Next returns the scale and the number of good steps since it changed last, after a
// step of a total weight. A step that was skipped for another reason says nothing.
func (l LossScale) Next(scale, good, total float64) (nextScale, nextGood float64) {
	switch {
	case total == 0 && math.Signbit(total):
		return max(scale/2, ScaleMin), 0
	case total == 0:
		return scale, good
	case good+1 < float64(l.Every):
		return scale, good + 1
	}
	return min(scale*2, ScaleMax), 0
}
