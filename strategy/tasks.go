package strategy

import (
	"cmp"
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// Inputs returns the parts of a batch that a plan feeds, in the order of the
// Out of its Feed, which is the order of node IDs: what the plan's segments
// read, and for the evaluation also the label, which metrics need.
func Inputs(step *graph.Step, plan string) []*graph.Node {
	segments := slices.Clone(step.Forward)
	var nodes []*graph.Node
	if plan == EvalPlan {
		segments = []int{step.Eval}
		nodes = append(nodes, step.Model.Label)
	}
	for _, i := range segments {
		nodes = append(nodes, step.Segments[i].In...)
	}
	for i := range step.Params {
		if p := &step.Params[i]; p.IsTable() {
			nodes = append(nodes, p.Keys)
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n *graph.Node) bool { return n.Op != graph.Input })
	slices.SortFunc(nodes, func(a, b *graph.Node) int { return cmp.Compare(a.ID, b.ID) })
	return slices.Compact(nodes)
}

// feed brings the batch.
func (b *builder) feed() {
	t := plan.Task{Kind: plan.Feed, Name: "batch", Lane: plan.Lane{Kind: plan.Reader}}
	for _, n := range Inputs(b.step, b.plan.Name) {
		t.Out = append(t.Out, refs(b.node(n))...)
	}
	b.add(t)
}

// compute runs a segment as it stands.
func (b *builder) compute(seg int) int { return b.computeWith(seg, b.node) }

// computeWith runs a segment on the values that stand for its nodes.
func (b *builder) computeWith(seg int, value func(*graph.Node) int) int {
	s := &b.step.Segments[seg]
	t := plan.Task{Kind: plan.Compute, Name: s.Name, Seg: seg, Lane: plan.Lane{Kind: plan.Device}}
	for _, n := range s.In {
		t.In = append(t.In, refs(value(n))...)
	}
	for _, n := range s.Out {
		t.Out = append(t.Out, refs(value(n))...)
	}
	return b.add(t)
}

// gather reads the rows of tables that the worker holds.
func (b *builder) gather() {
	for p := range b.tables() {
		if b.plan.Name == EvalPlan {
			b.compute(p.EvalGather)
		} else {
			b.compute(p.Gather)
		}
	}
}

// forward computes loss and gradients; after each segment, send may send off
// the gradients that it has made.
func (b *builder) forward(send func(made []*graph.Param)) {
	for _, seg := range b.step.Forward {
		b.compute(seg)
		var made []*graph.Param
		for i := range b.step.Params {
			p := &b.step.Params[i]
			if slices.Contains(b.step.Segments[seg].Out, p.Grad) {
				made = append(made, p)
				b.sums[p] = gradient{sum: b.node(p.Grad)}
				if p.IsTable() {
					b.sums[p] = gradient{keys: b.node(p.Keys), sum: b.node(p.Grad)}
				}
			}
		}
		send(made)
	}
}

// commit agrees with all workers on the weight of the step, and whether what
// they have is finite. It waits for the given tasks besides.
func (b *builder) commit(after ...int) int {
	t := plan.Task{Kind: plan.Commit, Name: "step", Lane: b.group(), Tag: b.nextTag()}
	loss := b.node(b.step.Model.Loss)
	t.In = refs(b.node(b.step.Model.Weight), loss)
	for i := range b.step.Params {
		t.In = append(t.In, refs(b.sums[&b.step.Params[i]].sum)...)
	}
	t.Out = refs(b.node(b.step.Total), b.like("loss.total", loss, plan.NoState))
	return b.add(t, after...)
}

// update applies the rule of every parameter to what its gradient has become.
func (b *builder) update() {
	for i := range b.step.Params {
		p := &b.step.Params[i]
		b.computeWith(p.Update, func(n *graph.Node) int {
			switch n {
			case p.Grad:
				return b.sums[p].sum
			case p.Keys:
				return b.sums[p].keys
			}
			return b.node(n)
		})
	}
}

// nextStep makes tasks wait for one that comes later in the list, of the step
// before: a pull must see the update, and overwrites what was computed with.
func (b *builder) nextStep(tasks []int, last int) {
	for _, i := range tasks {
		b.tasks[i].After = append(b.tasks[i].After, plan.Dep{Task: last, Lag: 1})
	}
}
