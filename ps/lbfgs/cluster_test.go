package lbfgs

import (
	"fmt"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/ps/portion"
	"github.com/gangline/gangline/ps/vector"
	"github.com/gangline/gangline/tensor"
)

// problem is a sum over rows of losses of n parameters.
type problem struct {
	n, rows int
	// eval returns loss and weight of rows [lo, hi) and adds their gradient to g.
	eval func(x, g []float64, lo, hi int) (loss, weight float64)
}

// whole is a problem of one row.
func whole(n int, f func(x, g []float64) float64) problem {
	return problem{n: n, rows: 1, eval: func(x, g []float64, lo, hi int) (float64, float64) {
		if lo == hi {
			return 0, 0
		}
		return f(x, g), 1
	}}
}

// cluster is a solver with servers and workers, in one process and virtual time.
type cluster struct {
	t       rapid.TB
	p       problem
	dtype   tensor.DType
	servers []*vector.Set
	book    *portion.Book
	slow    []time.Duration // by worker: time a row takes
	free    []time.Duration // when a worker has done what it has
	jobs    []job           // what workers compute
	now     time.Duration
	traffic traffic
	repeat  bool // every command arrives twice
	look    func(s *Solver)
}

// job is a portion that a worker computes, at the x that was there when it began.
type job struct {
	until   time.Duration
	worker  int
	round   uint64
	portion int
	x       []float64
}

// traffic is what passed between coordinator and one server, in bytes.
type traffic struct {
	total    int
	commands map[string]int // of a command by its form, and its answer
}

