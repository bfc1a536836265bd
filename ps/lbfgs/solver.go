package lbfgs

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/ps/vector"
)

// phase is what the machine waits for.
type phase uint8

const (
	idle      phase = iota // the start
	beginning              // the evaluation where the search begins
	sizing                 // its dots
	trying                 // the evaluation of a step
	judging                // its dots
	pairing                // the dots of a new pair
	aiming                 // the slope of a new direction
	ended
)

// Solver is the machine. It is not safe for concurrent use.
//
// Guarantees: (1) after each Step that does not end the search it waits for one
// event; (2) what it sends and receives depends on Memory, the number of
// evaluations and of iterations, not on the length of the vectors; (3) the
// objective at the end is the least of all points that were accepted, but for
// rounding, and x and Result belong together.
type Solver struct {
	cfg    Config
	phase  phase
	number uint64 // of the last command
	waits  uint64 // number of the evaluation or command that is waited for

	history history
	search  *search
	slot    int           // of the pair that is being made
	pairs   []vector.Pair // that are waited for
	step    float64       // that is tried
	settle  bool          // it is taken whatever the conditions say
	loss    float64       // of the step that is tried, without L2
	last    Result        // at x0

	actions []Action
	why     string
}

// New makes a solver.
func New(cfg Config) (*Solver, error) {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Solver{cfg: cfg, number: cfg.After, history: newHistory(cfg.Memory)}, nil
}

// Result returns where the search is: at the last step that was accepted.
func (s *Solver) Result() Result { return s.last }

// Step takes one event. The actions are valid until the next Step, the sentence
// says what was decided. It costs O(Memory^2).
func (s *Solver) Step(ev Event) (actions []Action, why string) {
	s.actions, s.why = nil, ""
	if err := s.fits(&ev); err != nil {
		s.say("refused: %v", err)
		return []Action{{Kind: ActionRefuse, Err: err}}, s.why
	}
	switch s.phase {
	case idle:
		s.do(vector.Command{Op: vector.OpBegin, Dst: "x"})
		s.evaluate(beginning)
		s.say("evaluates where it begins")
	case beginning, trying:
		s.evaluated(&ev)
	case sizing:
		s.begin(ev.Dots)
	case judging:
		s.judge(ev.Dots)
	case pairing:
		s.pair(ev.Dots)
	case aiming:
		s.aim(ev.Dots)
	case ended: // refused
	}
	return s.actions, s.why
}

func (s *Solver) say(format string, args ...any) { s.why = fmt.Sprintf(format, args...) }

// fits says what is wrong with an event.
func (s *Solver) fits(ev *Event) error {
	switch s.phase {
	case ended:
		return fmt.Errorf("lbfgs: %w: the search has ended", ErrUsage)
	case idle:
		if ev.Kind != EventStart {
			return fmt.Errorf("lbfgs: %w: it begins with a start, got event %d", ErrUsage, ev.Kind)
		}
	case beginning, trying:
		if ev.Kind != EventEvaluated || ev.Evaluation != s.waits {
			return fmt.Errorf("lbfgs: %w: waits for evaluation %d, got event %d of evaluation %d", ErrUsage, s.waits, ev.Kind, ev.Evaluation)
		}
		if !(ev.Weight > 0) || math.IsInf(ev.Weight, 0) {
			return fmt.Errorf("lbfgs: %w: the weight of evaluation %d must be positive, is %g: is there no data?", ErrUsage, s.waits, ev.Weight)
		}
	case sizing, judging, pairing, aiming:
		if ev.Kind != EventDotted || ev.Number != s.waits || len(ev.Dots) != len(s.pairs) {
			return fmt.Errorf("lbfgs: %w: waits for %d dots of command %d, got event %d with %d dots of command %d",
				ErrUsage, len(s.pairs), s.waits, ev.Kind, len(ev.Dots), ev.Number)
		}
	}
	return nil
}

// do sends a command.
func (s *Solver) do(c vector.Command) {
	s.number++
	c.Number = s.number
	s.actions = append(s.actions, Action{Kind: ActionDo, Command: &c})
}

// dots asks for dot products, and waits.
func (s *Solver) dots(next phase, pairs ...vector.Pair) {
	s.do(vector.Command{Op: vector.OpDots, Pairs: pairs})
	s.phase, s.waits, s.pairs = next, s.number, pairs
}

