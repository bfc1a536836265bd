package strategy

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
)

// paramArena is the arena of parameters: as they are (stages 1 and 2), or gathered for
// a while (stage 3).
const paramArena = 2

// Zero cuts the state of training in shards, one for each worker (ZeRO: Rajbhandari et
// al. 2020). Between gradients and update stands one ReduceScatter a bucket: it leaves
// each worker its shard of the sums, with which it updates its shard of the parameters,
// and an AllGather gives all of them to all.
//
//   - Stage 1 cuts the slots. The AllGather comes after the update.
//   - Stage 2 also cuts the gradients: whole ones live until they are scattered, in
//     memory of two buckets. Micro-batches are scattered one by one.
//   - Stage 3 also cuts the parameters: a bucket is gathered for the forward segments
//     that read it, and again for the backward ones, in memory that is then another's.
//     How little that is depends on how the step is cut (see package graph/cut).
//
// A worker sends (N-1)/N of the bytes of all gradients for the ReduceScatter (in stage 2
// and 3 of every micro-batch), and as many of the parameters for every AllGather: one in
// stages 1 and 2, two in stage 3. Tables are as in AllReduce.
func Zero(step *graph.Step, c Cluster) (*plan.Program, error) {
	bad := func(format string, args ...any) (*plan.Program, error) {
		return nil, fmt.Errorf("strategy zero: "+format, args...)
	}
	switch {
	case c.Workers < 1 || c.Servers != 0:
		return bad("%d workers and %d servers: want at least one worker and no servers", c.Workers, c.Servers)
	case c.Bucket < 0:
		return bad("buckets of %d bytes: want 1 or more, or 0 for the default", c.Bucket)
	case c.Stage < 0 || c.Stage > 3:
		return bad("stage %d: want 1, 2 or 3", c.Stage)
	case c.Slices > 0:
		return bad("it sums by worker, and steps in slices are for serial and allreduce")
	case step.Graph.Type().IsHalf():
		return bad("the graph is in %v: want f32 or f64, or strategy allreduce", step.Graph.Type())
	}
	for i := range step.Params {
		if p := &step.Params[i]; p.Rule.Kind == optim.LAMB && !p.IsTable() {
			return bad("%s: lamb divides by the norm of a whole parameter, of which a worker has a shard: set optimizer.kind adamw, or strategy.kind allreduce", p.Var.Name)
		}
	}
	if err := c.checkHosts(); err != nil {
		return nil, fmt.Errorf("strategy zero: %w", err)
	}
	c.Stage = max(c.Stage, 1)
	return program(step, c, func(b *builder) { newZero(b).step() }, func(b *builder) { newZero(b).eval() }), nil
}

// zero writes the tasks of the strategy.
type zero struct {
	*builder
	runs  []zeroRun
	runOf map[*graph.Node]int // bucket of a variable
	of    map[*graph.Node]int // what stands for a variable where it is read whole
	shard map[*graph.Node]int // where a gradient's shard is (stages 2 and 3)
	part  map[*graph.Node]int // where that of a micro-batch but the first is
}

// zeroRun is a bucket: parameters whose gradients are made one after the other.
type zeroRun struct {
	params []*graph.Param
	made   int   // gradients of the micro-batch so far
	bytes  int   // from the first to the last, with what is between
	reads  []int // positions in Step.Forward of segments that read a parameter
	at     int   // of gathered parameters: where in the arena
}

func newZero(b *builder) *zero {
	z := &zero{
		builder: b, runOf: map[*graph.Node]int{}, of: map[*graph.Node]int{}, shard: map[*graph.Node]int{}, part: map[*graph.Node]int{},
	}
	z.cut()
	return z
}

// cut makes the buckets, and says who owns what of them.
func (z *zero) cut() {
	limit := z.c.Bucket
	if limit == 0 {
		limit = BucketDefault
	}
	size := 0
	for _, p := range z.backward() {
		v := &z.plan.Values[z.node(p.Var)]
		last := len(z.runs) - 1
		if last < 0 || size+v.Bytes() > limit || z.runs[last].params[0].Var.DType != v.DType {
			z.runs, size, last = append(z.runs, zeroRun{}), 0, last+1
		}
		r := &z.runs[last]
		r.params = append(r.params, p)
		z.runOf[p.Var] = last
		size += v.Bytes()
	}
	for i := range z.runs {
		r := &z.runs[i]
		for _, p := range r.params {
			r.bytes = lines(r.bytes) + p.Var.Shape.Elems()*p.Var.DType.Size()
		}
		z.own(r)
	}
	for _, s := range z.params {
		if z.table[s] || !z.plan.Values[s].Sharded {
			z.holdEverywhere(s, 0)
		} else if z.c.Stage < 3 && z.plan.Name == StepPlan {
			z.holdEverywhere(s, none)
		}
	}
}

