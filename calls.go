package gangline

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/reduce"
	"github.com/gangline/gangline/tensor"
)

// Option is what a call may be given beside its slice: a Reduction, Name or Within.
type Option interface{ apply(*call) }

// Reduction is what becomes of values that meet.
type Reduction reduce.Op

// The reductions. Whole numbers wrap, and have no Mean; Min and Max of NaN are NaN.
const (
	Sum  = Reduction(reduce.Sum)
	Min  = Reduction(reduce.Min)
	Max  = Reduction(reduce.Max)
	Prod = Reduction(reduce.Prod)
	Mean = Reduction(reduce.Mean)
)

func (r Reduction) apply(c *call) { c.key.reduction = reduce.Op(r) }

// Name of the value: ranks compare it, and errors name it. 64 bytes of it count.
type Name string

func (n Name) apply(c *call) { c.key.name = string(n) }

// Within is the deadline of a call, from when it is made.
type Within time.Duration

func (d Within) apply(c *call) { c.within = time.Duration(d) }

// runnerKey is what the calls of one runner have in common.
type runnerKey struct {
	goal      collective.Goal
	reduction reduce.Op
	dtype     tensor.DType
	elems     int
	root      int
	name      string
}

// runnersMax bounds the runners that a group keeps: calls of so many kinds are made
// without making a runner first.
const runnersMax = 256

// AllReduce leaves every rank the sum of all ranks' slices, or another Reduction. Every
// rank ends with the same bits.
func (g *Group) AllReduce(ctx context.Context, values any, options ...Option) error {
	return g.make(ctx, collective.AllReduce, values, 0, options)
}

// Reduce leaves root the sum of all ranks' slices, or another Reduction; what is in
// those of others is then undefined.
func (g *Group) Reduce(ctx context.Context, values any, root int, options ...Option) error {
	return g.make(ctx, collective.Reduce, values, root, options)
}

// Broadcast copies root's slice to all.
func (g *Group) Broadcast(ctx context.Context, values any, root int, options ...Option) error {
	return g.make(ctx, collective.Broadcast, values, root, options)
}

// ReduceScatter leaves each rank its Chunk of the sum of all slices, or of another
// Reduction; the rest of the slice is then undefined.
func (g *Group) ReduceScatter(ctx context.Context, values any, options ...Option) error {
	return g.make(ctx, collective.ReduceScatter, values, 0, options)
}

// AllGather gives each rank's Chunk of the slice to all.
func (g *Group) AllGather(ctx context.Context, values any, options ...Option) error {
	return g.make(ctx, collective.AllGather, values, 0, options)
}

// Gather gives each rank's Chunk of the slice to root.
func (g *Group) Gather(ctx context.Context, values any, root int, options ...Option) error {
	return g.make(ctx, collective.Gather, values, root, options)
}

// Scatter gives each rank its Chunk of root's slice; the rest of it stays.
func (g *Group) Scatter(ctx context.Context, values any, root int, options ...Option) error {
	return g.make(ctx, collective.Scatter, values, root, options)
}

// AllToAll gives the i-th of Size equal parts of in to rank i, and leaves in the i-th
// part of out what rank i gave to this one. Both slices have the same length on all
// ranks, a multiple of Size.
func (g *Group) AllToAll(ctx context.Context, in, out any, options ...Option) error {
	c, err := g.allToAll(ctx, in, out, options)
	if err != nil {
		return err
	}
	return g.do(c)
}

// Barrier returns when all ranks have called it.
func (g *Group) Barrier(ctx context.Context, options ...Option) error {
	c, err := g.barrier(ctx, options)
	if err != nil {
		return err
	}
	return g.do(c)
}

// StartAllReduce begins an AllReduce: see Handle.
func (g *Group) StartAllReduce(ctx context.Context, values any, options ...Option) *Handle {
	return g.begin(ctx, collective.AllReduce, values, 0, options)
}

// StartReduce begins a Reduce.
func (g *Group) StartReduce(ctx context.Context, values any, root int, options ...Option) *Handle {
	return g.begin(ctx, collective.Reduce, values, root, options)
}

// StartBroadcast begins a Broadcast.
func (g *Group) StartBroadcast(ctx context.Context, values any, root int, options ...Option) *Handle {
	return g.begin(ctx, collective.Broadcast, values, root, options)
}

// StartReduceScatter begins a ReduceScatter.
func (g *Group) StartReduceScatter(ctx context.Context, values any, options ...Option) *Handle {
	return g.begin(ctx, collective.ReduceScatter, values, 0, options)
}

// StartAllGather begins an AllGather.
func (g *Group) StartAllGather(ctx context.Context, values any, options ...Option) *Handle {
	return g.begin(ctx, collective.AllGather, values, 0, options)
}

// StartAllToAll begins an AllToAll.
func (g *Group) StartAllToAll(ctx context.Context, in, out any, options ...Option) *Handle {
	c, err := g.allToAll(ctx, in, out, options)
	if err != nil {
		return (&Handle{done: make(chan struct{})}).fail(err)
	}
	return g.enqueue(c)
}

// StartBarrier begins a Barrier.
func (g *Group) StartBarrier(ctx context.Context, options ...Option) *Handle {
	c, err := g.barrier(ctx, options)
	if err != nil {
		return (&Handle{done: make(chan struct{})}).fail(err)
	}
	return g.enqueue(c)
}

// make makes a call, and begin starts one.
func (g *Group) make(ctx context.Context, goal collective.Goal, values any, root int, options []Option) error {
	c, err := g.newCall(ctx, goal, values, root, options)
	if err != nil {
		return err
	}
	return g.do(c)
}