// evaluate asks for loss and gradient at x, and waits.
func (s *Solver) evaluate(next phase) {
	id := s.number + 1 // that of the command that begins to gather
	s.do(vector.Command{Op: vector.OpGather, Dst: "g", Evaluation: id, Portions: s.cfg.Portions})
	s.actions = append(s.actions, Action{Kind: ActionEvaluate, Evaluation: id})
	s.phase, s.waits = next, id
	s.last.Evaluations++
}

func (s *Solver) done(r Reason) {
	s.last.Reason, s.phase = r, ended
	s.actions = append(s.actions, Action{Kind: ActionDone, Result: s.last})
	s.say("%v: objective %.10g, gradient %.3g after %d iterations", r, s.last.Objective, s.last.GradNorm, s.last.Iterations)
}

func (s *Solver) fail(err error) {
	s.phase = ended
	err = fmt.Errorf("lbfgs: iteration %d, evaluation %d: %w", s.last.Iterations, s.last.Evaluations, err)
	s.actions = append(s.actions, Action{Kind: ActionFail, Err: err})
	s.say("%v", err)
}

// evaluated takes the loss at x, and makes g the gradient of the objective.
func (s *Solver) evaluated(ev *Event) {
	s.loss = ev.Loss / ev.Weight
	if !finite(s.loss) {
		s.notFinite(fmt.Errorf("%w: the loss is %g", ErrNotFinite, ev.Loss))
		return
	}
	terms := []vector.Term{{A: 1 / ev.Weight, V: "g"}}
	if s.cfg.L2 > 0 {
		terms = append(terms, vector.Term{A: s.cfg.L2, V: "x"})
	}
	s.do(vector.Command{Op: vector.OpCombine, Dst: "g", Terms: terms})
	next, pairs := sizing, []vector.Pair{{"g", "g"}, {"x", "x"}}
	if s.phase == trying {
		next, pairs = judging, append(pairs, vector.Pair{"g", "d"})
	}
	s.dots(next, pairs...)
	s.say("loss %.10g, asks for the size of the gradient", s.loss)
}

// objective is the objective at x, once the square of x is known.
func (s *Solver) objective(square float64) float64 { return s.loss + s.cfg.L2/2*square }

// notFinite ends the search where it begins, and a step otherwise.
func (s *Solver) notFinite(err error) {
	s.last.NotFinite++
	if s.phase == beginning || s.phase == sizing {
		s.fail(fmt.Errorf("%w, where the search begins: begin elsewhere", err))
		return
	}
	s.tell(point{t: s.step, f: math.NaN(), df: math.NaN()})
}

// begin takes the dots where the search begins.
func (s *Solver) begin(dots []float64) {
	f := s.objective(dots[1])
	if !finite(f) || !finite(dots[0]) {
		s.notFinite(fmt.Errorf("%w: the objective is %g, the square of its gradient %g", ErrNotFinite, f, dots[0]))
		return
	}
	s.last.Objective, s.last.GradNorm = f, math.Sqrt(dots[0])
	s.history.learn(s.pairs, dots)
	if s.last.GradNorm <= s.cfg.GradTolerance || dots[0] == 0 {
		s.done(GradientSmall)
		return
	}
	s.keep()
	s.head()
}

// keep makes x and g what steps start from.
func (s *Solver) keep() {
	s.do(vector.Command{Op: vector.OpCopy, Dst: "x0", Src: "x"})
	s.do(vector.Command{Op: vector.OpCopy, Dst: "g0", Src: "g"})
}

// head makes the direction from the history, and asks for its slope. g is the
// gradient at x0.
func (s *Solver) head() {
	s.do(vector.Command{Op: vector.OpCombine, Dst: "d", Terms: s.history.direction()})
	s.dots(aiming, vector.Pair{"g", "d"})
	s.say("asks for the slope of a direction from %d pairs", len(s.history.pairs))
}

