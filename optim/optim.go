// Package optim holds the update rules: pure functions over plain slices,
// dense and by row.
//
// A rule sees the *sum* of the gradient over the examples of a step and their
// total weight; the division happens here, once. It updates
// parameters and slots in place. The same functions run in a worker (serial,
// all-reduce) and on a parameter server, so a strategy cannot change a rule.
//
// Rows of a table are updated lazily: a row that no example of the step
// touched keeps its value and its slots, whatever the rule. Bias correction
// counts steps of the run, not touches of the row.
package optim

// Float is the constraint of parameters and gradients.
type Float interface{ float32 | float64 }

// Kind names an update rule.
type Kind string

// The rules.
const (
	SGD      Kind = "sgd"
	Momentum Kind = "momentum"
	Adagrad  Kind = "adagrad"
	Adam     Kind = "adam"
)

// Rule is an update rule with its settings. Fields that a rule does not use
// must be zero.
type Rule struct {
	Kind Kind `yaml:"kind" json:"kind"`
	// LR is the learning rate; required, > 0.
	LR float64 `yaml:"lr" json:"lr"`
	// L2 adds L2*p to the mean gradient (coupled weight decay); 0 is none. The
	// objective it minimises is mean loss + L2/2 * |p|².
	L2 float64 `yaml:"l2,omitempty" json:"l2,omitempty"`
	// Momentum is the factor of the velocity in [0, 1); rule momentum only; 0 means .9.
	Momentum float64 `yaml:"momentum,omitempty" json:"momentum,omitempty"`
	// Nesterov looks ahead along the velocity; rule momentum only.
	Nesterov bool `yaml:"nesterov,omitempty" json:"nesterov,omitempty"`
	// Beta1 and Beta2 are Adam's decay factors in [0, 1); 0 means .9 and .999.
	Beta1 float64 `yaml:"beta1,omitempty" json:"beta1,omitempty"`
	Beta2 float64 `yaml:"beta2,omitempty" json:"beta2,omitempty"`
	// Eps is added to the root in Adagrad (0 means 1e-10) and Adam (0 means 1e-8).
	Eps float64 `yaml:"eps,omitempty" json:"eps,omitempty"`
	// InitialAccumulator is what Adagrad's slot starts from; 0 is allowed.
	InitialAccumulator float64 `yaml:"initial_accumulator,omitempty" json:"initial_accumulator,omitempty"`
}

// Slot describes one array that a rule keeps beside a parameter, of the same
// shape and dtype.
type Slot struct {
	// Name is the slot's name, "m" for example; a parameter w then has state w/m.
	Name string
	// Init is the value every element starts from.
	Init float64
}
