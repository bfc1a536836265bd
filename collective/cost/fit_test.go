package cost_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/cost"
)

// planted are samples of exchanges over n ranks with these costs, each off by up to a
// share of it.
func planted(l cost.Link, n int, noise float64, seed uint64) []cost.Sample {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []cost.Sample
	for b := 4.; b <= 16<<20; b *= 4 {
		for _, adds := range []float64{0, 1} {
			steps := float64(n - 1)
			s := cost.Sample{Messages: steps, Bytes: steps * b, Added: steps * adds * b}
			s.Seconds = steps * (l.Alpha + b*l.Beta + adds*b*l.Gamma) * (1 + noise*(2*r.Float64()-1))
			all = append(all, s)
		}
	}
	return all
}

func TestFitFindsConstants(t *testing.T) {
	for _, c := range []struct {
		name      string
		link      cost.Link
		n         int
		noise     float64
		outliers  int
		tolerance float64
	}{
		{"exact", cost.Link{Alpha: 5e-6, Beta: 1e-10, Gamma: 1e-10}, 2, 0, 0, 1e-6},
		{"a slow network", cost.Link{Alpha: 1e-3, Beta: 1e-8, Gamma: 1e-9}, 4, 0, 0, 1e-6},
		{"noise", cost.Link{Alpha: 3e-5, Beta: 7e-10, Gamma: 4e-10}, 3, .05, 0, .15},
		{"outliers", cost.Link{Alpha: 3e-5, Beta: 7e-10, Gamma: 4e-10}, 2, .02, 4, .1},
	} {
		for seed := range uint64(20) {
			samples := planted(c.link, c.n, c.noise, seed)
			r := rand.New(rand.NewPCG(seed, 2))
			for range c.outliers {
				samples[r.IntN(len(samples))].Seconds *= 5 + 20*r.Float64()
			}
			got, err := cost.Fit(samples)
			if err != nil {
				t.Errorf("%s, seed %d: %v", c.name, seed, err)
				continue
			}
			for name, v := range map[string][2]float64{"alpha": {got.Alpha, c.link.Alpha}, "beta": {got.Beta, c.link.Beta}, "gamma": {got.Gamma, c.link.Gamma}} {
				if math.Abs(v[0]/v[1]-1) > c.tolerance {
					t.Errorf("%s, seed %d: %s is %g, want %g", c.name, seed, name, v[0], v[1])
				}
			}
			if got.Off > c.noise+1e-6 || got.OffMost < got.Off {
				t.Errorf("%s: off by %g and %g", c.name, got.Off, got.OffMost)
			}
		}
	}
}

// An addition that hides behind the copying may seem to cost less than nothing.
func TestFitFreeAddition(t *testing.T) {
	got, err := cost.Fit(planted(cost.Link{Alpha: 1e-5, Beta: 1e-9, Gamma: -2e-10}, 2, 0, 1))
	if err != nil || got.Gamma != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A sample counts what is on the longest way of a schedule.
func TestSampleOf(t *testing.T) {
	const bytes = 1 << 20
	for _, c := range []struct {
		s    *collective.Schedule
		want cost.Sample
	}{
		{collective.RingAllGather(4), cost.Sample{Messages: 3, Bytes: 3 * bytes / 4}},
		{collective.RingReduceScatter(4), cost.Sample{Messages: 3, Bytes: 3 * bytes / 4, Added: 3 * bytes / 4}},
		{collective.RingAllReduce(2), cost.Sample{Messages: 2, Bytes: bytes, Added: bytes / 2}},
		{collective.HalvingAllReduce(8), cost.Sample{Messages: 6, Bytes: 2 * 7 * bytes / 8, Added: 2 * 7 * bytes / 8}}, // from memory: twice
	} {
		if got := cost.SampleOf(c.s, bytes); got != c.want {
			t.Errorf("%s over %d: %+v, want %+v", c.s.Name, c.s.N, got, c.want)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	good := planted(cost.Link{Alpha: 1e-5, Beta: 1e-9, Gamma: 1e-9}, 2, 0, 1)
	noise := rand.New(rand.NewPCG(1, 1))
	for name, change := range map[string]func(s []cost.Sample) []cost.Sample{
		"few":          func(s []cost.Sample) []cost.Sample { return s[:5] },
		"no time":      func(s []cost.Sample) []cost.Sample { s[3].Seconds = 0; return s },
		"not a number": func(s []cost.Sample) []cost.Sample { s[3].Seconds = math.NaN(); return s },
		"endless":      func(s []cost.Sample) []cost.Sample { s[3].Seconds = math.Inf(1); return s },
		"one size":     func(s []cost.Sample) []cost.Sample { return []cost.Sample{s[8], s[8], s[8], s[8], s[8], s[8], s[8]} },
		"larger is faster": func([]cost.Sample) []cost.Sample {
			return planted(cost.Link{Alpha: 1, Beta: -1e-9, Gamma: 1e-9}, 2, 0, 1)
		},
		"adding helps": func([]cost.Sample) []cost.Sample {
			return planted(cost.Link{Alpha: 1e-5, Beta: 1e-9, Gamma: -8e-10}, 2, 0, 1)
		},
		"hours": func([]cost.Sample) []cost.Sample {
			return planted(cost.Link{Alpha: 100, Beta: 1e-9, Gamma: 1e-9}, 2, 0, 1)
		},
		"chance": func(s []cost.Sample) []cost.Sample {
			for i := range s {
				s[i].Seconds = math.Exp(20 * noise.Float64())
			}
			return s
		},
	} {
		samples := change(append([]cost.Sample(nil), good...))
		if got, err := cost.Fit(samples); !errors.Is(err, cost.ErrNoFit) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestFitRefusesWhatTellsNothing: costs that make sense, but of which most times are far.
func TestFitRefusesWhatTellsNothing(t *testing.T) {
	samples := planted(cost.Link{Alpha: 1e-5, Beta: 1e-9, Gamma: 1e-9}, 2, 0, 1)
	for i := range samples {
		samples[i].Seconds *= math.Pow(8, float64(i/2%3)) // with and without addition alike
	}
	got, err := cost.Fit(samples)
	if !errors.Is(err, cost.ErrNoFit) || !strings.Contains(err.Error(), "half of the samples") {
		t.Errorf("%+v, %v", got, err)
	}
}
