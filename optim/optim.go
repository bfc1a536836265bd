// Package optim holds the update rules: pure functions over plain slices,
// dense and by row.
//
// A rule sees the *sum* of the gradient over the examples of a step and their
// total weight; the division happens here, once. It updates
// parameters and slots in place. The same functions run in a worker (serial,
// all-reduce) and on a parameter server, so a strategy cannot change a rule.
//
// Rows of a table are updated lazily: a row that no example of the step
// touched keeps its value and its slots, whatever the rule: neither momentum nor
// weight decay moves it. Bias correction and schedules count steps of the run,
// not touches of the row.
package optim

// Float is the constraint of parameters and gradients.
type Float interface{ float32 | float64 }

// Kind names an update rule.
type Kind string

// The rules. Dense documents what each does to an element.
const (
	SGD      Kind = "sgd"
	Momentum Kind = "momentum" // Nesterov is a flag of it
	Adagrad  Kind = "adagrad"
	RMSProp  Kind = "rmsprop"
	Adam     Kind = "adam"  // AMSGrad is a flag of it
	AdamW    Kind = "adamw" // Adam with decoupled weight decay
	FTRL     Kind = "ftrl"  // FTRL-proximal
	LAMB     Kind = "lamb"
)

// Kinds returns the rules there are.
func Kinds() []Kind { return []Kind{SGD, Momentum, Adagrad, RMSProp, Adam, AdamW, FTRL, LAMB} }

// Rule is an update rule with its settings. Settings that the kind does not
// use must be zero; Validate says which.
type Rule struct {
	Kind Kind `yaml:"kind" json:"kind"`
	// LR is the learning rate before the schedule (the alpha of FTRL); required, > 0.
	LR float64 `yaml:"lr" json:"lr"`
	// L2 adds L2*p to the mean gradient (coupled weight decay); 0 is none. The
	// objective it minimises is mean loss + L2/2 * |p|². Not for adamw and lamb.
	// In ftrl it is the strength of the term L2/2 * |p|² of a whole run, which
	// is not repeated each step.
	L2 float64 `yaml:"l2,omitempty" json:"l2,omitempty"`
	// L1 is the strength of |p| in ftrl: it makes weights exactly zero.
	L1 float64 `yaml:"l1,omitempty" json:"l1,omitempty"`
	// WeightDecay takes rate*WeightDecay*p off p apart from the gradient
	// (decoupled weight decay); momentum and adamw, where 0 means 0 and .01. In
	// lamb WeightDecay*p is part of the direction; 0 means 0.
	WeightDecay float64 `yaml:"weight_decay,omitempty" json:"weight_decay,omitempty"`
	// Momentum is the factor of the velocity in [0, 1): in momentum, where 0
	// means .9, and in rmsprop, where 0 keeps no velocity.
	Momentum float64 `yaml:"momentum,omitempty" json:"momentum,omitempty"`
	// Dampening takes this part off the gradient that enters the velocity, from
	// the first step on; in [0, 1); momentum without Nesterov.
	Dampening float64 `yaml:"dampening,omitempty" json:"dampening,omitempty"`
	// Nesterov looks ahead along the velocity; momentum only.
	Nesterov bool `yaml:"nesterov,omitempty" json:"nesterov,omitempty"`
	// Decay is the factor of rmsprop's averages in [0, 1); 0 means .99.
	Decay float64 `yaml:"decay,omitempty" json:"decay,omitempty"`
	// Centered divides by the deviation of the gradient instead of its root mean
	// square; rmsprop only.
	Centered bool `yaml:"centered,omitempty" json:"centered,omitempty"`
	// Beta1 and Beta2 are the decay factors of adam, adamw and lamb in [0, 1);
	// 0 means .9 and .999.
	Beta1 float64 `yaml:"beta1,omitempty" json:"beta1,omitempty"`
	Beta2 float64 `yaml:"beta2,omitempty" json:"beta2,omitempty"`
	// AMSGrad divides by the largest second moment so far; adam and adamw.
	AMSGrad bool `yaml:"amsgrad,omitempty" json:"amsgrad,omitempty"`
	// Eps is added to the root; 0 means 1e-10 in adagrad, 1e-8 in rmsprop, adam
	// and adamw, 1e-6 in lamb.
	Eps float64 `yaml:"eps,omitempty" json:"eps,omitempty"`
	// InitialAccumulator is what the sum of squares of adagrad and ftrl starts
	// from; 0 is allowed.
	InitialAccumulator float64 `yaml:"initial_accumulator,omitempty" json:"initial_accumulator,omitempty"`
	// LRDecay divides adagrad's rate by 1 + LRDecay*step; 0 is none.
	LRDecay float64 `yaml:"lr_decay,omitempty" json:"lr_decay,omitempty"`
	// Beta is what ftrl adds to the root of the sum of squares; 0 means 1.
	Beta float64 `yaml:"beta,omitempty" json:"beta,omitempty"`
	// LRPower is the power of ftrl's sum of squares that the rate falls by, in
	// [-1, 0); 0 means -.5, the inverse square root.
	LRPower float64 `yaml:"lr_power,omitempty" json:"lr_power,omitempty"`
	// ClipValue bounds every element of the mean gradient to [-ClipValue,
	// ClipValue], before L2 is added; 0 is no bound.
	ClipValue float64 `yaml:"clip_value,omitempty" json:"clip_value,omitempty"`
	// ClipNorm scales the mean gradient of a step, over all parameters together,
	// down to this norm where it is longer, before L2 is added; 0 is no bound.
	// Dense and Rows do not see all parameters: whoever does calls Divisor.
	ClipNorm float64 `yaml:"clip_norm,omitempty" json:"clip_norm,omitempty"`
	// Schedule says how the rate changes from step to step; not for ftrl, which
	// has a rate of its own for every element.
	Schedule Schedule `yaml:"schedule,omitempty" json:"schedule,omitzero"`
	// ScaleWith is the global batch that LR is meant for: Scaled multiplies the
	// rate with batch/ScaleWith. 0 leaves the rate as it is.
	ScaleWith int `yaml:"scale_with,omitempty" json:"scale_with,omitempty"`
	// Custom applies the rule in place of those that are here; nil for these.
	Custom *Custom `yaml:"-" json:"-"`
}

// Slot describes one array that a rule keeps beside a parameter, of the same
// shape and dtype.
type Slot struct {
	// Name is the slot's name, "m" for example; a parameter w then has state w/m.
	Name string
	// Init is the value every element starts from.
	Init float64
}
