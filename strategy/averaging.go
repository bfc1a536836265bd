package strategy

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// Averaging says how workers that train copies of their own let them meet. What of it
// is zero has its default.
type Averaging struct {
	// Every is the steps from one averaging, or correction, to the next.
	Every int
	// Alpha is how far a copy is drawn towards the average of all (SMA), of (0, 1].
	Alpha float64
	// Slots is what becomes of the slots when parameters are averaged (LocalSGD).
	Slots Slots
	// Outer makes a step of its own of every averaging (LocalSGD).
	Outer Outer
}

// Slots says what becomes of a rule's slots when parameters are averaged.
type Slots string

// What becomes of slots. Where a run settles, for a test or a checkpoint, kept ones
// are averaged: what lasts is one state, whatever the number of workers.
const (
	AverageSlots Slots = "average"
	KeepSlots    Slots = "keep"
	ResetSlots   Slots = "reset" // to what they were before the first step
)

// AllSlots are the values of Slots.
func AllSlots() []Slots { return []Slots{AverageSlots, KeepSlots, ResetSlots} }

// Outer is the outer optimizer: a step of size LR with Momentum along what a cycle has
// changed. With momentum 0 and LR 1 there is none.
type Outer struct {
	Momentum, LR float64
	Nesterov     bool
}

// plain reports whether the average is taken as it is.
func (o *Outer) plain() bool { return o.Momentum == 0 && o.LR == 1 }

// The defaults of Averaging, and what bounds a cycle: a plan is run once a step of it.
const (
	LocalSGDEvery = 8
	SMAEvery      = 1
	SMAAlpha      = .1
	EveryMax      = 1 << 16
	OuterLRMax    = 10
)

// validate says what is wrong with how copies meet.
func (a *Averaging) validate() error {
	switch {
	case a.Every < 1 || a.Every > EveryMax:
		return fmt.Errorf("every %d: want 1 to %d steps", a.Every, EveryMax)
	case !slices.Contains(AllSlots(), a.Slots):
		return fmt.Errorf("slots %q: want average, keep or reset", a.Slots)
	case !(a.Outer.Momentum >= 0 && a.Outer.Momentum < 1):
		return fmt.Errorf("outer momentum %g: want 0 or more, and less than 1", a.Outer.Momentum)
	case !(a.Outer.LR >= 0 && a.Outer.LR <= OuterLRMax):
		return fmt.Errorf("outer lr %g: want more than 0, and at most %d", a.Outer.LR, OuterLRMax)
	}
	return nil
}

// localProgram makes the program of workers that train copies of their own. average
// ends a cycle, or lets the run settle.
func localProgram(kind string, step *graph.Step, c Cluster, a Averaging, average func(b *builder, a Averaging, settling bool)) (*plan.Program, error) {
	if c.Workers < 1 || c.Servers != 0 {
		return nil, fmt.Errorf("strategy %s: %d workers and %d servers: want at least one worker and no servers", kind, c.Workers, c.Servers)
	}
	if c.Bucket < 0 {
		return nil, fmt.Errorf("strategy %s: buckets of %d bytes: want 1 or more, or 0 for the default", kind, c.Bucket)
	}
	if t := step.Graph.Type(); c.Slices > 0 || t.IsHalf() {
		return nil, fmt.Errorf("strategy %s: graph in %v, %d slices: want f32 or f64 and none, or strategy allreduce", kind, t, c.Slices)
	}
	if err := a.validate(); err != nil {
		return nil, fmt.Errorf("strategy %s: %w", kind, err)
	}
	for i := range step.Params {
		if p := &step.Params[i]; p.IsTable() {
			return nil, fmt.Errorf("strategy %s: %s is a table, of which each worker changes other rows: to average it would send all of it; take allreduce or ps",
				kind, p.Var.Name)
		}
	}
	if err := c.checkHosts(); err != nil {
		return nil, fmt.Errorf("strategy %s: %w", kind, err)
	}
	chooser, err := cost.NewChooser(c.Workers, c.Machine())
	if err != nil {
		return nil, fmt.Errorf("strategy %s: %w", kind, err)
	}
	m := localMaker{step: step, c: c, chooser: chooser, plans: make(map[string]*plan.Plan)}
	// A correction after every step is part of it, so that batches are read ahead. Not
	// so an averaging, which a run that settles leaves out.
	inline := kind == "sma" && a.Every == 1
	m.plan(StepPlan, window, func(b *builder) {
		b.plan.Local = true
		if inline && c.Workers > 1 {
			localStep(b)
			average(b, a, false)
			return
		}
		b.holdOnWorkers()
		localStep(b)
	})
	program := &plan.Program{Plans: m.plans, Cycle: slices.Repeat([]string{StepPlan}, a.Every), Settle: SettlePlan}
	if !inline {
		m.plan(AveragePlan, 1, func(b *builder) { average(b, a, false) })
		program.Cycle = append(program.Cycle, AveragePlan)
	}
	m.plan(SettlePlan, 1, func(b *builder) { average(b, a, true) })
	if !a.Outer.plain() && kind == "localsgd" {
		m.plan(InitPlan, 1, func(b *builder) { localSGDInit(b, a) })
		program.Init = InitPlan
	}
	m.plan(EvalPlan, window, localEval)
	return program, nil
}

