// Package tally collects what a test finds on a worker, lets it travel to rank 0 and
// works out the metrics.
package tally

import (
	"encoding/gob"
	"io"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/metric"
)

// Tally collects what a test needs: the model's own loss, and what the metrics of
// its task are worked out from.
type Tally struct {
	Loss, Weight float64
	Rows         int
	of           metric.Tally
}

// New makes an empty one. threshold is the probability above which a row is
// predicted as positive.
func New(task graph.Task, threshold float64) Tally {
	switch task {
	case graph.Binary:
		return Tally{of: &metric.Binary{Threshold: threshold}}
	case graph.Regression:
		return Tally{of: &metric.Regression{}}
	case graph.Multiclass, graph.Tokens:
	}
	return Tally{of: &metric.Multiclass{Tokens: task == graph.Tokens}}
}

// Encode writes a tally so that it can travel between ranks.
func (t *Tally) Encode(w io.Writer) error {
	e := gob.NewEncoder(w)
	if err := e.Encode(t); err != nil {
		return err
	}
	return e.Encode(t.of)
}

// Decode reads what Encode wrote into a tally that New made alike.
func (t *Tally) Decode(r io.Reader) error {
	d := gob.NewDecoder(r)
	if err := d.Decode(t); err != nil {
		return err
	}
	return d.Decode(t.of)
}

// Add takes in the rows of a step.
func (t *Tally) Add(rows metric.Rows) { t.of.Add(rows) }

// Merge adds the tally of another worker.
func (t *Tally) Merge(o *Tally) {
	t.Loss += o.Loss
	t.Weight += o.Weight
	t.Rows += o.Rows
	t.of.Merge(o.of)
}

// Result works out the metrics; without scores, the loss alone.
func (t *Tally) Result(scored bool) metric.Result {
	var r metric.Result
	if scored {
		t.of.Into(&r)
	}
	r.Rows, r.Loss = t.Rows, metric.Finite(t.Loss/t.Weight)
	return r
}
