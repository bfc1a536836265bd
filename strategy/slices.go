package strategy

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/collective/tree"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// SlicesDefault is the slices of a step where nothing else is said: 1, 2, 3, 4, 6 and 12
// workers have equally many of them, and 1, 2, 4 and 12 one branch of the tree each.
const SlicesDefault = 12

// A step in slices (Cluster.Slices) is the same sums of the same rows on any number of
// workers. A worker computes the gradient of each of its slices by itself, as one of a
// micro-batch, and sums what are two halves of one branch as soon as both are there. At
// most about 2 log2(slices) sums of a gradient are in memory: they stand side by side
// as on a stack, each level in an arena of its own. What is on the stack in the end
// goes into a collective of Order Tree. Workers differ in how many slices they have,
// and so in their tasks.

// sliced is what a builder knows of the worker whose tasks it writes.
type sliced struct {
	part   plan.Branch // its slices
	stack  []plan.Branch
	levels map[[2]int]int            // of a gradient and a level of the stack: its value
	totals map[*graph.Param]gradient // of tables
	loss   int                       // the value of the total loss
}

// inSlices makes the program of a run whose steps are cut to slices. The serial strategy
// is the case of one worker.
func inSlices(step *graph.Step, c Cluster) (*plan.Program, error) {
	switch {
	case c.Slices < c.Workers || c.Slices > plan.MaxSlices:
		return nil, fmt.Errorf("%d slices for %d workers: want as many as workers at least, and at most %d", c.Slices, c.Workers, plan.MaxSlices)
	case step.Graph.Type().IsHalf():
		return nil, fmt.Errorf("the graph is in %v: slices add up in f32 or f64", step.Graph.Type())
	case c.Micro > 1:
		return nil, fmt.Errorf("slices are computed one by one: they leave no use for %d micro-batches", c.Micro)
	}
	b := newBuilder(StepPlan, step, c, 0)
	b.byWorker(func() { slicedStep(b) })
	e := newBuilder(EvalPlan, step, c, b.tag)
	e.byWorker(func() { slicedEval(e) })
	return &plan.Program{Plans: map[string]*plan.Plan{StepPlan: b.plan, EvalPlan: e.plan}, Cycle: []string{StepPlan}}, nil
}

// byWorker has the tasks of each worker written. Values have one meaning for all of
// them, and so have tags.
func (b *builder) byWorker(write func()) {
	b.plan.Slices, b.plan.Hosts = b.c.Slices, b.c.Hosts
	b.holdOnWorkers()
	first := b.tag
	for i := range b.c.Workers {
		b.tag, b.arena, b.tasks = first, 0, nil
		b.sums, b.wrote, b.read = make(map[*graph.Param]gradient), make(map[int][]int), make(map[int][]int)
		b.part = plan.Part(b.c.Slices, b.c.Workers, i)
		b.stack = nil
		write()
		b.plan.Ranks = append(b.plan.Ranks, b.tasks)
	}
}

func slicedStep(b *builder) {
	b.feed()
	b.gather()
	for s := b.part.Lo; s < b.part.Hi; s++ {
		b.slice(s)
	}
	b.sendBucket()
	b.commitSlices()
	b.update()
}

// slicedEval evaluates slice by slice, so that losses and predictions are those of the
// same rows computed together, whoever has them.
func slicedEval(b *builder) {
	b.feed()
	b.gather()
	for micro := range b.micros() {
		b.compute(b.step.Eval, micro)
	}
}

// slice computes the gradients of a slice, and sums those that it completes a branch
// with. Behind the last slice they are sent off.
func (b *builder) slice(s int) {
	level := len(b.stack)
	stack, joined := plan.Fold(b.c.Slices, b.stack, plan.Branch{Lo: s, Hi: s + 1})
	b.stack = stack
	for _, seg := range b.step.Forward {
		b.computeWith(seg, func(n *graph.Node) plan.Ref {
			if n.Shape.Static() && b.roles[n].Class == plan.Grad {
				return plan.Ref{Value: b.level(n, level)}
			}
			return b.of(n, s-b.part.Lo)
		})
		for i := range b.step.Params {
			p := &b.step.Params[i]
			if !slices.Contains(b.step.Segments[seg].Out, p.Grad) {
				continue
			}
			for k := level; !p.IsTable() && k > level-joined; k-- {
				left := plan.Ref{Value: b.level(p.Grad, k-1)}
				b.add(plan.Task{
					Kind: plan.Add, Name: p.Grad.Name, Lane: plan.Lane{Kind: plan.Device},
					In: []plan.Ref{left, {Value: b.level(p.Grad, k)}}, Out: []plan.Ref{left},
				})
			}
			if s == b.part.Hi-1 {
				b.sendSlices(p)
			}
		}
	}
}

// ofSlice returns what a slice has of a node. In an evaluation, what is read when all
// slices are done is a value of its own for each.
func (b *builder) ofSlice(n *graph.Node, s int) plan.Ref {
	m := &b.step.Model
	if b.plan.Name != EvalPlan || n != m.Loss && n != m.Weight && n != m.Predict && n != m.Label {
		return plan.Ref{Value: b.node(n), Micro: s}
	}
	key := [2]int{b.node(n), s}
	if _, ok := b.levels[key]; !ok {
		v := b.plan.Values[key[0]]
		v.Name, v.Shape = Sliced(b.step.Graph, n, s), v.Shape.Clone()
		b.plan.Values = append(b.plan.Values, v)
		b.levels[key] = len(b.plan.Values) - 1
	}
	return plan.Ref{Value: b.levels[key], Micro: s}
}

