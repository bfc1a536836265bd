package strategy

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// SMA (synchronous model averaging) gives every worker a copy of all parameters. In
// each step a worker r updates its copy by its own gradient, and then all copies are
// drawn towards their average z by the factor alpha:
//
//	z = (1/n)·Σ w_r;  w_r = w_r - alpha·(w_r - z)
//
// The copies stay apart and so explore more than one would, while z, the central
// average model, is what is tested and saved: there all copies become z, and the run
// goes on from it. Between corrections may lie Averaging.Every steps, 1 if nothing is
// said. Slots stay each worker's own until then.
//
// Bytes on the wire: one all-reduce of the parameters every so many steps.
//
// This is the correction of Koliousis et al. 2019 ("Crossbow", algorithm 1) with a
// central model that follows at once: theirs adds Σ alpha·(w_r - z) to z, which for
// alpha = 1/n makes it the average as here, and momentum, which is left out. KungFu
// (Mai et al. 2020) corrects in the same way, w = (1-alpha)·w + alpha·z, but before the
// gradient is applied.
func SMA(step *graph.Step, c Cluster) (*plan.Program, error) {
	a := c.Averaging
	if a.Every == 0 {
		a.Every = SMAEvery
	}
	if a.Alpha == 0 {
		a.Alpha = SMAAlpha
	}
	switch {
	case !(a.Alpha > 0 && a.Alpha <= 1):
		return nil, fmt.Errorf("strategy sma: alpha %g: want more than 0 and at most 1", a.Alpha)
	case a.Slots != "" && a.Slots != KeepSlots:
		return nil, fmt.Errorf("strategy sma: slots %s: copies stay apart, and so must their slots; want keep, or kind localsgd", a.Slots)
	case a.Outer != Outer{}:
		return nil, fmt.Errorf("strategy sma: an outer optimizer makes its step along the average of all copies: take it with kind localsgd")
	}
	a.Slots = KeepSlots
	return localProgram("sma", step, c, a, smaAverage)
}

// smaAverage draws the copies towards their average, or, where a run settles, makes
// all of them the average.
func smaAverage(b *builder, a Averaging, settling bool) {
	if settling {
		localSGDAverage(b, Averaging{Slots: AverageSlots, Outer: Outer{LR: 1}}, true)
		return
	}
	b.holdOnWorkers()
	sums := b.sumCopies(false)
	for i := range b.step.Params {
		v := b.step.Params[i].Var
		w := b.node(v)
		b.combine(v.Name, w, []float64{1 - a.Alpha, a.Alpha * b.share()}, w, sums[v])
	}
}
