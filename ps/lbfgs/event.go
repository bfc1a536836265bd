package lbfgs

import (
	"errors"
	"fmt"

	"github.com/gangline/gangline/ps/vector"
)

// What failures wrap.
var (
	// ErrUsage: an event that the machine does not wait for.
	ErrUsage = errors.New("protocol error")
	// ErrNotFinite: the loss or its gradient is not finite where the search begins.
	ErrNotFinite = errors.New("not finite")
	// ErrUnbounded: the loss falls without end.
	ErrUnbounded = errors.New("no minimum")
)

// MemoryMax bounds the history; the number of a pair has two digits.
const MemoryMax = 99

// Config says how to search. Fields at zero have the default that is named.
type Config struct {
	// Memory is how many pairs the history has: 10.
	Memory int
	// L2 is the factor of x.x/2 in the objective. 0 is none.
	L2 float64
	// GradTolerance ends the search when the Euclidean norm of the gradient is not
	// larger. 0 is never.
	GradTolerance float64
	// Tolerance ends it when an iteration lowers the objective by no more than this
	// part of it. 0 is never.
	Tolerance float64
	// MaxIterations is 1000, MaxEvaluations 2 MaxIterations + MaxSearch, MaxSearch,
	// the most evaluations of one line search, 20.
	MaxIterations, MaxEvaluations, MaxSearch int
	// C1 and C2 are those of the Wolfe conditions, 0 < C1 < C2 < 1 and C1 < 1/2: 1e-4
	// and .9.
	C1, C2 float64
	// Portions is of how many portions an evaluation consists; there is no default.
	Portions int
	// After is the largest number of a command that the servers have done, if another
	// coordinator was there before: commands and evaluations have larger ones.
	After uint64
}

// Vectors returns how many vectors a server must be able to hold: x, g, d, x0, g0,
// and s and y of one pair more than Memory.
func (c *Config) Vectors() int { return 5 + 2*(c.filled().Memory+1) }

// filled returns the configuration with its defaults.
func (c *Config) filled() Config {
	f := *c
	for _, d := range []struct {
		field *int
		value int
	}{{&f.Memory, 10}, {&f.MaxIterations, 1000}, {&f.MaxSearch, 20}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if f.MaxEvaluations == 0 {
		f.MaxEvaluations = 2*f.MaxIterations + f.MaxSearch
	}
	if f.C1 == 0 {
		f.C1 = 1e-4
	}
	if f.C2 == 0 {
		f.C2 = .9
	}
	return f
}

func (c *Config) validate() error {
	switch {
	case c.Memory < 1 || c.Memory > MemoryMax:
		return fmt.Errorf("lbfgs: memory must be 1 to %d, is %d", MemoryMax, c.Memory)
	case !(c.L2 >= 0) || !(c.GradTolerance >= 0) || !(c.Tolerance >= 0) || !finite(c.L2):
		return fmt.Errorf("lbfgs: l2 and tolerances must not be negative: l2 %g, grad_tolerance %g, tolerance %g",
			c.L2, c.GradTolerance, c.Tolerance)
	case c.MaxIterations < 1 || c.MaxEvaluations < 1 || c.MaxSearch < 1:
		return fmt.Errorf("lbfgs: limits must be positive: %d iterations, %d evaluations, %d of a line search",
			c.MaxIterations, c.MaxEvaluations, c.MaxSearch)
	case !(0 < c.C1 && c.C1 < c.C2 && c.C2 < 1 && c.C1 < .5):
		return fmt.Errorf("lbfgs: 0 < c1 < c2 < 1 and c1 < 1/2 must hold, c1 is %g and c2 %g", c.C1, c.C2)
	case c.Portions < 1 || c.Portions > vector.PortionsMax:
		return fmt.Errorf("lbfgs: portions must be 1 to %d, is %d", vector.PortionsMax, c.Portions)
	}
	return nil
}

// EventKind is what happened.
type EventKind uint8

// The events.
const (
	// EventStart begins. Vector x is on the servers.
	EventStart EventKind = iota + 1
	// EventEvaluated answers an ActionEvaluate: Loss and Weight are the sums over all
	// portions, and g is complete.
	EventEvaluated
	// EventDotted answers a command of dots.
	EventDotted
)

// Event is something that happened.
type Event struct {
	Kind EventKind
	// Evaluation is the number that the action had.
	Evaluation   uint64
	Loss, Weight float64
	// Number is that of the command, Dots the products over all servers, in the order
	// of its pairs.
	Number uint64
	Dots   []float64
}

// ActionKind is what the shell has to do.
type ActionKind uint8

// The actions.
const (
	// ActionDo lets every server do Command; of dots the answer is wanted.
	ActionDo ActionKind = iota + 1
	// ActionEvaluate lets the workers compute Evaluation at x.
	ActionEvaluate
	// ActionDone: x is the Result.
	ActionDone
	// ActionFail ends the search with Err. x is where it was last.
	ActionFail
	// ActionRefuse: an event made no sense, see Err; nothing changed.
	ActionRefuse
)

// Action is something the shell has to do.
type Action struct {
	Kind       ActionKind
	Command    *vector.Command
	Evaluation uint64
	Result     Result
	Err        error
}

// Reason is why a search ended.
type Reason uint8

// The reasons.
const (
	// GradientSmall: the norm of the gradient is within GradTolerance.
	GradientSmall Reason = iota + 1
	// DecreaseSmall: the last iteration did not lower the objective by Tolerance.
	DecreaseSmall
	// IterationLimit and EvaluationLimit: the limits of Config.
	IterationLimit
	EvaluationLimit
	// Stalled: no step along the gradient lowers the objective, as happens when its
	// rounding errors are larger than what there is to gain.
	Stalled
)

// String returns the reason in words.
func (r Reason) String() string {
	names := [...]string{
		"running", "the gradient is small", "the objective hardly falls", "limit of iterations",
		"limit of evaluations", "no step lowers the objective",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Result is where a search is, or ended.
type Result struct {
	Reason Reason
	// Objective is f(x), GradNorm the Euclidean norm of its gradient.
	Objective, GradNorm float64
	// Iterations are accepted steps, Evaluations passes over the data.
	Iterations, Evaluations int
	// Skipped are pairs without curvature, Restarts how often the history was
	// dropped, NotFinite the evaluations that were not finite.
	Skipped, Restarts, NotFinite int
}
