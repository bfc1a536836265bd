package strategy

import (
	"cmp"
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// Inputs returns the parts of a batch that a plan feeds, in the order of the
// Out of its Feed, which is the order of node IDs: what the plan's segments
// read, and for the evaluation also the label, which metrics need.
func Inputs(step *graph.Step, plan string) []*graph.Node {
	segments := slices.Clone(step.Forward)
	var nodes []*graph.Node
	if plan == EvalPlan {
		segments = evalSegments(step)
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

// evalSegments are those of the evaluation in their order: one, unless the step was cut
// (see package graph/cut).
func evalSegments(step *graph.Step) (segments []int) {
	for i := range step.Segments {
		if step.Segments[i].Eval && i != step.Eval {
			segments = append(segments, i)
		}
	}
	return append(segments, step.Eval)
}

// feed brings the batch.
func (b *builder) feed() {
	t := plan.Task{Kind: plan.Feed, Name: "batch", Lane: plan.Lane{Kind: plan.Reader}}
	for micro := range b.micros() {
		for _, n := range Inputs(b.step, b.plan.Name) {
			t.Out = append(t.Out, b.of(n, micro))
		}
	}
	b.add(t)
}

// compute runs a segment on a micro-batch.
func (b *builder) compute(seg, micro int) int {
	return b.computeWith(seg, func(n *graph.Node) plan.Ref { return b.of(n, micro) })
}

// computeWith runs a segment on the values that stand for its nodes.
func (b *builder) computeWith(seg int, value func(*graph.Node) plan.Ref) int {
	s := &b.step.Segments[seg]
	t := plan.Task{Kind: plan.Compute, Name: s.Name, Seg: seg, Lane: plan.Lane{Kind: plan.Device}}
	for _, n := range s.In {
		t.In = append(t.In, value(n))
	}
	for _, n := range s.Out {
		t.Out = append(t.Out, value(n))
	}
	return b.add(t)
}

// gather reads the rows of tables that the worker holds.
func (b *builder) gather() {
	for p := range b.tables() {
		for micro := range b.micros() {
			if b.plan.Name == EvalPlan {
				b.compute(p.EvalGather, micro)
			} else {
				b.compute(p.Gather, micro)
			}
		}
	}
}

// forward computes loss and gradients, of one micro-batch after the other, and adds
// them up as they are made; send may send off the gradients that are complete.
func (b *builder) forward(send func(made []*graph.Param)) {
	last := b.micros() - 1
	for micro := range b.micros() {
		for _, seg := range b.step.Forward {
			b.compute(seg, micro)
			out := b.step.Segments[seg].Out
			for _, n := range []*graph.Node{b.step.Model.Loss, b.step.Model.Weight} {
				if micro > 0 && slices.Contains(out, n) {
					b.addTo(n, micro)
				}
			}
			var made []*graph.Param
			for i := range b.step.Params {
				p := &b.step.Params[i]
				if !slices.Contains(out, p.Grad) {
					continue
				}
				switch {
				case p.IsTable():
				case last > 0 && p.Grad.DType.IsHalf():
					b.addWide(p.Grad, micro)
				case micro > 0:
					b.addTo(p.Grad, micro)
				}
				if micro == last {
					made = append(made, p)
					b.complete(p)
				}
			}
			if micro == last {
				send(made)
			}
		}
	}
}

// addTo adds what a micro-batch has of a node to the sum of those before.
func (b *builder) addTo(n *graph.Node, micro int) {
	sum := b.of(n, 0)
	b.add(plan.Task{
		Kind: plan.Add, Name: n.Name, Lane: plan.Lane{Kind: plan.Device},
		In: []plan.Ref{sum, b.of(n, micro)}, Out: []plan.Ref{sum},
	})
}

// addWide is addTo for gradients of 16 bits, all in values of their own: they are added
// up in float32, and with the last rounded to what is sent.
func (b *builder) addWide(n *graph.Node, micro int) {
	grad := b.node(n)
	wide, ok := b.wides[grad]
	if !ok {
		wide = b.like(n.Name+".wide", grad, b.plan.Values[grad].State)
		b.plan.Values[wide].DType = tensor.F32
		b.wides[grad] = wide
	}
	t := plan.Task{
		Kind: plan.Add, Name: n.Name, Lane: plan.Lane{Kind: plan.Device},
		In: []plan.Ref{{Value: wide}, b.of(n, micro)}, Out: refs(wide),
	}
	switch micro {
	case 0:
		t.In = t.In[1:]
	case b.micros() - 1:
		t.Out = refs(grad)
	}
	b.add(t)
}

// complete notes where the gradient of a parameter is when all micro-batches have
// been computed: where that of the first was, but for a table, of which each has
// other rows.
func (b *builder) complete(p *graph.Param) {
	if !p.IsTable() {
		b.sums[p] = gradient{sum: b.node(p.Grad)}
		return
	}
	if b.micros() == 1 {
		b.sums[p] = gradient{keys: b.node(p.Keys), sum: b.node(p.Grad)}
		return
	}
	sum := gradient{
		keys: b.like(p.Var.Name+".keys.sum", b.node(p.Keys), b.node(p.Var)),
		sum:  b.like(p.Var.Name+".grad.sum", b.node(p.Grad), b.node(p.Var)),
	}
	t := plan.Task{Kind: plan.Add, Name: p.Grad.Name, Lane: plan.Lane{Kind: plan.Device}, Out: refs(sum.keys, sum.sum)}
	for micro := range b.micros() {
		t.In = append(t.In, b.of(p.Keys, micro), b.of(p.Grad, micro))
	}
	b.add(t)
	b.sums[p] = sum
}

// commit agrees with all workers on the weight of the step, and whether what
// they have is finite. It waits for the given tasks besides.
func (b *builder) commit(after ...int) int { return b.commitBy(b.group(), after...) }

// commitBy is a commit of those whom a lane is of.
func (b *builder) commitBy(lane plan.Lane, after ...int) int {
	t := plan.Task{Kind: plan.Commit, Name: "step", Lane: lane, Group: lane.ID, Tag: b.nextTag()}
	loss := b.node(b.step.Model.Loss)
	t.In = refs(b.node(b.step.Model.Weight), loss)
	for i := range b.step.Params {
		t.In = append(t.In, refs(b.sums[&b.step.Params[i]].sum)...)
	}
	if s := b.step.Scaling; s != nil {
		t.In = append(t.In, refs(b.node(s.Var))...)
	}
	t.Out = refs(b.node(b.step.Total), b.like("loss.total", loss, plan.NoState))
	return b.add(t, after...)
}

// update applies the rule of every parameter to what its gradient has become.
func (b *builder) update() {
	for i := range b.step.Params {
		p := &b.step.Params[i]
		b.computeWith(p.Update, func(n *graph.Node) plan.Ref {
			switch n {
			case p.Grad:
				return plan.Ref{Value: b.sums[p].sum}
			case p.Keys:
				return plan.Ref{Value: b.sums[p].keys}
			}
			return b.of(n, 0)
		})
	}
	if s := b.step.Scaling; s != nil {
		b.compute(s.Update, 0)
	}
}

// nextStep makes tasks wait for one that comes later in the list, of the step
// before: a pull must see the update, and overwrites what was computed with.
func (b *builder) nextStep(tasks []int, last int) {
	for _, i := range tasks {
		b.tasks[i].After = append(b.tasks[i].After, plan.Dep{Task: last, Lag: 1})
	}
}
