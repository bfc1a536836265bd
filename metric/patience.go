package metric

import (
	"fmt"
	"math"
)

// Patience follows a metric from test to test: which was the best, and whether to
// go on. It is a pure function of the values that it sees, in order, so that ranks
// that see the same values decide alike. It can be saved as JSON.
type Patience struct {
	// Metric is one of Names.
	Metric string `json:"metric"`
	// MinDelta is how much better than the best a value must be to count.
	MinDelta float64 `json:"min_delta"`
	// Limit is how many tests in a row may bring nothing better; 0: any number.
	Limit int `json:"limit"`

	// Seen counts tests, Waited those since the best.
	Seen   int `json:"seen"`
	Waited int `json:"waited"`
	// Best is the best value so far and Step its step; of none if Seen is 0.
	Best *float64 `json:"best,omitempty"`
	Step int64    `json:"step"`
}

// See takes the value of a test after so many steps; NaN is the worst there is. It
// reports whether this is the best so far. A value that is better by less than
// MinDelta is not.
func (p *Patience) See(step int64, value float64) (best bool) {
	p.Seen++
	p.Waited++
	was := math.NaN()
	if p.Best != nil {
		was = *p.Best
	}
	if !Better(p.Metric, value, was, p.MinDelta) {
		return false
	}
	p.Best, p.Step, p.Waited = &value, step, 0
	return true
}

// Done reports whether patience is at its end; that of nobody never is.
func (p *Patience) Done() bool { return p != nil && p.Limit > 0 && p.Waited >= p.Limit }

// Why says in a sentence why the run ends.
func (p *Patience) Why() string {
	if p.Best == nil {
		return fmt.Sprintf("%s was not a number in %d tests", p.Metric, p.Waited)
	}
	return fmt.Sprintf("%s has not got better than %.6g, of step %d, in %d tests", p.Metric, *p.Best, p.Step, p.Waited)
}

// Goes reports whether p may go on from what was saved: it follows the same metric
// by the same rule. The limit may have changed.
func (p *Patience) Goes(saved *Patience) bool {
	return saved != nil && saved.Metric == p.Metric && saved.MinDelta == p.MinDelta
}