// aim takes the slope of the direction, and tries the first step.
func (s *Solver) aim(dots []float64) {
	if !(dots[0] < 0) || !finite(dots[0]) {
		s.restart(fmt.Sprintf("the slope is %g", dots[0]))
		return
	}
	first := 1.
	if len(s.history.pairs) == 0 { // the length of the gradient says nothing about steps
		first = min(1, 1/s.last.GradNorm)
	}
	s.search = newSearch(&s.cfg, point{f: s.last.Objective, df: dots[0]}, first)
	s.settle = false
	s.try(first)
}

// try evaluates a step.
func (s *Solver) try(t float64) {
	if s.last.Evaluations >= s.cfg.MaxEvaluations {
		s.back()
		s.done(EvaluationLimit)
		return
	}
	s.step = t
	s.do(vector.Command{Op: vector.OpCombine, Dst: "x", Terms: []vector.Term{{A: 1, V: "x0"}, {A: t, V: "d"}}})
	s.evaluate(trying)
	s.say("tries step %g", t)
}

// back goes back to where steps start from.
func (s *Solver) back() {
	s.do(vector.Command{Op: vector.OpCopy, Dst: "x", Src: "x0"})
	s.do(vector.Command{Op: vector.OpCopy, Dst: "g", Src: "g0"})
}

// judge takes the dots of a step.
func (s *Solver) judge(dots []float64) {
	p := point{t: s.step, f: s.objective(dots[1]), df: dots[2]}
	if !p.finite() || !finite(dots[0]) {
		s.notFinite(ErrNotFinite)
		return
	}
	if s.settle || s.search.accepts(&p) {
		s.accept(&p, dots[0])
		return
	}
	s.tell(p)
}

// tell lets the line search look at a step that is not good enough.
func (s *Solver) tell(p point) {
	if s.settle { // the very step that was finite before
		s.restart("a step gave another loss the second time")
		return
	}
	switch s.search.tell(p) {
	case more:
		s.try(s.search.next)
	case exhausted:
		best := s.search.best()
		if best == 0 {
			s.restart("no step lowers the objective")
			return
		}
		s.settle = true
		s.try(best)
	case unbounded:
		s.back()
		s.fail(fmt.Errorf("%w: the objective still falls, to %g, at step %g", ErrUnbounded, p.f, p.t))
	case accepted:
		panic("lbfgs: a step that was not accepted is")
	}
}

// restart drops the history and goes down the gradient; if that was the direction
// already, the search ends.
func (s *Solver) restart(because string) {
	s.back()
	if len(s.history.pairs) == 0 {
		s.done(Stalled)
		return
	}
	s.history.drop()
	s.last.Restarts++
	s.head()
	s.say("%s: drops the history", because)
}

// accept takes a step: the search ends, or a new pair is made.
func (s *Solver) accept(p *point, square float64) {
	before := s.last.Objective
	s.last.Objective, s.last.GradNorm = p.f, math.Sqrt(square)
	s.last.Iterations++
	switch {
	case s.last.GradNorm <= s.cfg.GradTolerance || square == 0:
		s.done(GradientSmall)
		return
	case s.cfg.Tolerance > 0 && before-p.f <= s.cfg.Tolerance*max(math.Abs(before), math.Abs(p.f)):
		s.done(DecreaseSmall)
		return
	case s.last.Iterations >= s.cfg.MaxIterations:
		s.done(IterationLimit)
		return
	}
	s.slot = s.history.spare()
	s.subtract(sName(s.slot), "x", "x0")
	s.subtract(yName(s.slot), "g", "g0")
	s.keep()
	s.dots(pairing, s.history.asked(s.slot)...)
	s.say("takes step %g: objective %.10g, gradient %.3g", p.t, p.f, s.last.GradNorm)
}

func (s *Solver) subtract(dst, a, b string) {
	s.do(vector.Command{Op: vector.OpCombine, Dst: dst, Terms: []vector.Term{{A: 1, V: a}, {A: -1, V: b}}})
}

// pair takes the dots of a new pair.
func (s *Solver) pair(dots []float64) {
	for i, d := range dots {
		if !finite(d) {
			s.fail(fmt.Errorf("%w: %s.%s is %g", ErrNotFinite, s.pairs[i][0], s.pairs[i][1], d))
			return
		}
	}
	s.history.learn(s.pairs, dots)
	if !s.history.admit(s.slot) {
		s.last.Skipped++
	}
	s.head()
}
