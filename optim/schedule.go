package optim

import "math"

// Course names how the rate changes over the steps of a run.
type Course string

// The courses. Rate documents them.
const (
	Constant    Course = "constant"
	Stairs      Course = "step"
	Cosine      Course = "cosine"
	InverseSqrt Course = "inverse_sqrt"
)

// Schedule says how the learning rate changes from step to step. The zero
// Schedule keeps it. Settings that the kind does not use must be zero.
type Schedule struct {
	// Kind is constant (and so is an empty one), step, cosine or inverse_sqrt.
	Kind Course `yaml:"kind,omitempty" json:"kind,omitempty"`
	// Warmup is the steps in which the rate rises linearly to LR; the course
	// begins after them.
	Warmup int64 `yaml:"warmup,omitempty" json:"warmup,omitempty"`
	// Every is the steps of one stair (step), at least 1; at its end the rate is
	// multiplied with Factor, in (0, 1].
	Every  int64   `yaml:"every,omitempty" json:"every,omitempty"`
	Factor float64 `yaml:"factor,omitempty" json:"factor,omitempty"`
	// Steps is the step, counted from the start of the run, at which the rate
	// has fallen to MinLR (cosine); more than Warmup. It is part of the rule, and
	// not taken from the run, so that servers and resumed runs need not know how
	// long the run is.
	Steps int64 `yaml:"steps,omitempty" json:"steps,omitempty"`
	// MinLR is the rate that a cosine ends with, in [0, LR].
	MinLR float64 `yaml:"min_lr,omitempty" json:"min_lr,omitempty"`
}

// validate reports what is wrong to check.
func (s Schedule) validate(lr float64, check func(ok bool, field string, value any, want string)) {
	switch s.Kind {
	case "", Constant, Stairs, Cosine, InverseSqrt:
	default:
		check(false, "schedule.kind", s.Kind, "constant, step, cosine or inverse_sqrt")
		return
	}
	check(s.Warmup >= 0, "schedule.warmup", s.Warmup, "a number of steps >= 0")
	unused := "it left out, schedule " + string(s.Kind) + " does not use it"
	if s.Kind == Stairs {
		check(s.Every >= 1, "schedule.every", s.Every, "a number of steps >= 1")
		check(s.Factor > 0 && s.Factor <= 1, "schedule.factor", s.Factor, "a number in (0, 1]")
	} else {
		check(s.Every == 0, "schedule.every", s.Every, unused)
		check(s.Factor == 0, "schedule.factor", s.Factor, unused)
	}
	if s.Kind == Cosine {
		check(s.Steps > s.Warmup, "schedule.steps", s.Steps, "the step at which the rate has fallen, more than schedule.warmup")
		check(s.MinLR >= 0 && s.MinLR <= lr, "schedule.min_lr", s.MinLR, "a number in [0, lr]")
	} else {
		check(s.Steps == 0, "schedule.steps", s.Steps, unused)
		check(s.MinLR == 0, "schedule.min_lr", s.MinLR, unused)
	}
}

// Rate returns the learning rate of a step, counted from 0. It depends on the
// rule and the step alone, so workers, servers and resumed runs agree. With
// w = Warmup and u = step - w:
//
//	step < w       LR · (step+1)/w
//	constant       LR
//	step           LR · Factor^⌊u/Every⌋
//	cosine         MinLR + (LR-MinLR) · (1 + cos(π·min(1, u/(Steps-w))))/2
//	inverse_sqrt   LR · √(max(w, 1)/(step+1))
//
// Sources: Loshchilov, Hutter, "SGDR: Stochastic Gradient Descent with Warm
// Restarts", 2017 (cosine, one fall without a restart); Vaswani et al.,
// "Attention Is All You Need", 2017 (inverse_sqrt, scaled to reach LR at the end
// of the warm-up); Goyal et al., "Accurate, Large Minibatch SGD", 2017 (warm-up).
func (r Rule) Rate(step int64) float64 {
	s := r.Schedule
	if step < s.Warmup {
		return r.LR * (float64(step+1) / float64(s.Warmup))
	}
	u := step - s.Warmup
	switch s.Kind {
	case "", Constant:
	case Stairs:
		return r.LR * math.Pow(s.Factor, float64(u/s.Every))
	case Cosine:
		at := min(1, float64(u)/float64(s.Steps-s.Warmup))
		half := (1 + math.Cos(math.Pi*at)) / 2
		return s.MinLR + float64((r.LR-s.MinLR)*half)
	case InverseSqrt:
		return r.LR * math.Sqrt(float64(max(s.Warmup, 1))/float64(step+1))
	}
	return r.LR
}
