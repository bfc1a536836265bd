package optim

import (
	"errors"
	"fmt"
	"math"
)

// What a zero setting means.
const (
	defaultMomentum   = 0.9
	defaultBeta1      = 0.9
	defaultBeta2      = 0.999
	defaultAdagradEps = 1e-10
	defaultAdamEps    = 1e-8
)

// minEps is a bound below which Eps would be 0 in float32, and 0/0 possible.
const minEps = 1e-30

// Slots lists the arrays the rule keeps beside a parameter, in the order Dense
// and Rows expect them: none for sgd, velocity for momentum, accumulator for
// adagrad, m and v for adam. An unknown kind has none.
func (r Rule) Slots() []Slot {
	switch r.Kind {
	case SGD:
		return nil
	case Momentum:
		return []Slot{{Name: "velocity"}}
	case Adagrad:
		return []Slot{{Name: "accumulator", Init: r.InitialAccumulator}}
	case Adam:
		return []Slot{{Name: "m"}, {Name: "v"}}
	}
	return nil
}

// Defaults returns the rule with every setting that its kind uses and that is
// zero replaced by the value that zero stands for.
func (r Rule) Defaults() Rule {
	set := func(field *float64, value float64) {
		if *field == 0 {
			*field = value
		}
	}
	switch r.Kind {
	case SGD:
	case Momentum:
		set(&r.Momentum, defaultMomentum)
	case Adagrad:
		set(&r.Eps, defaultAdagradEps)
	case Adam:
		set(&r.Beta1, defaultBeta1)
		set(&r.Beta2, defaultBeta2)
		set(&r.Eps, defaultAdamEps)
	}
	return r
}

// Validate reports every setting that is out of its range or not used by the
// kind, naming the field as a job file spells it, its value and what is allowed.
func (r Rule) Validate() error {
	switch r.Kind {
	case SGD, Momentum, Adagrad, Adam:
	default:
		return fmt.Errorf("optim: kind is %q: want sgd, momentum, adagrad or adam", r.Kind)
	}
	var errs []error
	check := func(ok bool, field string, value any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("optim: %s is %v: want %s", field, value, want))
		}
	}
	used := func(use bool, zero bool, field string, value any) bool {
		if !use {
			check(zero, field, value, "it left out, rule "+string(r.Kind)+" does not use it")
		}
		return use
	}
	check(finite(r.LR) && r.LR > 0, "lr", r.LR, "a finite number > 0")
	check(atLeastZero(r.L2), "l2", r.L2, "a finite number >= 0")
	if used(r.Kind == Momentum, r.Momentum == 0, "momentum", r.Momentum) {
		check(factor(r.Momentum), "momentum", r.Momentum, "a number in [0, 1), where 0 means 0.9")
	}
	used(r.Kind == Momentum, !r.Nesterov, "nesterov", r.Nesterov)
	if used(r.Kind == Adam, r.Beta1 == 0, "beta1", r.Beta1) {
		check(factor(r.Beta1), "beta1", r.Beta1, "a number in [0, 1), where 0 means 0.9")
	}
	if used(r.Kind == Adam, r.Beta2 == 0, "beta2", r.Beta2) {
		check(factor(r.Beta2), "beta2", r.Beta2, "a number in [0, 1), where 0 means 0.999")
	}
	if used(r.Kind == Adagrad || r.Kind == Adam, r.Eps == 0, "eps", r.Eps) {
		check(r.Eps == 0 || finite(r.Eps) && r.Eps >= minEps, "eps", r.Eps, "a finite number >= 1e-30, or 0 for the rule's default")
	}
	if used(r.Kind == Adagrad, r.InitialAccumulator == 0, "initial_accumulator", r.InitialAccumulator) {
		check(atLeastZero(r.InitialAccumulator), "initial_accumulator", r.InitialAccumulator, "a finite number >= 0")
	}
	return errors.Join(errs...)
}

func finite(v float64) bool      { return !math.IsNaN(v) && !math.IsInf(v, 0) }
func atLeastZero(v float64) bool { return finite(v) && v >= 0 }
func factor(v float64) bool      { return v >= 0 && v < 1 }
