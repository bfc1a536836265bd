package cost

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Sample is what an exchange took: in each of Steps steps, every rank sent Bytes and
// received as many, of which it added Added to what it had.
type Sample struct {
	Steps   int
	Bytes   float64 // a step
	Added   float64 // a step; twice what it is where it is added from memory, see Link
	Seconds float64 // of all steps, the median of many
}

// predict is what the model makes of a sample.
func (l Link) predict(s *Sample) float64 {
	return float64(s.Steps) * (l.Alpha + s.Bytes*l.Beta + s.Added*l.Gamma)
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
	// tuning is where Tukey's weights reach zero, in deviations: 95 % as good as least
	// squares where no sample is an outlier.
	tuning = 4.685
	// noiseGamma is how far below zero gamma may be, as a share of beta: an addition
	// that hides behind the copying costs nothing.
	noiseGamma = .5
)

// Fit finds the costs of a path by least squares of relative deviations, so that a
// short message counts as much as a long one, in which samples far from all others
// count little or nothing (Tukey's biweight). It is an error, ErrNoFit, if the costs
// make no sense or tell too little: a busy machine, or another path than the one meant.
//
// Source: A. E. Beaton and J. W. Tukey, "The fitting of power series, meaning
// polynomials, illustrated on band-spectroscopic data", 1974.
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
			if scale > 1e-9 {
				u := min(d/(tuning*scale), 1)
				weights[i] = (1 - u*u) * (1 - u*u)
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
		if s.Steps < 1 || !(s.Seconds > 0) || math.IsInf(s.Seconds, 0) || !(s.Bytes >= 0) || !(s.Added >= 0) {
			return fmt.Errorf("%w: a sample of %d steps of %g bytes that took %g s", ErrNoFit, s.Steps, s.Bytes, s.Seconds)
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
		steps := float64(s.Steps) / s.Seconds
		rows[i] = [3]float64{steps, steps * s.Bytes, steps * s.Added}
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
