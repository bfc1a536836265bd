package lbfgs

import "math"

// flat is the part of f by which it may differ through rounding.
const flat = 1e-12

// point is the loss along the direction: value and slope at step t.
type point struct{ t, f, df float64 }

func (p *point) finite() bool { return finite(p.f) && finite(p.df) }

func finite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

// outcome is what a search says of a point.
type outcome uint8

const (
	more      outcome = iota // look at next
	accepted                 // the point satisfies the conditions
	exhausted                // best is the best there is; at 0 there is none
	unbounded                // the loss falls without end
)

// search is a line search: it is told about points, and says at which t to look
// next. It begins at 0, where the slope must be negative.
type search struct {
	c1, c2 float64
	left   int // points that may still be looked at
	from   point
	next   float64

	lo       point // the best one yet that goes down enough
	hi       point // where it is too high or goes up, once bracketed
	brackets bool
	width    [2]float64 // of the bracket, one and two points ago
}

func newSearch(c *Config, from point, first float64) *search {
	return &search{c1: c.C1, c2: c.C2, left: c.MaxSearch, from: from, lo: from, next: first}
}

// accepts says whether a point satisfies the strong conditions or, where f is flat,
// the approximate ones.
func (s *search) accepts(p *point) bool {
	if p.f <= s.from.f+s.c1*p.t*s.from.df && math.Abs(p.df) <= -s.c2*s.from.df {
		return true
	}
	return s.flat(p) && p.df <= (2*s.c1-1)*s.from.df && p.df >= s.c2*s.from.df
}

// flat says whether f differs from where it was by no more than rounding.
func (s *search) flat(p *point) bool { return math.Abs(p.f-s.from.f) <= flat*math.Abs(s.from.f) }

// high says whether a point is too far, for its value or, where values say
// nothing, for its slope.
func (s *search) high(p *point) bool {
	switch {
	case !p.finite():
		return true
	case s.flat(p):
		return p.df >= 0
	}
	return p.f > s.from.f+s.c1*p.t*s.from.df || p.f >= s.lo.f && s.lo.t > 0
}

// tell takes the point at next.
func (s *search) tell(p point) outcome {
	s.left--
	if p.finite() && s.accepts(&p) {
		return accepted
	}
	switch {
	case s.high(&p):
		s.hi = p
		if !s.brackets {
			s.bracket()
		}
	case !s.brackets && p.df >= 0:
		s.hi, s.lo = s.lo, p
		s.bracket()
	case !s.brackets:
		s.next = s.expand(&p)
		s.lo = p
		if s.left == 0 || !finite(s.next) {
			return unbounded
		}
		return more
	default:
		if p.df*(s.hi.t-s.lo.t) >= 0 {
			s.hi = s.lo
		}
		s.lo = p
	}
	width := math.Abs(s.hi.t - s.lo.t)
	if s.left <= 0 || width <= 0x1p-50*max(s.lo.t, s.hi.t) {
		return exhausted
	}
	s.next = s.inside(width > .66*s.width[1])
	s.width = [2]float64{width, s.width[0]}
	return more
}

// bracket says that a step is between lo and hi.
func (s *search) bracket() {
	s.brackets, s.width = true, [2]float64{math.Inf(1), math.Inf(1)}
}

// best returns the t of the best point that goes down enough; 0 is none.
func (s *search) best() float64 {
	if s.lo.f < s.from.f {
		return s.lo.t
	}
	return 0
}

// expand goes on beyond p, where it still goes down: to where the minimum seems to
// be, but by 1.1 to 4 times the last step (Moré and Thuente, ACM TOMS 20(3), 1994).
func (s *search) expand(p *point) float64 {
	step := p.t - s.lo.t
	t := s.minimum(&s.lo, p)
	if !(t > p.t) { // also if there is none
		return p.t + 4*step
	}
	return min(max(t, p.t+1.1*step), p.t+4*step)
}

// minimum returns where the loss would have its minimum if it were a cubic, or, if
// values say nothing, where slopes would be 0 if they were on a line.
func (s *search) minimum(a, b *point) float64 {
	if math.Abs(a.f-b.f) <= flat*math.Abs(s.from.f) {
		return a.t - a.df*(b.t-a.t)/(b.df-a.df)
	}
	return cubic(a, b)
}

// inside picks a point of the bracket: where the minimum seems to be, a tenth of
// the bracket away from its ends, or the middle if the bracket shrinks slowly or
// nothing is known of hi.
func (s *search) inside(slow bool) float64 {
	lo, hi := min(s.lo.t, s.hi.t), max(s.lo.t, s.hi.t)
	middle := lo + .5*(hi-lo)
	if slow || !s.hi.finite() {
		return middle
	}
	t := s.minimum(&s.lo, &s.hi)
	if !finite(t) {
		return middle
	}
	return min(max(t, lo+.1*(hi-lo)), hi-.1*(hi-lo))
}

// cubic returns where the cubic through two points with these slopes has its
// minimum (Nocedal and Wright, equation 3.59); NaN if nowhere.
func cubic(a, b *point) float64 {
	d1 := a.df + b.df - 3*(a.f-b.f)/(a.t-b.t)
	d2 := math.Copysign(math.Sqrt(d1*d1-a.df*b.df), b.t-a.t)
	return b.t - (b.t-a.t)*(b.df+d2-d1)/(b.df-a.df+2*d2)
}
