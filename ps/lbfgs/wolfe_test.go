package lbfgs

import (
	"math"
	"testing"
)

// TestSearch runs the line search on functions of Moré and Thuente, "Line search
// algorithms with guaranteed sufficient decrease", ACM TOMS 20(3), 1994, section 5,
// from first steps that are far too short and far too long.
func TestSearch(t *testing.T) {
	const beta, l = .01, 39.
	for _, c := range []struct {
		name   string
		c1, c2 float64
		phi    func(t float64) (f, df float64)
	}{
		{"5.1", 1e-3, .1, func(t float64) (float64, float64) {
			d := t*t + 2
			return -t / d, (t*t - 2) / (d * d)
		}},
		{"5.2", .1, .1, func(t float64) (float64, float64) {
			b := t + .004
			return b * b * b * b * (b - 2), b * b * b * (5*b - 8)
		}},
		{"5.3", .1, .1, func(t float64) (float64, float64) {
			var f, df float64
			switch {
			case t <= 1-beta:
				f, df = 1-t, -1
			case t >= 1+beta:
				f, df = t-1, 1
			default:
				f, df = (t-1)*(t-1)/(2*beta)+beta/2, (t-1)/beta
			}
			return f + 2*(1-beta)/(l*math.Pi)*math.Sin(l*math.Pi/2*t), df + (1-beta)*math.Cos(l*math.Pi/2*t)
		}},
	} {
		for _, first := range []float64{1e-3, .1, 10, 1e3} {
			f, df := c.phi(0)
			s := newSearch(&Config{C1: c.c1, C2: c.c2, MaxSearch: 20}, point{f: f, df: df}, first)
			p, said := point{}, more
			for said == more {
				p.t = s.next
				p.f, p.df = c.phi(p.t)
				said = s.tell(p)
			}
			if said != accepted || p.f > f+c.c1*p.t*df || math.Abs(p.df) > -c.c2*df {
				t.Errorf("%s from %g: outcome %d at %g after %d points: f %g of %g, slope %g of %g", c.name, first, said, p.t, 20-s.left, p.f, f, p.df, df)
			}
		}
	}
}

// TestSearchWithNoise: where f says nothing slopes decide, as near a minimum whose
// value is far from 0.
func TestSearchWithNoise(t *testing.T) {
	phi := func(t float64) (float64, float64) { // of a minimum at 1e-9, drowned in 1
		return 1 + 4e-16*math.Ceil(t), t - 1e-9 // every step seems to go up
	}
	for _, first := range []float64{1e-11, 1e-9, 1e-7} {
		f, df := phi(0)
		s := newSearch(&Config{C1: 1e-4, C2: .1, MaxSearch: 20}, point{f: f, df: df}, first)
		p, said := point{}, more
		for said == more {
			p.t = s.next
			p.f, p.df = phi(p.t)
			said = s.tell(p)
		}
		if said != accepted || p.df > (2e-4-1)*df || p.df < .1*df { // Hager and Zhang 4.1
			t.Errorf("from %g: outcome %d at %g, slope %g", first, said, p.t, p.df)
		}
	}
}

// TestSearchEnds: with nothing to be had it ends, and says that there is nothing;
// with no end in sight, that too.
func TestSearchEnds(t *testing.T) {
	for _, c := range []struct {
		want  outcome
		from  float64
		falls bool
		phi   func(t float64) (f, df float64)
	}{
		{exhausted, 1, false, func(t float64) (float64, float64) { return 1 + t, -1 }},   // the slope lies
		{exhausted, 1, false, func(float64) (float64, float64) { return math.NaN(), 0 }}, // no value
		{unbounded, 1, true, func(t float64) (float64, float64) { return 1 - t, -1 }},    // no end
		{exhausted, 2, true, kink}, // no small slope
	} {
		s := newSearch(&Config{C1: 1e-4, C2: .9, MaxSearch: 20}, point{f: c.from, df: -1}, 1)
		said := more
		for n := 0; said == more; n++ {
			if n > 20 {
				t.Fatal("more than 20 points")
			}
			p := point{t: s.next}
			p.f, p.df = c.phi(p.t)
			said = s.tell(p)
		}
		if said != c.want || (s.best() > 0) != c.falls {
			t.Errorf("outcome %d, best %g, want %d, that there is one: %v", said, s.best(), c.want, c.falls)
		}
	}
}

// kink falls to 3/4 with slope -1, and rises with slope 1.
func kink(t float64) (f, df float64) {
	if t < .75 {
		return 2 - t, -1
	}
	return 2 - 1.5 + t, 1
}
