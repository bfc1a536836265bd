package strategy

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// gradArena is the arena of dense gradients.
const gradArena = 1

// AllReduce gives every worker a copy of all parameters. Between a gradient and
// the update stands one AllReduce, which leaves as soon as the backward pass
// has made the gradient; for a table it is an AllGatherRows of the rows that
// the workers met. All then make the same update.
func AllReduce(step *graph.Step, c Cluster) (*plan.Program, error) {
	if c.Workers < 1 || c.Servers != 0 {
		return nil, fmt.Errorf("strategy allreduce: %d workers and %d servers: want at least one worker and no servers", c.Workers, c.Servers)
	}
	return program(step, c, allReduceStep, localEval), nil
}

func allReduceStep(b *builder) {
	b.holdOnWorkers()
	b.feed()
	b.gather()
	b.forward(func(made []*graph.Param) {
		for _, p := range made {
			b.reduce(p)
		}
	})
	b.commit()
	b.update()
}

// place puts a value behind the last in the arena: dense gradients lie one
// behind the other, in the order in which the backward pass makes them. So
// those that are ready one after the other can be summed together, as one run
// of bytes (the gaps are zero and stay it), and over memory that peers share
// they can be summed where they are: neither needs a copy. Offsets are multiples
// of a cache line: no two gradients share one, and what Alloc aligned stays so.
func (b *builder) place(value int) {
	const line = 64
	v := &b.plan.Values[value]
	v.Arena, v.Offset = gradArena, b.arena
	b.arena += (v.Shape.Elems()*v.DType.Size() + line - 1) / line * line
}

// reduce sums the gradient of a parameter over the workers: in place, or for a
// table into values of their own, since their rows are others.
func (b *builder) reduce(p *graph.Param) {
	t := plan.Task{Kind: plan.Collective, Op: plan.AllReduce, Name: p.Var.Name, Lane: b.group(), Tag: b.nextTag()}
	if !p.IsTable() {
		b.place(b.node(p.Grad))
		t.In = refs(b.node(p.Grad))
		t.Out = t.In
		b.add(t)
		return
	}
	t.Op = plan.AllGatherRows
	t.In = refs(b.node(p.Keys), b.node(p.Grad))
	all := gradient{
		keys: b.like(p.Var.Name+".keys.all", b.node(p.Keys), b.node(p.Var)),
		sum:  b.like(p.Var.Name+".grad.all", b.node(p.Grad), b.node(p.Var)),
	}
	t.Out = refs(all.keys, all.sum)
	b.sums[p] = all
	b.add(t)
}
