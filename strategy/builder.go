package strategy

import (
	"cmp"
	"iter"
	"slices"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/flops"
	"github.com/gangline/gangline/plan"
)

// window is the steps in flight of every plan: the reader may be one ahead.
const window = 2

// builder writes the one list of tasks that all workers of a plan share.
//
// Values are declared when a task first touches them, except that parameters
// and slots come first, so that they have the same numbers in all plans of a
// program. What a task waits for follows from them: the writers of what it
// reads, the readers and writers of what it writes.
type builder struct {
	step    *graph.Step
	c       Cluster
	plan    *plan.Plan
	tasks   []plan.Task
	value   map[*graph.Node]int
	parts   map[int]int                // of a dense gradient: its value in micro-batches that are added
	wides   map[int]int                // of a dense gradient of 16 bits: the sum in float32 of micro-batches but the last
	params  []int                      // the values of class Param
	table   map[int]bool               // which of them are tables
	sums    map[*graph.Param]gradient  // what to update from
	roles   map[*graph.Node]plan.Value // class and state of nodes that are no activations
	wrote   map[int][]int              // tasks by the value they write
	read    map[int][]int              // tasks by the value they read
	shares  map[int][]int              // values that have memory in common with one
	tag     uint32
	arena   int // bytes of the arena that are taken
	bucket  bucket
	outer   map[*graph.Param]outer
	chooser *cost.Chooser // of algorithms, where there is a choice
	sliced                // of a step in slices
}

// gradient is where the sum for one parameter is; keys are of a table.
type gradient struct{ keys, sum int }

// program makes the plans of a run from what writes their tasks. Tags differ
// between the plans, so that a late message of one cannot pass for the other's.
func program(step *graph.Step, c Cluster, train, eval func(*builder)) *plan.Program {
	b := newBuilder(StepPlan, step, c, 0)
	train(b)
	e := newBuilder(EvalPlan, step, c, b.tag)
	eval(e)
	return &plan.Program{
		Plans: map[string]*plan.Plan{StepPlan: b.finish(), EvalPlan: e.finish()},
		Cycle: []string{StepPlan},
	}
}

// localEval evaluates on parameters that the worker holds.
func localEval(b *builder) {
	b.holdOnWorkers()
	b.feed()
	b.gather()
	b.compute(b.step.Eval, 0)
}

func newBuilder(name string, step *graph.Step, c Cluster, tag uint32) *builder {
	b := &builder{
		step: step, c: c, tag: tag,
		plan:  &plan.Plan{Name: name, Window: window},
		value: make(map[*graph.Node]int), parts: make(map[int]int), wides: make(map[int]int), table: make(map[int]bool),
		sums: make(map[*graph.Param]gradient), roles: make(map[*graph.Node]plan.Value),
		wrote: make(map[int][]int), read: make(map[int][]int),
		sliced: sliced{levels: make(map[[2]int]int), totals: make(map[*graph.Param]gradient)},
	}
	workers := make([]int, c.Workers)
	for i := range workers {
		workers[i] = i
	}
	b.plan.Groups = [][]int{workers}
	b.states()
	for i := range step.Segments {
		s := &step.Segments[i]
		b.plan.Segs = append(b.plan.Segs, plan.Seg{Name: s.Name, Update: plan.NoState, FLOPs: flops.Of(*s)})
	}
	for i := range step.Params {
		p := &step.Params[i]
		b.plan.Segs[p.Update].Update = b.node(p.Var)
	}
	return b
}

// states declares parameters, each with its slots, then variables that are
// frozen; and says what else belongs to them.
func (b *builder) states() {
	role := func(n *graph.Node, class plan.Class, state int) {
		if _, taken := b.roles[n]; n != nil && !taken {
			b.roles[n] = plan.Value{Class: class, State: state}
		}
	}
	param := func(n *graph.Node) int {
		s := len(b.plan.Values)
		role(n, plan.Param, s)
		b.params = append(b.params, s)
		return b.node(n)
	}
	for i := range b.step.Params {
		p := &b.step.Params[i]
		s := param(p.Var)
		b.table[s] = p.IsTable()
		for _, slot := range p.Slots {
			role(slot, plan.Slot, s)
			b.node(slot)
		}
		role(p.Grad, plan.Grad, s)
		role(p.Keys, plan.Key, s)
		role(p.Rows, plan.Act, s)
	}
	if scaling := b.step.Scaling; scaling != nil {
		role(scaling.Good, plan.Slot, param(scaling.Var))
		b.node(scaling.Good)
	}
	for _, seg := range b.step.Segments {
		for _, n := range seg.In {
			if _, trained := b.roles[n]; n.Op == graph.Variable && !trained {
				param(n)
			}
		}
	}
	for _, n := range []*graph.Node{b.step.Model.Loss, b.step.Model.Weight, b.step.Total} {
		role(n, plan.Scalar, plan.NoState)
	}
}

