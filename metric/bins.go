package metric

import "math"

// binsCount is the number of bins of a calibration.
const binsCount = 10

// Bin is the rows whose probability is in [Lo, Hi), of the last bin [Lo, Hi].
type Bin struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
	// Weight is that of its rows; their number, if all weigh 1.
	Weight float64 `json:"weight"`
	// Predicted is the mean probability, Observed the share of rows in which it
	// happened; both 0 in an empty bin.
	Predicted float64 `json:"predicted"`
	Observed  float64 `json:"observed"`
}

// Bins collects a calibration: sums of weights, of probabilities and of what
// happened, in bins of equal width. Sums can be merged, which bins of equal
// numbers of rows could not.
type Bins struct {
	Weight, Predicted, Observed [binsCount]float64
	Bad                         bool // a probability was NaN: nothing can be said
}

// Add takes one row: the probability of something, and 1 if it happened, else 0.
func (b *Bins) Add(p, happened, weight float64) {
	if math.IsNaN(p) {
		b.Bad = true
		return
	}
	i := min(max(int(p*binsCount), 0), binsCount-1)
	b.Weight[i] += weight
	b.Predicted[i] += weight * p
	b.Observed[i] += weight * happened
}

// Merge adds the rows of another.
func (b *Bins) Merge(o *Bins) {
	b.Bad = b.Bad || o.Bad
	for i := range b.Weight {
		b.Weight[i] += o.Weight[i]
		b.Predicted[i] += o.Predicted[i]
		b.Observed[i] += o.Observed[i]
	}
}

// Calibration works it out, nil without rows. The expected calibration error is
// the mean over the rows of |Predicted - Observed| of their bins (Naeini et al.
// 2015; Guo et al. 2017).
func (b *Bins) Calibration() *Calibration {
	var weight, predicted, observed, gap float64
	c := &Calibration{Bins: make([]Bin, binsCount)}
	for i, w := range b.Weight {
		c.Bins[i] = Bin{Lo: float64(i) / binsCount, Hi: float64(i+1) / binsCount, Weight: w}
		if w > 0 {
			c.Bins[i].Predicted, c.Bins[i].Observed = b.Predicted[i]/w, b.Observed[i]/w
		}
		weight += w
		predicted += b.Predicted[i]
		observed += b.Observed[i]
		gap += math.Abs(b.Predicted[i] - b.Observed[i])
	}
	if weight == 0 || b.Bad {
		return nil
	}
	c.Ratio, c.Error = Finite(predicted/observed), Finite(gap/weight)
	return c
}

// Confusion counts rows by what was predicted and what was right, or adds up
// their weights.
type Confusion struct {
	TruePositive, FalsePositive, FalseNegative, TrueNegative float64
}

// Add takes one row.
func (c *Confusion) Add(predicted, right bool, weight float64) {
	switch {
	case predicted && right:
		c.TruePositive += weight
	case predicted:
		c.FalsePositive += weight
	case right:
		c.FalseNegative += weight
	default:
		c.TrueNegative += weight
	}
}

// Merge adds the rows of another.
func (c *Confusion) Merge(o *Confusion) {
	c.TruePositive += o.TruePositive
	c.FalsePositive += o.FalsePositive
	c.FalseNegative += o.FalseNegative
	c.TrueNegative += o.TrueNegative
}

// Precision is the share of rows predicted as positive that are; NaN if there
// are none.
func (c *Confusion) Precision() float64 {
	return c.TruePositive / (c.TruePositive + c.FalsePositive)
}

// Recall is the share of positive rows that are predicted as such; NaN if there
// are none.
func (c *Confusion) Recall() float64 {
	return c.TruePositive / (c.TruePositive + c.FalseNegative)
}

// F1 is the harmonic mean of precision and recall, in a form that is 0 where
// nothing was found; NaN if there was nothing to find and nothing was claimed.
func (c *Confusion) F1() float64 {
	return 2 * c.TruePositive / (2*c.TruePositive + c.FalsePositive + c.FalseNegative)
}
