package job

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/strategy"
)

// Outer is the outer optimizer of localsgd: a step with momentum along what a cycle has
// changed. With Momentum 0 and LR 1 there is none.
type Outer struct {
	Momentum float64 `yaml:"momentum"`
	// LR is the size of its step; 0: 1.
	LR       float64 `yaml:"lr"`
	Nesterov bool    `yaml:"nesterov"`
}

// Averaging says how workers that train copies of their own let them meet.
func (s *Strategy) Averaging() strategy.Averaging {
	return strategy.Averaging{Every: s.Every, Alpha: s.Alpha, Slots: s.Slots, Outer: strategy.Outer(s.Outer)}
}

// completeAveraging fills in the defaults of a kind.
func (s *Strategy) completeAveraging() {
	switch s.Kind {
	case "localsgd":
		if s.Every == 0 {
			s.Every = strategy.LocalSGDEvery
		}
		if s.Slots == "" {
			s.Slots = strategy.KeepSlots
		}
		if s.Outer.LR == 0 {
			s.Outer.LR = 1
		}
	case "sma":
		if s.Every == 0 {
			s.Every = strategy.SMAEvery
		}
		if s.Alpha == 0 {
			s.Alpha = strategy.SMAAlpha
		}
	}
}

// validateAveraging refuses settings of another kind, and those out of range.
func (j *Job) validateAveraging() error {
	s := &j.Strategy
	local, sma := s.Kind == "localsgd", s.Kind == "sma"
	if !local && !sma && !slices.Contains(strategy.Names(), s.Kind) {
		return nil // what it takes is its own affair
	}
	for _, c := range []struct {
		bad   bool
		field string
		fix   string
	}{
		{s.Every != 0 && !local && !sma, "every", "is of localsgd and sma, not of " + s.Kind + ": leave it out, or set strategy.kind"},
		{s.Alpha != 0 && !sma, "alpha", "is of sma, not of " + s.Kind + ": leave it out, or set strategy.kind=sma"},
		{s.Slots != "" && !local, "slots", "is of localsgd, not of " + s.Kind + ": leave it out, or set strategy.kind=localsgd"},
		{s.Outer != Outer{} && !local, "outer", "is of localsgd, not of " + s.Kind + ": leave it out, or set strategy.kind=localsgd"},
		{(local || sma) && (s.Every < 1 || s.Every > strategy.EveryMax), "every", fmt.Sprintf("must be 1 to %d steps, is %d", strategy.EveryMax, s.Every)},
		{sma && !(s.Alpha > 0 && s.Alpha <= 1), "alpha", fmt.Sprintf("must be more than 0 and at most 1, is %g", s.Alpha)},
		{local && !slices.Contains(strategy.AllSlots(), s.Slots), "slots", fmt.Sprintf("%q is not known: set average, keep or reset", s.Slots)},
		{!(s.Outer.Momentum >= 0 && s.Outer.Momentum < 1), "outer.momentum", fmt.Sprintf("must be 0 or more and less than 1, is %g", s.Outer.Momentum)},
		{local && !(s.Outer.LR > 0 && s.Outer.LR <= strategy.OuterLRMax), "outer.lr", fmt.Sprintf("must be more than 0 and at most %d, is %g", strategy.OuterLRMax, s.Outer.LR)},
		{(local || sma) && j.Batch < s.Workers, "workers", fmt.Sprintf("are %d for a batch of %d rows: a worker without rows trains nothing; set batch to %d at least", s.Workers, j.Batch, s.Workers)},
	} {
		if c.bad {
			return &FieldError{"strategy." + c.field, c.fix}
		}
	}
	return nil
}