func (g *Group) begin(ctx context.Context, goal collective.Goal, values any, root int, options []Option) *Handle {
	c, err := g.newCall(ctx, goal, values, root, options)
	if err != nil {
		return (&Handle{done: make(chan struct{})}).fail(err)
	}
	return g.enqueue(c)
}

// newCall checks what can be checked without the others.
func (g *Group) newCall(ctx context.Context, goal collective.Goal, values any, root int, options []Option) (*call, error) {
	c := &call{ctx: ctx, within: g.world.cfg.Timeout, key: runnerKey{goal: goal, root: root}}
	if goal != collective.Barrier {
		var err error
		if c.values, err = wrap(values); err != nil {
			return nil, fmt.Errorf("gangline: %v: %w", goal, err)
		}
		c.key.dtype, c.key.elems = c.values.DType(), c.values.Elems()
	}
	if root < 0 || root >= len(g.members) {
		return nil, fmt.Errorf("gangline: %v: root %d of a group of %d", goal, root, len(g.members))
	}
	for _, o := range options {
		o.apply(c)
	}
	if c.within <= 0 {
		return nil, fmt.Errorf("gangline: %v: within %v", goal, c.within)
	}
	return c, nil
}

func (g *Group) barrier(ctx context.Context, options []Option) (*call, error) {
	return g.newCall(ctx, collective.Barrier, nil, 0, options)
}

// allToAll checks the second slice.
func (g *Group) allToAll(ctx context.Context, in, out any, options []Option) (*call, error) {
	c, err := g.newCall(ctx, collective.AllToAll, in, 0, options)
	if err != nil {
		return nil, err
	}
	c.out, err = wrap(out)
	switch {
	case err != nil:
		return nil, fmt.Errorf("gangline: %v: %w", c, err)
	case c.out.DType() != c.key.dtype || c.out.Elems() != c.key.elems || c.key.elems%len(g.members) != 0:
		return nil, fmt.Errorf("gangline: %v to %v[%d]: want two slices of one type and length, which is a multiple of %d",
			c, c.out.DType(), c.out.Elems(), len(g.members))
	}
	return c, nil
}

// wrap makes a tensor over a slice.
func wrap(values any) (*tensor.Tensor, error) {
	switch v := values.(type) {
	case []float32:
		return tensor.From(v, len(v)), nil
	case []float64:
		return tensor.From(v, len(v)), nil
	case []int32:
		return tensor.From(v, len(v)), nil
	case []int64:
		return tensor.From(v, len(v)), nil
	}
	return nil, fmt.Errorf("%T: want a slice of float32, float64, int32 or int64", values)
}

// String is what ranks must agree on.
func (c *call) String() string {
	var b strings.Builder
	b.WriteString(c.key.goal.String())
	if goal := c.key.goal; goal == collective.AllReduce || goal == collective.Reduce || goal == collective.ReduceScatter {
		b.WriteString(" " + c.key.reduction.String())
	}
	if c.key.name != "" {
		b.WriteString(" " + strconv.Quote(c.key.name))
	}
	if c.key.goal == collective.Barrier {
		return b.String()
	}
	fmt.Fprintf(&b, " %v[%d]", c.key.dtype, c.key.elems)
	if goal := c.key.goal; goal == collective.Broadcast || goal == collective.Reduce || goal == collective.Gather || goal == collective.Scatter {
		fmt.Fprintf(&b, " root %d", c.key.root)
	}
	return b.String()
}

// runner performs calls of one kind.
type runner func(ctx context.Context, c *call) error

// runner returns the one of a kind. Members make and forget runners alike, since
// they make the same calls.
func (g *Group) runner(key runnerKey) (runner, error) {
	if r := g.runners[key]; r != nil {
		return r, nil
	}
	r, err := g.newRunner(key)
	if err != nil {
		return nil, err
	}
	if len(g.runners) >= runnersMax {
		clear(g.runners)
	}
	g.runners[key] = r
	return r, nil
}

func (g *Group) newRunner(key runnerKey) (runner, error) {
	n := len(g.members)
	if n == 1 {
		return alone, nil
	}
	party := collective.Party{Endpoint: g.world.endpoint, Streams: g.streams, Group: g.members, Index: g.index}
	options := collective.Options{Reduction: key.reduction, Name: key.name}
	if key.goal == collective.Barrier {
		r, err := collective.NewBarrier(party, options)
		return func(ctx context.Context, _ *call) error { return r.Run(ctx) }, err
	}
	if key.goal == collective.AllToAll {
		each := make([]int, n)
		for i := range each {
			each[i] = key.elems / n
		}
		r, err := collective.NewAllToAll(party, key.dtype, each, each, options)
		return func(ctx context.Context, c *call) error { return r.Run(ctx, c.values, c.out) }, err
	}
	schedule, order, err := g.plan(key)
	if err != nil {
		return nil, err
	}
	party.Group = make([]int, n)
	for i, member := range order {
		party.Group[i] = g.members[member]
		if member == g.index {
			party.Index = i
		}
	}
	r, err := collective.NewRunner(party, schedule, key.dtype, key.elems, options)
	return func(ctx context.Context, c *call) error { return r.Run(ctx, c.values) }, err
}

// alone performs any call in a group of one.
func alone(ctx context.Context, c *call) error {
	if c.out != nil {
		copy(c.out.Bytes(), c.values.Bytes())
	}
	return ctx.Err()
}