// node returns the value that stands for a node of the graph.
func (b *builder) node(n *graph.Node) int {
	if v, ok := b.value[n]; ok {
		return v
	}
	v := plan.Value{Class: plan.Act, State: plan.NoState}
	if role, ok := b.roles[n]; ok {
		v = role
	}
	v.Name, v.DType, v.Shape = n.Name, n.DType, n.Shape.Clone()
	b.plan.Values = append(b.plan.Values, v)
	b.value[n] = len(b.plan.Values) - 1
	return b.value[n]
}

// micros is how many micro-batches, or slices, a step of the plan has on a worker.
func (b *builder) micros() int {
	if b.c.Slices > 0 {
		return b.part.Hi - b.part.Lo
	}
	if b.plan.Name == EvalPlan {
		return 1
	}
	return max(b.c.Micro, 1)
}

// of returns what a micro-batch has of a node. Parameters are there once. In an arena
// a value has one life a step, that of the first micro-batch, to which the gradients
// of others are added: those are values of their own.
func (b *builder) of(n *graph.Node, micro int) plan.Ref {
	v := b.node(n)
	switch class := b.plan.Values[v].Class; {
	case class == plan.Param || class == plan.Slot || n == b.step.Total:
		return plan.Ref{Value: v}
	case b.c.Slices > 0:
		return b.ofSlice(n, b.part.Lo+micro)
	case class == plan.Grad && b.plan.Values[v].Shape.Static() && (micro > 0 || b.micros() > 1 && n.DType.IsHalf()):
		if _, ok := b.parts[v]; !ok {
			b.parts[v] = b.like(n.Name+".part", v, b.plan.Values[v].State)
		}
		v = b.parts[v]
	}
	return plan.Ref{Value: v, Micro: micro}
}

// like declares a value that no node stands for, of the type of another. Node
// names cannot be taken from it: an ' makes a name that is taken another.
func (b *builder) like(name string, other, state int) int {
	for b.step.Graph.ByName(name) != nil {
		name += "'"
	}
	v := b.plan.Values[other]
	v.Name, v.State, v.Shape = name, state, v.Shape.Clone()
	b.plan.Values = append(b.plan.Values, v)
	return len(b.plan.Values) - 1
}

// add appends a task that waits for what it must, and for the given tasks. On
// each lane the last of them says it for all; on the task's own, order does.
func (b *builder) add(t plan.Task, after ...int) int {
	for _, r := range t.In {
		after = append(after, b.wrote[r.Value]...)
	}
	for _, r := range t.Out {
		for _, v := range b.shares[r.Value] {
			after = append(append(after, b.read[v]...), b.wrote[v]...)
		}
		after = append(after, b.read[r.Value]...)
		for _, w := range b.wrote[r.Value] {
			if t.Kind != plan.Pull || b.tasks[w].Kind != plan.Pull { // stores fill parts of their own
				after = append(after, w)
			}
		}
	}
	last := map[plan.Lane]int{}
	for _, i := range after {
		if lane := b.tasks[i].Lane; lane != t.Lane {
			last[lane] = max(last[lane], i)
		}
	}
	for _, i := range last {
		t.After = append(t.After, plan.Dep{Task: i})
	}
	slices.SortFunc(t.After, func(x, y plan.Dep) int { return cmp.Compare(x.Task, y.Task) })
	i := len(b.tasks)
	for _, r := range t.In {
		b.read[r.Value] = append(b.read[r.Value], i)
	}
	for _, r := range t.Out {
		b.wrote[r.Value] = append(b.wrote[r.Value], i)
	}
	b.tasks = append(b.tasks, t)
	return i
}

// finish gives every worker its copy of the list.
func (b *builder) finish() *plan.Plan {
	for range b.c.Workers {
		b.plan.Ranks = append(b.plan.Ranks, plan.CloneTasks(b.tasks))
	}
	return b.plan
}

func (b *builder) group() plan.Lane { return plan.Lane{Kind: plan.Group} }

func (b *builder) nextTag() uint32 {
	b.tag++
	return b.tag
}

// tables yields the parameters of which only rows are read.
func (b *builder) tables() iter.Seq[*graph.Param] {
	return func(yield func(*graph.Param) bool) {
		for i := range b.step.Params {
			if p := &b.step.Params[i]; p.IsTable() && !yield(p) {
				return
			}
		}
	}
}

func refs(values ...int) []plan.Ref {
	r := make([]plan.Ref, len(values))
	for i, v := range values {
		r[i].Value = v
	}
	return r
}
