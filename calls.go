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
	barrier   bool
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
	t, err := wrap(values)
	if err != nil {
		return nil, fmt.Errorf("gangline: %v: %w", goal, err)
	}
	if root < 0 || root >= len(g.members) {
		return nil, fmt.Errorf("gangline: %v: root %d of a group of %d", goal, root, len(g.members))
	}
	c := &call{ctx: ctx, values: t, within: g.world.cfg.Timeout, key: runnerKey{goal: goal, dtype: t.DType(), elems: t.Elems(), root: root}}
	for _, o := range options {
		o.apply(c)
	}
	if c.within <= 0 {
		return nil, fmt.Errorf("gangline: %v: within %v", goal, c.within)
	}
	return c, nil
}

func (g *Group) barrier(ctx context.Context, options []Option) (*call, error) {
	c, err := g.newCall(ctx, collective.AllReduce, []int32{0}, 0, options)
	if err == nil {
		c.key.barrier = true
	}
	return c, err
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
	if c.key.barrier {
		b.WriteString("barrier")
	} else {
		b.WriteString(c.key.goal.String())
		switch c.key.goal {
		case collective.AllReduce, collective.Reduce, collective.ReduceScatter:
			b.WriteString(" " + c.key.reduction.String())
		default:
		}
	}
	if c.key.name != "" {
		b.WriteString(" " + strconv.Quote(c.key.name))
	}
	if c.key.barrier {
		return b.String()
	}
	fmt.Fprintf(&b, " %v[%d]", c.key.dtype, c.key.elems)
	switch c.key.goal {
	case collective.Broadcast, collective.Reduce, collective.Gather, collective.Scatter:
		fmt.Fprintf(&b, " root %d", c.key.root)
	default:
	}
	return b.String()
}

// run performs the call.
func (c *call) run(ctx context.Context, r *collective.Runner) error {
	if r == nil { // alone: there is nobody to give to
		return ctx.Err()
	}
	return r.Run(ctx, c.values)
}

// runner returns the one of a call; nil if there is nothing to do. Members make and
// forget runners alike, since they make the same calls.
func (g *Group) runner(key runnerKey) (*collective.Runner, error) {
	if r := g.runners[key]; r != nil {
		return r, nil
	}
	if len(g.members) == 1 {
		return nil, nil
	}
	schedule, order := plan(key, len(g.members))
	party := collective.Party{Endpoint: g.world.endpoint, Streams: g.streams, Group: make([]int, len(order))}
	for i, member := range order {
		party.Group[i] = g.members[member]
		if member == g.index {
			party.Index = i
		}
	}
	name := key.name
	if key.barrier {
		name = "barrier " + name
	}
	r, err := collective.NewRunner(party, schedule, key.dtype, key.elems, collective.Options{Reduction: key.reduction, Name: name, Shape: tensor.Shape{key.elems}})
	if err != nil {
		return nil, err
	}
	if len(g.runners) >= runnersMax {
		clear(g.runners)
	}
	g.runners[key] = r
	return r, nil
}