func newCluster(t rapid.TB, p problem, cfg *Config, x []float64, servers, workers int) *cluster {
	c := &cluster{t: t, p: p, dtype: tensor.F64, traffic: traffic{commands: map[string]int{}}, free: make([]time.Duration, workers)}
	for k := range servers {
		lo, hi := p.n*k/servers, p.n*(k+1)/servers
		s, err := vector.New(tensor.F64, lo, hi, cfg.Vectors())
		if err == nil {
			err = s.Bind("x", tensor.From(slices.Clone(x[lo:hi]), hi-lo))
		}
		if err != nil {
			t.Fatal(err)
		}
		c.servers = append(c.servers, s)
	}
	for w := range workers {
		c.slow = append(c.slow, time.Duration(1+2*w))
	}
	book, err := portion.New(portion.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c.book = book
	for w := range workers {
		c.book.Step(0, portion.Event{Kind: portion.EventAsk, Worker: w})
	}
	return c
}

// x returns the parameters.
func (c *cluster) x(name string) []float64 {
	var x []float64
	for _, s := range c.servers {
		v, err := s.Tensor(name)
		if err != nil {
			c.t.Fatal(err)
		}
		x = append(x, v.F64()...)
	}
	return x
}

// run searches, and returns how it ended.
func (c *cluster) run(s *Solver) Action {
	event := Event{Kind: EventStart}
	for range 1_000_000 {
		actions, why := s.Step(event)
		event = Event{}
		for i, a := range actions {
			switch a.Kind {
			case ActionDo:
				if dots := c.do(a.Command); dots != nil {
					event = Event{Kind: EventDotted, Number: a.Command.Number, Dots: dots}
				}
			case ActionEvaluate:
				event = c.evaluate(a.Evaluation)
			case ActionDone, ActionFail, ActionRefuse:
				if i != len(actions)-1 {
					c.t.Fatalf("%+v is not the last of %d actions: %s", a, len(actions), why)
				}
				return a
			}
		}
		if c.look != nil {
			c.look(s)
		}
	}
	c.t.Fatal("the search does not end")
	return Action{}
}

// do lets all servers do a command, which travels as bytes, and adds up answers.
func (c *cluster) do(cmd *vector.Command) []float64 {
	sent, err := cmd.Append(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	sums := make([]vector.Sum, len(cmd.Pairs))
	answered := 0
	for _, s := range c.servers {
		got, err := vector.Decode(sent)
		if err != nil {
			c.t.Fatal(err)
		}
		part, err := s.Do(&got)
		if err == nil && c.repeat {
			part, err = s.Do(&got)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		answer := vector.AppendSums(nil, part)
		answered = len(answer)
		if part, err = vector.DecodeSums(answer, len(cmd.Pairs)); err != nil {
			c.t.Fatal(err)
		}
		for i := range sums {
			sums[i] = vector.Merge(sums[i], part[i])
		}
	}
	c.traffic.add(cmd, len(sent)+answered, c.t)
	if cmd.Op != vector.OpDots {
		return nil
	}
	dots := make([]float64, len(sums))
	for i, v := range sums {
		dots[i] = v.Value()
	}
	return dots
}

func (r *traffic) add(cmd *vector.Command, bytes int, t rapid.TB) {
	form := fmt.Sprintf("%v of %d terms, %d pairs", cmd.Op, len(cmd.Terms), len(cmd.Pairs))
	if cmd.Dst != "" {
		form += " " + cmd.Dst[:1]
	}
	if was, ok := r.commands[form]; ok && was != bytes {
		t.Fatalf("%v has %d bytes, %d another time", cmd, bytes, was)
	}
	r.commands[form] = bytes
	r.total += bytes
}

// evaluate lets workers compute all portions.
func (c *cluster) evaluate(id uint64) Event {
	event := portion.Event{Kind: portion.EventBegin, Round: id, Portions: c.portions()}
	for {
		actions, _ := c.book.Step(c.now, event)
		event = portion.Event{}
		for _, a := range actions {
			switch a.Kind {
			case portion.ActionGive:
				c.give(a)
			case portion.ActionOver:
				c.book.Step(c.now, event) // who was last waits for the next evaluation
				return Event{Kind: EventEvaluated, Evaluation: id, Loss: a.Loss, Weight: a.Weight}
			case portion.ActionRefuse:
				c.t.Fatal(a.Err)
			case portion.ActionCounted, portion.ActionLate:
				event = portion.Event{Kind: portion.EventAsk, Worker: a.Worker}
			case portion.ActionWait:
			}
		}
		if event.Kind == 0 {
			event = c.answer()
		}
	}
}

func (c *cluster) portions() int { return min(16, c.p.rows) }

func (c *cluster) give(a portion.Action) {
	lo, hi := portion.Rows(c.p.rows, c.portions(), a.Portion)
	c.free[a.Worker] = max(c.free[a.Worker], c.now) + c.slow[a.Worker]*time.Duration(hi-lo)
	c.jobs = append(c.jobs, job{c.free[a.Worker], a.Worker, a.Round, a.Portion, c.x("x")})
}

// answer lets the worker that is ready first bring its gradient to the servers.
func (c *cluster) answer() portion.Event {
	at := 0
	for i, j := range c.jobs {
		if j.until < c.jobs[at].until {
			at = i
		}
	}
	j := c.jobs[at]
	c.jobs = slices.Delete(c.jobs, at, at+1)
	c.now = max(c.now, j.until)
	lo, hi := portion.Rows(c.p.rows, c.portions(), j.portion)
	g := make([]float64, c.p.n)
	loss, weight := c.p.eval(j.x, g, lo, hi)
	for _, s := range c.servers {
		from, to := s.Range()
		if _, err := s.Add(j.round, j.portion, tensor.From(g[from:to], to-from)); err != nil {
			c.t.Fatal(err)
		}
	}
	return portion.Event{Kind: portion.EventDone, Worker: j.worker, Round: j.round, Portion: j.portion, Loss: loss, Weight: weight}
}

// minimise searches on one server with one worker.
func minimise(t rapid.TB, p problem, cfg Config, x ...float64) (Action, *cluster) {
	cfg.Portions = min(16, p.rows)
	c := newCluster(t, p, &cfg, x, 1, 1)
	return c.run(solver(t, cfg)), c
}

func solver(t rapid.TB, cfg Config) *Solver {
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rosenbrock is sum 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2 over pairs.
func rosenbrock(x, g []float64) (f float64) {
	for i := 0; i+1 < len(x); i += 2 {
		a, b := x[i+1]-x[i]*x[i], 1-x[i]
		f += 100*a*a + b*b
		g[i] += -400*a*x[i] - 2*b
		g[i+1] += 200 * a
	}
	return f
}

// far is the largest distance between two vectors' elements.
func far(a, b []float64) (d float64) {
	for i := range a {
		d = max(d, math.Abs(a[i]-b[i]))
	}
	return d
}
