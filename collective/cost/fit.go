package cost

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gangline/gangline/collective"
)

// Sample is what a collective took whose longest way is so many messages, and bytes of
// them, and bytes that are added.
type Sample struct {
	Messages, Bytes, Added float64
	Seconds                float64 // the median of many
}

// SampleOf is the sample of a schedule on one path, still without its time. That is
// exact where all ranks do alike in all steps, as in a ring.
func SampleOf(s *collective.Schedule, bytes int) Sample {
	in := func(l Link) float64 { return Time(s, bytes, Machine{Costs: Table{Unix: l}}) }
	return Sample{Messages: in(Link{Alpha: 1}), Bytes: in(Link{Beta: 1}), Added: in(Link{Gamma: 1})}
}

// predict is what the model makes of a sample.
func (l Link) predict(s *Sample) float64 {
	return s.Messages*l.Alpha + s.Bytes*l.Beta + s.Added*l.Gamma
}

// Fitted is the costs of a path, and how well they tell what was measured.
type Fitted struct {
	Link
	// Off is how far the model is from a sample, as a share of it: the median over all
	// samples, and the most.
	Off     float64 `json:"off"`
	OffMost float64 `json:"off_most"`
}

// ErrNoFit says that measurements do not follow the model.
var ErrNoFit = errors.New("the times do not follow alpha + bytes·beta + added·gamma")

// Limits of a fit.
const (
	samplesMin = 6
	rounds     = 50
	// offMax is the median deviation beyond which a fit says nothing.
	offMax = .5
	// tuning is from how many deviations on Huber's weights fall: 95 % as good as least
	// squares where no sample is an outlier.
	tuning = 1.345
	// noiseGamma is how far below zero gamma may be, as a share of beta: an addition
	// that hides behind the copying costs nothing.
	noiseGamma = .5
)

// Fit finds the costs of a path by least squares of relative deviations, so that a
// short message counts as much as a long one, and what took too long by far at most
// once; in which samples far from all others count less (Huber's weights), though
// never nothing: the largest buffers, which no cache holds, are often such. It is an error,
// ErrNoFit, if the costs make no sense or tell too little: a busy machine, or another
// path than the one meant.
//
// Source: P. J. Huber, "Robust estimation of a location parameter", 1964.
func Fit(samples []Sample) (Fitted, error) {
	if err := fittable(samples); err != nil {
		return Fitted{}, err
	}
	weights := make([]float64, len(samples))
	for i := range weights {
		weights[i] = 1
	}
	var l Link
	for range rounds {
		next, ok := solve(samples, weights)
		if !ok {
			return Fitted{}, fmt.Errorf("%w: sizes are too much alike, or one of them is all that counts", ErrNoFit)
		}
		same := near(next.Alpha, l.Alpha) && near(next.Beta, l.Beta) && near(next.Gamma, l.Gamma)
		if l = next; same {
			break
		}
		off := deviations(l, samples)
		scale := 1.4826 * median(off)
		for i, d := range off {
			weights[i] = 1
			if d > tuning*scale && scale > 1e-9 {
				weights[i] = tuning * scale / d
			}
		}
	}
	return judge(l, samples)
}

// fittable refuses samples that no fit can be made of.
func fittable(samples []Sample) error {
	if len(samples) < samplesMin {
		return fmt.Errorf("%w: %d samples: want at least %d", ErrNoFit, len(samples), samplesMin)
	}
	for _, s := range samples {
		if !(s.Messages > 0) || !(s.Seconds > 0) || math.IsInf(s.Seconds, 0) || !(s.Bytes >= 0) || !(s.Added >= 0) {
			return fmt.Errorf("%w: a sample of %g messages and %g bytes that took %g s", ErrNoFit, s.Messages, s.Bytes, s.Seconds)
		}
	}
	return nil
}

// judge refuses costs that make no sense.
func judge(l Link, samples []Sample) (Fitted, error) {
	switch {
	case !(l.Alpha > 0):
		return Fitted{}, fmt.Errorf("%w: a message would take %.3g µs; measure again on an idle machine", ErrNoFit, l.Alpha*1e6)
	case !(l.Beta > 0):
		return Fitted{}, fmt.Errorf("%w: a byte would take %.3g ns; measure again on an idle machine", ErrNoFit, l.Beta*1e9)
	case l.Gamma < -noiseGamma*l.Beta:
		return Fitted{}, fmt.Errorf("%w: to add a byte would take %.3g ns; measure again on an idle machine", ErrNoFit, l.Gamma*1e9)
	case max(l.Alpha, l.Beta, l.Gamma) >= secondsMax:
		return Fitted{}, fmt.Errorf("%w: %+v are no seconds", ErrNoFit, l)
	}
	l.Gamma = max(l.Gamma, 0)
	off := deviations(l, samples)
	f := Fitted{Link: l, Off: median(off), OffMost: slices.Max(off)}
	if f.Off > offMax {
		return f, fmt.Errorf("%w: half of the samples are more than %.0f %% off (want at most %.0f %%); measure again on an idle machine",
			ErrNoFit, 100*f.Off, 100*offMax)
	}
	return f, nil
}

// near reports whether two numbers are the same for a fit.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(a) }

// deviations are the distances of the samples from the model, as shares of them.
func deviations(l Link, samples []Sample) []float64 {
	off := make([]float64, len(samples))
	for i := range samples {
		off[i] = math.Abs(l.predict(&samples[i])/samples[i].Seconds - 1)
	}
	return off
}

// median is the middle of some numbers; it leaves them in their order.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// solve is the weighted least squares of relative deviations: the normal equations of
// three unknowns, each scaled to 1, by elimination. False if they have no one solution.
func solve(samples []Sample, weights []float64) (Link, bool) {
	var scale [3]float64
	rows := make([][3]float64, len(samples))
	for i, s := range samples {
		rows[i] = [3]float64{s.Messages / s.Seconds, s.Bytes / s.Seconds, s.Added / s.Seconds}
		for k, v := range rows[i] {
			scale[k] = max(scale[k], v)
		}
	}
	if min(scale[0], scale[1], scale[2]) == 0 {
		return Link{}, false
	}
	var m [3][4]float64
	for i, row := range rows {
		for k := range 3 {
			for j := range 3 {
				m[k][j] += weights[i] * row[k] / scale[k] * row[j] / scale[j]
			}
			m[k][3] += weights[i] * row[k] / scale[k]
		}
	}
	x, ok := eliminate(m)
	return Link{Alpha: x[0] / scale[0], Beta: x[1] / scale[1], Gamma: x[2] / scale[2]}, ok
}

// eliminate solves three equations by Gauss's elimination with pivots.
func eliminate(m [3][4]float64) (x [3]float64, ok bool) {
	for k := range 3 {
		best := k
		for i := k + 1; i < 3; i++ {
			if math.Abs(m[i][k]) > math.Abs(m[best][k]) {
				best = i
			}
		}
		m[k], m[best] = m[best], m[k]
		if math.Abs(m[k][k]) < 1e-12 {
			return x, false
		}
		for i := range 3 {
			if i == k {
				continue
			}
			f := m[i][k] / m[k][k]
			for j := k; j < 4; j++ {
				m[i][j] -= f * m[k][j]
			}
		}
	}
	for k := range 3 {
		x[k] = m[k][3] / m[k][k]
	}
	return x, true
}