// Sliced is the name of what an evaluation in slices has of a node of the model for one.
func Sliced(g *graph.Graph, n *graph.Node, slice int) string {
	name := fmt.Sprintf("%s.slice%d", n.Name, slice)
	for g.ByName(name) != nil {
		name += "'"
	}
	return name
}

// level is the value of a dense gradient on a level of the stack.
func (b *builder) level(n *graph.Node, k int) int {
	v := b.node(n)
	if k == 0 {
		return v
	}
	key := [2]int{v, k}
	if _, ok := b.levels[key]; !ok {
		b.levels[key] = b.like(fmt.Sprintf("%s.%d", n.Name, k), v, b.plan.Values[v].State)
	}
	return b.levels[key]
}

// placeLevels puts what a gradient is on the levels of the stack at the same place of an
// arena for each level, so that those which are summed together are so there, too.
func (b *builder) placeLevels(value int) {
	for k := 1; ; k++ {
		v, ok := b.levels[[2]int{value, k}]
		if !ok {
			return
		}
		b.plan.Values[v].Arena, b.plan.Values[v].Offset = gradArena+k, b.plan.Values[value].Offset
	}
}

// sendSlices puts a gradient into the bucket, or sums the rows of a table over all slices.
func (b *builder) sendSlices(p *graph.Param) {
	if !p.IsTable() {
		b.sums[p] = gradient{sum: b.node(p.Grad)}
		b.reduce(p)
		return
	}
	b.sums[p] = b.total(p)
	t := plan.Task{
		Kind: plan.Collective, Op: plan.AllGatherRows, Order: plan.Tree, Name: p.Var.Name, Lane: b.group(), Tag: b.nextTag(),
		Out: refs(b.sums[p].keys, b.sums[p].sum),
	}
	for s := b.part.Lo; s < b.part.Hi; s++ {
		t.In = append(t.In, plan.Ref{Value: b.node(p.Keys), Micro: s}, plan.Ref{Value: b.node(p.Grad), Micro: s})
	}
	b.add(t)
}

// total is where the rows of a table are when all are summed.
func (b *builder) total(p *graph.Param) gradient {
	all, ok := b.totals[p]
	if !ok {
		all = gradient{
			keys: b.like(p.Var.Name+".keys.all", b.node(p.Keys), b.node(p.Var)),
			sum:  b.like(p.Var.Name+".grad.all", b.node(p.Grad), b.node(p.Var)),
		}
		b.totals[p] = all
	}
	return all
}

// overTree makes a sum over the workers one in the order of the tree: of the branches that
// are left on the stack.
func (b *builder) overTree(t *plan.Task, params []*graph.Param) {
	for k := range b.stack[1:] {
		for _, p := range params {
			t.In = append(t.In, plan.Ref{Value: b.level(p.Grad, k+1)})
		}
	}
	t.Order = plan.Tree
	t.Algorithm = b.treeAlgorithm(t)
}

// treeAlgorithm is the way that takes less time: whether chunks of the branches go to
// their owners and sums come back, or all branches go to all.
func (b *builder) treeAlgorithm(t *plan.Task) plan.Algorithm {
	m := b.c.Machine()
	if m.Costs == (cost.Table{}) {
		m.Costs = cost.Default()
	}
	link := m.Costs[m.Local]
	if len(m.Hosts) > 1 {
		link = m.Costs[cost.TCP]
	}
	dtype := b.plan.Values[t.Out[0].Value].DType
	seconds := func(a plan.Algorithm) float64 {
		c := tree.Config{Slices: b.c.Slices, Algorithm: a, DType: dtype, Elems: b.outBytes(t) / dtype.Size()}
		rounds, sent, summed := tree.Work(c, b.c.Workers)
		return float64(rounds)*link.Alpha + float64(sent)*link.Beta + float64(summed)*link.Gamma
	}
	if seconds(plan.ByExchange) < seconds(plan.ByRing) {
		return plan.ByExchange
	}
	return plan.ByRing
}

// outBytes is the bytes of one branch.
func (b *builder) outBytes(t *plan.Task) int {
	last := &b.plan.Values[t.Out[len(t.Out)-1].Value]
	return last.Offset + last.Bytes() - b.plan.Values[t.Out[0].Value].Offset
}

// commitSlices agrees on weight and loss, which every worker gives for each of its slices.
func (b *builder) commitSlices() {
	t := plan.Task{Kind: plan.Commit, Order: plan.Tree, Name: "step", Lane: b.group(), Tag: b.nextTag()}
	loss := b.node(b.step.Model.Loss)
	for s := b.part.Lo; s < b.part.Hi; s++ {
		t.In = append(t.In, plan.Ref{Value: b.node(b.step.Model.Weight), Micro: s}, plan.Ref{Value: loss, Micro: s})
	}
	for i := range b.step.Params {
		t.In = append(t.In, refs(b.sums[&b.step.Params[i]].sum)...)
	}
	if b.loss == 0 {
		b.loss = b.like("loss.total", loss, plan.NoState)
	}
	t.Out = refs(b.node(b.step.Total), b.loss)
	b.add(t)
}
