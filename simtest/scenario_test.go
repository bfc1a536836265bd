package simtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/optim"
)

// Times of the control plane. They are small, so that scenarios are short, and
// stand in the proportions of the real ones.
const (
	heartbeatLimit = time.Second
	joinLimit      = 10 * time.Second
	lostGrace      = 250 * time.Millisecond
	// shortPause must change nothing, longPause must end the generation.
	shortPause = heartbeatLimit / 3
	longPause  = 2 * heartbeatLimit
)

// faultKind is what may go wrong with a process or a connection.
type faultKind uint8

const (
	crash faultKind = iota
	pause           // of a rank, for some time
	clog            // nothing that rank sends to peer arrives for some time
	stall           // the coordinator stops for some time; rank says only when
)

// fault strikes one rank in one generation, once it has come through a part of
// the events that it has in an undisturbed run.
type fault struct {
	kind  faultKind
	gen   uint32
	rank  int
	when  float64
	peer  int
	lasts time.Duration
}

// poison spoils one gradient, or the loss, of one rank in one step. It is part
// of the problem: an undisturbed run has it too.
type poison struct {
	rank  int
	step  int64
	param int // index in Step.Params; -1: the loss
	inf   bool
}

// scenario is what a seed draws.
type scenario struct {
	seed             uint64
	strategy         string
	workers, servers int
	bucket           int // bytes of gradients that are summed together
	wayOf
	hosts       [][]int
	costs       cost.Table
	model       string
	table       bool
	rule        optim.Rule
	rows, batch int
	steps       int64
	every       int64 // steps between checkpoints; 0: only at the end
	keep        int
	poisons     []poison

	// What an undisturbed run does not have.
	delay, jitter time.Duration
	tail          float64   // how often a message takes 20 times as long
	slow          []float64 // by rank: how many times longer its work takes
	retry         float64   // how often the answer of a store is lost on its way
	faults        []fault
	otherServers  int // to restore checkpoints into
}

func (s *scenario) world() int { return s.workers + s.servers }

// draw makes the scenario of a seed.
func draw(seed uint64) *scenario {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &scenario{seed: seed}
	switch r.IntN(8) {
	case 0:
		s.strategy, s.workers = "serial", 1
	case 1, 2, 3:
		s.strategy, s.workers = "allreduce", 1+r.IntN(4)
	default:
		s.strategy, s.workers, s.servers = "ps", 1+r.IntN(4), 1+r.IntN(3)
	}
	s.model = []string{"logistic", "softmax", "linear", "mlp", "ctr"}[r.IntN(5)]
	s.table = r.IntN(2) == 0 && s.model != "mlp" && s.model != "ctr"
	s.rule = []optim.Rule{
		{Kind: optim.SGD, LR: .1},
		{Kind: optim.Momentum, LR: .05, L2: .01, Nesterov: true},
		{Kind: optim.Adagrad, LR: .1, InitialAccumulator: .1},
		{Kind: optim.Adam, LR: .01, Eps: 1e-4},
	}[r.IntN(4)]
	s.rows, s.batch = 5+r.IntN(40), 1+r.IntN(9)
	s.steps, s.every, s.keep = 2+r.Int64N(9), r.Int64N(4), 1+r.IntN(2)
	if r.IntN(3) == 0 {
		for range 1 + r.IntN(2) {
			s.poisons = append(s.poisons, poison{rank: r.IntN(s.workers), step: r.Int64N(s.steps), param: r.IntN(5) - 1, inf: r.IntN(2) == 0})
		}
	}
	s.vary()
	s.network(r)
	s.trouble(r)
	s.sums(r)
	return s
}

// sums draws what decides how gradients are summed: buckets, hosts, and costs of
// which the first favours few steps, the second few bytes, and the last few bytes
// between hosts.
func (s *scenario) sums(r *rand.Rand) {
	s.bucket = []int{0, 1, 200}[r.IntN(3)]
	cut := r.IntN(s.workers)
	for rank := range s.workers {
		if rank == 0 || rank == cut {
			s.hosts = append(s.hosts, nil)
		}
		h := len(s.hosts) - 1
		s.hosts[h] = append(s.hosts[h], rank)
	}
	s.costs = []cost.Table{{}, {cost.Unix: {Beta: 1}, cost.TCP: {Beta: 1}}, {cost.Unix: {Beta: 1e-3}, cost.TCP: {Beta: 1}}}[r.IntN(3)]
}