// localMaker makes plans of one program: their tags differ.
type localMaker struct {
	step    *graph.Step
	c       Cluster
	chooser *cost.Chooser
	plans   map[string]*plan.Plan
	tag     uint32
}

// plan makes one. Group 0 is all workers, group 1+r worker r alone.
func (m *localMaker) plan(name string, window int, write func(*builder)) {
	b := newBuilder(name, m.step, m.c, m.tag)
	b.plan.Window = window
	b.chooser, b.plan.Hosts = m.chooser, m.c.Hosts
	for rank := range m.c.Workers {
		b.plan.Groups = append(b.plan.Groups, []int{rank})
	}
	write(b)
	m.tag = b.tag
	p := b.finish()
	for rank, tasks := range p.Ranks {
		for i := range tasks {
			if t := &tasks[i]; t.Kind == plan.Commit {
				t.Group, t.Lane.ID = 1+rank, 1+rank
			}
		}
	}
	m.plans[name] = p
}

// localStep is a step of every worker by itself: its Commit asks nobody else.
func localStep(b *builder) {
	b.feed()
	b.forward(func([]*graph.Param) {})
	b.commitBy(plan.Lane{Kind: plan.Group, ID: 1})
	b.update()
}

// share is how much a copy counts.
func (b *builder) share() float64 { return 1 / float64(b.c.Workers) }

// combine makes a value the sum of others, each times its factor.
func (b *builder) combine(name string, out int, factors []float64, in ...int) {
	b.add(plan.Task{
		Kind: plan.Add, Name: name, Lane: plan.Lane{Kind: plan.Device}, In: refs(in...), Out: refs(out), Factors: factors,
	})
}

// sumCopies adds up the workers' copies of all parameters, and of their slots if told
// to, and returns the values that the sums are in: an AllReduce a bucket, in the order
// of the parameters. A copy of the copy goes into the arena, which states cannot be in.
func (b *builder) sumCopies(slots bool) map[*graph.Node]int {
	sums := make(map[*graph.Node]int)
	limit := b.c.Bucket
	if limit == 0 {
		limit = BucketDefault
	}
	var run []*graph.Node
	bytes := 0
	send := func() {
		if len(run) > 0 {
			b.sumRun(run, sums)
		}
		run, bytes = nil, 0
	}
	for i := range b.step.Params {
		p := &b.step.Params[i]
		nodes := []*graph.Node{p.Var}
		if slots {
			nodes = append(nodes, p.Slots...)
		}
		for _, n := range nodes {
			state := b.node(n)
			sum := b.like(n.Name+".sum", state, b.node(p.Var))
			b.plan.Values[sum].Class = plan.Act
			sums[n] = sum
			size := b.plan.Values[sum].Bytes()
			if len(run) > 0 && (bytes+size > limit || run[0].DType != n.DType) {
				send()
			}
			b.place(sum)
			b.combine(n.Name, sum, []float64{1}, state)
			run, bytes = append(run, n), bytes+size
		}
	}
	send()
	return sums
}

// sumRun adds up what lies one behind the other in the arena.
func (b *builder) sumRun(run []*graph.Node, sums map[*graph.Node]int) {
	t := plan.Task{Kind: plan.Collective, Op: plan.AllReduce, Name: run[0].Name, Lane: b.group(), Tag: b.nextTag()}
	for _, n := range run {
		t.In = append(t.In, refs(sums[n])...)
	}
	if len(run) > 1 {
		t.Name += ".." + run[len(run)-1].Name
	}
	t.Out = t.In
	t.Algorithm = b.chooser.Choices(cost.Bytes(b.plan, &t))[0].Algorithm
	b.add(t)
}

// Beside lists the states that a program keeps beside the parameters and slots of the
// step, from zeros on, and that a checkpoint must have. What Init writes is not among
// them: it is made anew where a run begins.
func Beside(p *plan.Program, step *graph.Step) []plan.Value {
	known := make(map[string]bool)
	for i := range step.Params {
		for _, slot := range step.Params[i].Slots {
			known[slot.Name] = true
		}
	}
	if begin := p.Plans[p.Init]; begin != nil {
		for _, t := range begin.Ranks[0] {
			for _, r := range t.Out {
				known[begin.Values[r.Value].Name] = true
			}
		}
	}
	settle := p.Plans[p.Settle]
	if settle == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(settle.Values), func(v plan.Value) bool { return v.Class != plan.Slot || known[v.Name] })
}
