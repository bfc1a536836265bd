package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// minEps is a bound below which Eps would be 0 in float32, and 0/0 possible.
const minEps = 1e-30

// uses lists the settings of a kind beside those that every kind has, by the
// names of a job file; nil if there is no such kind.
func (k Kind) uses() []string {
	switch k {
	case SGD:
		return []string{"l2"}
	case Momentum:
		return []string{"l2", "momentum", "dampening", "nesterov", "weight_decay"}
	case Adagrad:
		return []string{"l2", "eps", "initial_accumulator", "lr_decay"}
	case RMSProp:
		return []string{"l2", "decay", "eps", "centered", "momentum"}
	case Adam:
		return []string{"l2", "beta1", "beta2", "eps", "amsgrad"}
	case AdamW:
		return []string{"weight_decay", "beta1", "beta2", "eps", "amsgrad"}
	case FTRL:
		return []string{"l1", "l2", "beta", "lr_power", "initial_accumulator"}
	case LAMB:
		return []string{"weight_decay", "beta1", "beta2", "eps"}
	}
	return nil
}

// setting is a field with what is allowed for it.
type setting struct {
	field string
	value any
	zero  bool // it is left out
	ok    bool
	want  string
}

func number(field string, v float64, ok bool, want string) setting {
	return setting{field, v, v == 0, ok, want}
}

func flag(field string, v bool) setting { return setting{field, v, !v, true, ""} }

// What numbers must be.
const (
	wantPositive = "a finite number > 0"
	wantNotLess  = "a finite number >= 0"
	wantFactor   = "a number in [0, 1)"
)

// settings lists what only some kinds use.
func (r *Rule) settings() []setting {
	zeroMeans := func(v float64) string {
		if r.Custom != nil {
			return wantFactor // what 0 means is up to it
		}
		return fmt.Sprintf("%s, where 0 means %v", wantFactor, v)
	}
	momentum := zeroMeans(defaultMomentum)
	if r.Kind == RMSProp {
		momentum = wantFactor
	}
	return []setting{
		number("l2", r.L2, atLeastZero(r.L2), wantNotLess),
		number("l1", r.L1, atLeastZero(r.L1), wantNotLess),
		number("weight_decay", r.WeightDecay, atLeastZero(r.WeightDecay), wantNotLess),
		number("momentum", r.Momentum, factor(r.Momentum), momentum),
		number("dampening", r.Dampening, factor(r.Dampening) && !(r.Nesterov && r.Dampening > 0), wantFactor+", and 0 with nesterov"),
		flag("nesterov", r.Nesterov),
		number("decay", r.Decay, factor(r.Decay), zeroMeans(defaultDecay)),
		flag("centered", r.Centered),
		number("beta1", r.Beta1, factor(r.Beta1), zeroMeans(defaultBeta1)),
		number("beta2", r.Beta2, factor(r.Beta2), zeroMeans(defaultBeta2)),
		flag("amsgrad", r.AMSGrad),
		number("eps", r.Eps, r.Eps == 0 || finite(r.Eps) && r.Eps >= minEps, "a finite number >= 1e-30, or 0 for the rule's default"),
		number("initial_accumulator", r.InitialAccumulator, atLeastZero(r.InitialAccumulator), wantNotLess),
		number("lr_decay", r.LRDecay, atLeastZero(r.LRDecay), wantNotLess),
		number("beta", r.Beta, r.Beta == 0 || finite(r.Beta) && r.Beta >= minEps, "a finite number >= 1e-30, or 0 for 1"),
		number("lr_power", r.LRPower, r.LRPower >= -1 && r.LRPower <= 0, "a number in [-1, 0], where 0 means -0.5"),
	}
}

// Validate reports every setting that is out of its range or not used by the
// kind, naming the field as a job file spells it, its value and what is allowed.
func (r Rule) Validate() error {
	uses := r.Kind.uses()
	if r.Custom != nil {
		if r.Custom.Name != r.Kind {
			return fmt.Errorf("optim: kind is %q of custom rule %q", r.Kind, r.Custom.Name)
		}
		uses = r.Custom.Uses
	} else if uses == nil {
		var known []string
		for _, k := range Kinds() {
			known = append(known, string(k))
		}
		last := len(known) - 1
		return fmt.Errorf("optim: kind is %q: want %s or %s", r.Kind, strings.Join(known[:last], ", "), known[last])
	}
	var errs []error
	check := func(ok bool, field string, value any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("optim: %s is %v: want %s", field, value, want))
		}
	}
	check(finite(r.LR) && r.LR > 0, "lr", r.LR, wantPositive)
	for _, s := range r.settings() {
		if slices.Contains(uses, s.field) {
			check(s.ok, s.field, s.value, s.want)
		} else {
			check(s.zero, s.field, s.value, "it left out, rule "+string(r.Kind)+" does not use it")
		}
	}
	check(atLeastZero(r.ClipValue), "clip_value", r.ClipValue, wantNotLess)
	check(atLeastZero(r.ClipNorm), "clip_norm", r.ClipNorm, wantNotLess)
	check(r.ClipValue == 0 || r.ClipNorm == 0, "clip_norm", r.ClipNorm, "it left out beside clip_value")
	check(r.ScaleWith >= 0, "scale_with", r.ScaleWith, "the batch that lr is meant for, or 0")
	check(r.Kind != FTRL || r.Schedule == (Schedule{}), "schedule", fmt.Sprintf("%+v", r.Schedule), "it left out, rule ftrl has a rate of its own for every element")
	r.Schedule.validate(r.LR, check)
	return errors.Join(errs...)
}

func finite(v float64) bool      { return !math.IsNaN(v) && !math.IsInf(v, 0) }
func atLeastZero(v float64) bool { return finite(v) && v >= 0 }
func factor(v float64) bool      { return v >= 0 && v < 1 }