// network draws how slow links and ranks are.
func (s *scenario) network(r *rand.Rand) {
	s.delay = time.Duration(1+r.IntN(5000)) * time.Microsecond
	s.jitter = time.Duration(1+r.IntN(30000)) * time.Microsecond
	if r.IntN(2) == 0 {
		s.tail = r.Float64() * .1
	}
	if r.IntN(2) == 0 {
		s.retry = r.Float64() * .5
	}
	s.slow = make([]float64, s.world())
	for i := range s.slow {
		s.slow[i] = 1
		if r.IntN(3) == 0 {
			s.slow[i] += 10 * r.Float64()
		}
	}
	s.otherServers = 1 + r.IntN(5)
}

// trouble draws faults, some for each of the first generations. A swarm: one
// scenario in four has no crash, another none of the rest.
func (s *scenario) trouble(r *rand.Rand) {
	crashes, pauses, clogs, stalls := r.IntN(4), r.IntN(3), r.IntN(3), max(0, r.IntN(5)-3)
	switch r.IntN(4) {
	case 0:
		crashes = 0
	case 1:
		pauses, clogs, stalls = 0, 0, 0
	}
	add := func(f fault) {
		f.gen = 1 + uint32(r.IntN(max(1, crashes)))
		f.rank, f.peer, f.when = r.IntN(s.world()), r.IntN(s.world()), r.Float64()*1.1
		s.faults = append(s.faults, f)
	}
	for range crashes {
		add(fault{kind: crash})
	}
	for range pauses {
		d := time.Duration(r.Int64N(int64(shortPause)))
		if r.IntN(4) == 0 {
			d = longPause + d
		}
		add(fault{kind: pause, lasts: d})
	}
	for range clogs {
		add(fault{kind: clog, lasts: time.Duration(r.Int64N(int64(time.Second)))})
	}
	for range stalls {
		add(fault{kind: stall, lasts: time.Duration(r.Int64N(int64(3 * heartbeatLimit)))})
	}
}

// calm is the scenario without what disturbs.
func (s *scenario) calm() *scenario {
	c := *s
	c.delay, c.jitter, c.tail, c.retry, c.faults = time.Millisecond, 1, 0, 0, nil
	c.slow = make([]float64, s.world())
	for i := range c.slow {
		c.slow[i] = 1
	}
	return &c
}

// moved is the calm scenario on another number of servers; without servers, on another
// number of workers, which skip the given steps.
func (s *scenario) moved(skipped []int64) *scenario {
	other := *s
	if s.servers > 0 {
		other.servers, other.otherServers = s.otherServers, s.servers
		return other.calm()
	}
	if other.workers, other.hosts = s.otherWorkers, nil; s.strategy == "serial" {
		other.strategy = "allreduce"
	}
	c := other.calm()
	c.poisons = losses(skipped)
	return c
}

// losses are poisons that have steps skipped.
func losses(skipped []int64) (all []poison) {
	for _, step := range skipped {
		all = append(all, poison{step: step, param: -1})
	}
	return all
}

// serial is the calm scenario on one worker, which skips the given steps.
func (s *scenario) serial(skipped []int64) *scenario {
	one := *s
	one.strategy, one.workers, one.servers, one.hosts = "serial", 1, 0, nil
	c := one.calm()
	c.poisons = losses(skipped)
	return c
}

// String describes the scenario in one line.
func (s *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s of %d workers, %d servers, buckets of %d on hosts %v; %s (table %t) with %s; %d rows, batches of %d, %d steps, checkpoint every %d",
		s.wayOf, s.strategy, s.workers, s.servers, s.bucket, s.hosts, s.model, s.table, s.rule.Kind, s.rows, s.batch, s.steps, s.every)
	for _, p := range s.poisons {
		fmt.Fprintf(&b, "; rank %d spoils step %d (param %d)", p.rank, p.step, p.param)
	}
	for _, f := range s.faults {
		fmt.Fprintf(&b, "; generation %d: ", f.gen)
		switch f.kind {
		case crash:
			fmt.Fprintf(&b, "rank %d crashes at %.0f%%", f.rank, f.when*100)
		case pause:
			fmt.Fprintf(&b, "rank %d stops for %v at %.0f%%", f.rank, f.lasts, f.when*100)
		case clog:
			fmt.Fprintf(&b, "rank %d to rank %d is clogged for %v at %.0f%%", f.rank, f.peer, f.lasts, f.when*100)
		case stall:
			fmt.Fprintf(&b, "the coordinator stops for %v at %.0f%% of rank %d", f.lasts, f.when*100, f.rank)
		}
	}
	return b.String()
}