// none is no worker.
const none = -1

// lines rounds bytes up to whole cache lines.
func lines(n int) int { return (n + plan.Line - 1) / plan.Line * plan.Line }

// backward lists the parameters that are no tables as the backward pass makes their
// gradients.
func (z *zero) backward() (params []*graph.Param) {
	for _, seg := range z.builder.step.Forward {
		for i := range z.builder.step.Params {
			if p := &z.builder.step.Params[i]; !p.IsTable() && slices.Contains(z.builder.step.Segments[seg].Out, p.Grad) {
				params = append(params, p)
			}
		}
	}
	return params
}

// own cuts a bucket in shards, one a worker, and its slots as it. What is evaluated on
// parameters that a worker holds whole, is not cut.
func (z *zero) own(r *zeroRun) {
	if z.c.Stage < 3 && z.plan.Name == EvalPlan {
		return
	}
	at := 0
	for _, p := range r.params {
		s := z.node(p.Var)
		size, n := p.Var.DType.Size(), p.Var.Shape.Elems()
		at = lines(at)
		for v := range z.plan.Values {
			if val := &z.plan.Values[v]; v == s || val.Class == plan.Slot && val.State == s {
				val.Sharded = true
			}
		}
		for rank := range z.c.Workers {
			lo := min(max(plan.Cut(rank, z.c.Workers, r.bytes/size)-at/size, 0), n)
			hi := min(max(plan.Cut(rank+1, z.c.Workers, r.bytes/size)-at/size, 0), n)
			if lo < hi {
				z.hold(plan.Holding{State: s, Lo: lo, Hi: hi, Rank: rank, Store: -1, Owner: true})
			}
		}
		at += n * size
	}
}

// holdEverywhere gives every worker all of a parameter: with its slots, which one owns,
// or without, as copies.
func (z *zero) holdEverywhere(s, owner int) {
	for rank := range z.c.Workers {
		h := plan.Holding{State: s, Hi: z.plan.Values[s].Shape.Elems(), Rank: rank, Store: -1, Owner: rank == owner}
		if owner == none {
			z.plan.Holdings = append(z.plan.Holdings, h)
		} else {
			z.hold(h)
		}
	}
}

// step writes the tasks of a step.
func (z *zero) step() {
	z.placeParams()
	z.placeGrads()
	z.feed()
	z.gather()
	var gathers []int
	for micro := range z.micros() {
		gathers = append(gathers, z.pass(micro)...)
	}
	z.commit()
	updates := z.updates()
	if z.c.Stage == 3 {
		z.nextStep(gathers, updates[len(updates)-1])
	}
}

// pass computes loss and gradients of a micro-batch and scatters what is complete.
func (z *zero) pass(micro int) (gathers []int) {
	step := z.builder.step
	last := z.micros() - 1
	for i := range z.runs {
		z.runs[i].made = 0
	}
	for at, seg := range step.Forward {
		gathers = append(gathers, z.gatherFor(at)...)
		z.segment(seg, micro)
		out := step.Segments[seg].Out
		for _, n := range []*graph.Node{step.Model.Loss, step.Model.Weight} {
			if micro > 0 && slices.Contains(out, n) {
				z.addTo(n, micro)
			}
		}
		for i := range step.Params {
			p := &step.Params[i]
			switch {
			case !slices.Contains(out, p.Grad):
			case p.IsTable() && micro == last:
				z.complete(p)
				z.gatherRows(p)
			case !p.IsTable():
				z.made(p, micro)
			}
		}
	}
	return gathers
}

