package optim

import (
	"errors"
	"fmt"
	"slices"
)

// What a zero setting means.
const (
	defaultMomentum    = 0.9
	defaultDecay       = 0.99
	defaultBeta1       = 0.9
	defaultBeta2       = 0.999
	defaultWeightDecay = 0.01 // adamw
	defaultAdagradEps  = 1e-10
	defaultEps         = 1e-8 // rmsprop, adam, adamw
	defaultLAMBEps     = 1e-6
	defaultBeta        = 1
	defaultLRPower     = -0.5
)

// Slots lists the arrays the rule keeps beside a parameter, in the order Dense
// and Rows expect them: none for sgd, velocity for momentum, accumulator for
// adagrad, square for rmsprop (then mean if centered, velocity if it has
// momentum), m and v for adam, adamw and lamb (then vmax with AMSGrad), z and
// accumulator for ftrl, and those of a custom rule. An unknown kind has none.
func (r Rule) Slots() []Slot {
	if r.Custom != nil {
		return slices.Clone(r.Custom.Slots)
	}
	switch r.Kind {
	case SGD:
		return nil
	case Momentum:
		return []Slot{{Name: "velocity"}}
	case Adagrad:
		return []Slot{{Name: "accumulator", Init: r.InitialAccumulator}}
	case RMSProp:
		s := []Slot{{Name: "square"}}
		if r.Centered {
			s = append(s, Slot{Name: "mean"})
		}
		if r.Momentum > 0 {
			s = append(s, Slot{Name: "velocity"})
		}
		return s
	case Adam, AdamW:
		s := []Slot{{Name: "m"}, {Name: "v"}}
		if r.AMSGrad {
			s = append(s, Slot{Name: "vmax"})
		}
		return s
	case LAMB:
		return []Slot{{Name: "m"}, {Name: "v"}}
	case FTRL:
		return []Slot{{Name: "z"}, {Name: "accumulator", Init: r.InitialAccumulator}}
	}
	return nil
}

// slotCount is the length of Slots, without making it.
func (r *Rule) slotCount() int {
	if r.Custom != nil {
		return len(r.Custom.Slots)
	}
	n := 0
	switch r.Kind {
	case SGD:
	case Momentum, Adagrad:
		n = 1
	case RMSProp:
		n = 1
		if r.Centered {
			n++
		}
		if r.Momentum > 0 {
			n++
		}
	case Adam, AdamW, FTRL, LAMB:
		n = 2
		if r.AMSGrad {
			n++
		}
	}
	return n
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
	case RMSProp:
		set(&r.Decay, defaultDecay)
		set(&r.Eps, defaultEps)
	case AdamW, Adam:
		set(&r.Beta1, defaultBeta1)
		set(&r.Beta2, defaultBeta2)
		set(&r.Eps, defaultEps)
		if r.Kind == AdamW {
			set(&r.WeightDecay, defaultWeightDecay)
		}
	case LAMB:
		set(&r.Beta1, defaultBeta1)
		set(&r.Beta2, defaultBeta2)
		set(&r.Eps, defaultLAMBEps)
	case FTRL:
		set(&r.Beta, defaultBeta)
		set(&r.LRPower, defaultLRPower)
	}
	return r
}

// Scaled returns the rule for a global batch: with ScaleWith set, LR and the
// schedule's MinLR are multiplied with batch/ScaleWith (linear scaling: Goyal et
// al., "Accurate, Large Minibatch SGD", 2017), and ScaleWith is 0. Without it,
// the rule is returned as it is.
func (r Rule) Scaled(batch int) Rule {
	if r.ScaleWith == 0 {
		return r
	}
	factor := float64(batch) / float64(r.ScaleWith)
	r.LR *= factor
	r.Schedule.MinLR *= factor
	r.ScaleWith = 0
	return r
}

// Separable returns nil if the rule may be applied to ranges of a parameter in
// different places, as servers do, and otherwise an error that says why not and
// what else to set.
func (r Rule) Separable() error {
	switch {
	case r.Kind == LAMB:
		return errors.New("optim: lamb divides by the norm of a whole parameter, of which servers hold ranges: set kind adamw, or a strategy without servers")
	case r.ClipNorm > 0:
		return errors.New("optim: clip_norm needs the norm of the summed gradient over all parameters, of which no server sees more than its own: set clip_value, or a strategy without servers")
	}
	return nil
}

// Penalty is the factor of |p|²/2 in the objective that training minimises
// beside the mean loss: L2, but for ftrl, whose L2 counts once for the run.
func (r Rule) Penalty() float64 {
	if r.Kind == FTRL {
		return 0
	}
	return r.L2
}

// Ready returns an error unless the rule is valid and the batch has been
// settled: an update does not know how large it is.
func (r Rule) Ready() error {
	if r.ScaleWith != 0 {
		return fmt.Errorf("optim: scale_with is %d: call Scaled with the batch first", r.ScaleWith)
	}
	return r.Validate()
}
