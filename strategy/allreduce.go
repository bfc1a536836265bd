package strategy

import (
	"fmt"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// gradArena is the arena of dense gradients.
const gradArena = 1

// AllReduce gives every worker a copy of all parameters. Between a gradient and
// the update stands one AllReduce of the bucket that it is in: gradients that the
// backward pass makes one after the other, as many as Cluster.Bucket holds. It
// leaves as soon as they are made, while the next ones are computed, compressed if
// Cluster.Compression says so. For a table it is an AllGatherRows of the rows that the
// workers met. All then make the same update.
func AllReduce(step *graph.Step, c Cluster) (*plan.Program, error) {
	if c.Workers < 1 || c.Servers != 0 {
		return nil, fmt.Errorf("strategy allreduce: %d workers and %d servers: want at least one worker and no servers", c.Workers, c.Servers)
	}
	if c.Bucket < 0 {
		return nil, fmt.Errorf("strategy allreduce: buckets of %d bytes: want 1 or more, or 0 for the default", c.Bucket)
	}
	if err := c.checkHosts(); err != nil {
		return nil, fmt.Errorf("strategy allreduce: %w", err)
	}
	if err := c.checkCompression(); err != nil {
		return nil, fmt.Errorf("strategy allreduce: %w", err)
	}
	if c.Slices > 0 {
		return inSlices(step, c)
	}
	chooser, err := cost.NewChooser(c.Workers, c.Machine())
	if err != nil {
		return nil, fmt.Errorf("strategy allreduce: %w", err)
	}
	if err := c.checkAlgorithm(); err != nil {
		return nil, fmt.Errorf("strategy allreduce: %w", err)
	}
	return program(step, c, func(b *builder) {
		b.chooser, b.plan.Hosts = chooser, c.Hosts
		allReduceStep(b)
	}, localEval), nil
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
	b.sendBucket()
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
	v := &b.plan.Values[value]
	v.Arena, v.Offset = gradArena, b.arena
	b.placeLevels(value)
	b.arena += (v.Bytes() + plan.Line - 1) / plan.Line * plan.Line
}

// bucket is the gradients that will be summed together.
type bucket struct {
	params []*graph.Param
	bytes  int
}

// reduce sums the gradient of a parameter over the workers: in place, with others
// of its bucket; or for a table into values of their own, since their rows are others.
func (b *builder) reduce(p *graph.Param) {
	if p.IsTable() {
		b.gatherRows(p)
		return
	}
	limit := b.c.Bucket
	if limit == 0 {
		limit = BucketDefault
	}
	grad := b.node(p.Grad)
	size := b.plan.Values[grad].Bytes()
	if b.bucket.bytes+size > limit || !b.sameType(grad) {
		b.sendBucket()
	}
	b.place(grad)
	b.bucket.params = append(b.bucket.params, p)
	if b.bucket.bytes += size; b.bucket.bytes >= limit {
		b.sendBucket()
	}
}

// sameType reports whether a value is of the type of the others in the bucket.
func (b *builder) sameType(value int) bool {
	if len(b.bucket.params) == 0 {
		return true
	}
	return b.plan.Values[b.node(b.bucket.params[0].Grad)].DType == b.plan.Values[value].DType
}

// sendBucket sums what is in the bucket, if anything is, and begins another.
func (b *builder) sendBucket() {
	params, bytes := b.bucket.params, b.bucket.bytes
	b.bucket = bucket{}
	if len(params) == 0 {
		return
	}
	t := plan.Task{Kind: plan.Collective, Op: plan.AllReduce, Name: params[0].Var.Name, Lane: b.group(), Tag: b.nextTag()}
	for _, p := range params {
		t.In = append(t.In, refs(b.node(p.Grad))...)
	}
	if n := len(params); n > 1 {
		t.Name += ".." + params[n-1].Var.Name
	}
	t.Out = t.In
	if b.c.Slices > 0 {
		b.overTree(&t, params)
		b.add(t)
		return
	}
	if t.Codec = b.c.codec(bytes, b.plan.Values[t.In[0].Value].DType); t.Codec == "" {
		t.Algorithm = b.algorithm(cost.Bytes(b.plan, &t))
	}
	b.add(t)
}

// algorithm is how so many bytes are summed.
func (b *builder) algorithm(bytes int) plan.Algorithm {
	if forced, err := plan.ParseAlgorithm(b.c.Algorithm); err == nil {
		return forced
	}
	return b.chooser.Choices(bytes)[0].Algorithm
}

// checkAlgorithm fails if the algorithm asked for is none for the cluster.
func (c *Cluster) checkAlgorithm() error {
	if c.Algorithm == "" {
		return nil
	}
	a, err := plan.ParseAlgorithm(c.Algorithm)
	if err == nil && a == plan.ByHosts && len(c.Hosts) < 2 {
		err = fmt.Errorf("algorithm %v needs workers on several hosts", a)
	}
	return err
}

// gatherRows sums the gradient of a table.
func (b *builder) gatherRows(p *graph.Param) {
	all := gradient{
		keys: b.like(p.Var.Name+".keys.all", b.node(p.Keys), b.node(p.Var)),
		sum:  b.like(p.Var.Name+".grad.all", b.node(p.Grad), b.node(p.Var)),
	}
	b.add(plan.Task{
		Kind: plan.Collective, Op: plan.AllGatherRows, Name: p.Var.Name, Lane: b.group(), Tag: b.nextTag(),
		In: refs(b.sums[p].keys, b.sums[p].sum), Out: refs(all.keys, all.sum),
	})
	b.sums[p] = all
}