// made scatters the bucket of a gradient when all of it is made: in stage 1 when all
// micro-batches have added to it.
func (z *zero) made(p *graph.Param, micro int) {
	r := &z.runs[z.runOf[p.Var]]
	r.made++
	if z.c.Stage == 1 && micro > 0 {
		z.addTo(p.Grad, micro)
	}
	if r.made < len(r.params) || z.c.Stage == 1 && micro < z.micros()-1 {
		return
	}
	t := z.collective(plan.ReduceScatter, r)
	for _, p := range r.params {
		t.In = append(t.In, refs(z.node(p.Grad))...)
		z.sums[p] = gradient{sum: z.node(p.Grad)}
		if z.c.Stage == 1 {
			continue
		}
		z.sums[p] = gradient{sum: z.shard[p.Grad]}
		to := z.shard
		if micro > 0 {
			to = z.part
		}
		t.Out = append(t.Out, refs(to[p.Grad])...)
	}
	if z.c.Stage == 1 {
		t.Out = t.In
	}
	z.add(t)
	for _, p := range r.params {
		if z.c.Stage > 1 && micro > 0 {
			sum := refs(z.shard[p.Grad])
			z.add(plan.Task{
				Kind: plan.Add, Name: p.Grad.Name, Lane: plan.Lane{Kind: plan.Device}, In: append(sum, refs(z.part[p.Grad])...), Out: sum,
			})
		}
	}
}

// collective begins a task on a bucket.
func (z *zero) collective(op plan.Op, r *zeroRun) plan.Task {
	t := plan.Task{Kind: plan.Collective, Op: op, Name: r.params[0].Var.Name, Lane: z.group(), Tag: z.nextTag()}
	if n := len(r.params); n > 1 {
		t.Name += ".." + r.params[n-1].Var.Name
	}
	return t
}

// updates applies the rule to the shards, of the buckets first that the forward pass
// needs first, which are the last that the backward pass made; in stages 1 and 2 it
// gathers them, and the next step waits for them where it reads them.
func (z *zero) updates() (tasks []int) {
	for i := len(z.runs) - 1; i >= 0; i-- {
		for _, p := range z.runs[i].params {
			tasks = append(tasks, z.updateOne(p))
		}
		if z.c.Stage == 3 {
			continue
		}
		t := z.collective(plan.AllGather, &z.runs[i])
		for _, p := range z.runs[i].params {
			t.In = append(t.In, refs(z.node(p.Var))...)
		}
		t.Out = t.In
		readers := z.readers(t.In)
		z.nextStep(readers, z.add(t))
	}
	for p := range z.tables() {
		tasks = append(tasks, z.updateOne(p))
	}
	return tasks
}

// readers are the first tasks of every lane that read one of some parameters: those
// that come later on a lane wait with them.
func (z *zero) readers(params []plan.Ref) (first []int) {
	lanes := map[plan.Lane]bool{}
	for i := range z.tasks {
		t := &z.tasks[i]
		reads := slices.ContainsFunc(t.In, func(r plan.Ref) bool { return slices.Contains(params, r) })
		if reads && !lanes[t.Lane] {
			lanes[t.Lane] = true
			first = append(first, i)
		}
	}
	return first
}

// updateOne applies the rule of a parameter.
func (z *zero) updateOne(p *graph.Param) int {
	return z.computeWith(p.Update, func(n *graph.Node) plan.Ref {
		switch n {
		case p.Grad:
			return plan.Ref{Value: z.sums[p].sum}
		case p.Keys:
			return plan.Ref{Value: z.sums[p].keys}
		}
		return z.builder.of(n, 0)
	})
}

// segment computes on whole parameters, and on whole gradients, of which in stages 2
// and 3 one micro-batch after the other has the memory.
func (z *zero) segment(seg, micro int) int {
	return z.computeWith(seg, func(n *graph.Node) plan.Ref {
		if v, ok := z.of[n]; ok {
			return plan.Ref{Value: v}
		}
		if _, ok := z.shard[n]; ok {
			return plan.Ref{Value: z.node(n)}
		}
		return z.builder.of(n, micro)
	})
}

// eval evaluates on parameters that the worker holds, or gathers (stage 3).
func (z *zero) eval() {
	if z.c.Stage < 3 {
		z.feed()
		z.gather()
		z.compute(z.builder.step.Eval, 0)
		return
	}
	segments := evalSegments(z.builder.step)
	z.placeGathered(segments)
	z.feed()
	z.gather()
	var gathers []int
	last := 0
	for at, seg := range segments {
		gathers = append(gathers, z.gatherFor(at)...)
		last = z.segment(seg, 0)
	}
	z.nextStep(gathers, last)
}
