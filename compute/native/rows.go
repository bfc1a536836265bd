package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native/internal/kernel"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// rows returns the kernel of an operator that reads or adds up rows by index,
// nil for others. Ids and offsets are checked in a pass of their own, after
// which the loops trust them.
//
// What adds to rows is cut for threads by the rows that are added to: each
// thread passes over all entries and takes those of its rows, in order.
func (b *builder[T]) rows(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.GatherRows, graph.Gather:
		gather := b.eachOf(func(c *compute.Call) (int, int) {
			return c.Out.Shape()[0], c.Out.Shape()[1] + 32 // a wait for memory
		}, b.gather)
		return func(c *compute.Call) error {
			if err := compute.CheckIDs(c.In[1].I64(), c.In[0].Shape()[0]); err != nil {
				return err
			}
			return gather(c)
		}
	case graph.GatherGrad:
		add := b.byRow(b.gatherGrad)
		return func(c *compute.Call) error {
			if err := compute.CheckIDs(c.In[1].I64(), c.Out.Shape()[0]); err != nil {
				return err
			}
			return add(c)
		}
	case graph.Bag:
		return bags(func(c *compute.Call) int { return c.In[0].Shape()[0] }, b.eachOf(func(c *compute.Call) (int, int) {
			bags := c.Out.Shape()[0]
			return bags, (c.Out.Elems() + c.In[1].Elems()*entryCost(c.Out.Shape()[1])) / max(1, bags)
		}, b.bag))
	case graph.BagGrad:
		return bags(func(c *compute.Call) int { return c.Out.Shape()[0] }, b.byRow(b.bagGrad))
	}
	return nil
}

// byRow makes a kernel of a body over the rows that are added to.
func (b *builder[T]) byRow(body func(c *compute.Call, lo, hi, worker int)) compute.Kernel {
	l := &loop{team: b.team, body: body}
	return func(c *compute.Call) error {
		b.spreadRows(l, c)
		return nil
	}
}

// entryCost is that of adding a row of so many elements, or one number.
func entryCost(dim int) int {
	if dim == 1 {
		return 2
	}
	return dim + 8
}

// wideRow is from which length on rows are added on threads: each thread passes over
// all entries, which costs as much as adding shorter ones.
const wideRow = 8

// spreadRows runs a loop over the rows that are added to.
func (b *builder[T]) spreadRows(l *loop, c *compute.Call) {
	rows, dim := c.Out.Shape()[0], c.Out.Shape()[1]
	l.few = true
	cost := (c.Out.Elems() + c.In[1].Elems()*entryCost(dim)) / max(1, rows)
	if dim < wideRow {
		cost = 0 // one part
	}
	l.spread(c, rows, cost)
}

// bags checks offsets and ids before a kernel runs.
func bags(rows func(c *compute.Call) int, k compute.Kernel) compute.Kernel {
	return func(c *compute.Call) error {
		ids, offsets := c.In[1].I64(), c.In[2].I64()
		if err := compute.CheckOffsets(offsets, len(ids)); err != nil {
			return err
		}
		if err := compute.CheckIDs(ids, rows(c)); err != nil {
			return err
		}
		return k(c)
	}
}

func (b *builder[T]) gather(c *compute.Call, lo, hi, _ int) {
	dim := c.Out.Shape()[1]
	b.k.Gather(tensor.Data[T](c.Out)[lo*dim:hi*dim], kernel.Side(dim), tensor.Data[T](c.In[0]), c.In[1].I64()[lo:hi], dim)
}

func (b *builder[T]) gatherGrad(c *compute.Call, lo, hi, _ int) {
	b.addRows(c, tensor.Data[T](c.In[0]), kernel.Side(c.Out.Shape()[1]), lo, hi)
}

// addRows adds the rows dy, in runs, to those of the result that the ids name, if
// they are lo to hi.
func (b *builder[T]) addRows(c *compute.Call, dy []T, from kernel.Runs, lo, hi int) {
	dim := c.Out.Shape()[1]
	out := tensor.Data[T](c.Out)[lo*dim : hi*dim]
	clear(out)
	b.k.AddRows(out, dy, from, c.In[1].I64(), lo, dim)
}

// share is what an entry of a bag of n entries counts beside its weight.
func share[T tensor.Float](mean bool, n int64) T {
	if mean && n > 0 {
		return 1 / T(n)
	}
	return 1
}

// bag adds up the weighted rows of each bag, in order of entry.
func (b *builder[T]) bag(c *compute.Call, lo, hi, _ int) {
	out, rows, weights := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[3])
	ids, offsets, dim := c.In[1].I64(), c.In[2].I64(), c.Out.Shape()[1]
	for i := lo; i < hi; i++ {
		from, to := offsets[i], offsets[i+1]
		dst := out[i*dim : (i+1)*dim]
		if dim == 1 {
			var s T
			w := weights[from:to]
			for e, id := range ids[from:to] {
				s += T(w[e] * rows[id])
			}
			dst[0] = s
		} else {
			clear(dst)
			for e := from; e < to; e++ {
				id := int(ids[e])
				b.k.AddScaled(dst, dst, rows[id*dim:(id+1)*dim], weights[e])
			}
		}
		if c.Node.Attr.Mean && to > from {
			b.k.Scale(dst, dst, share[T](true, to-from))
		}
	}
}

// bagGrad adds the weighted gradient of each bag to the rows of its entries.
func (b *builder[T]) bagGrad(c *compute.Call, lo, hi, _ int) {
	out, dy, weights := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[3])
	ids, offsets, dim := c.In[1].I64(), c.In[2].I64(), c.Out.Shape()[1]
	clear(out[lo*dim : hi*dim])
	for i := range len(offsets) - 1 {
		grad, part := dy[i*dim:(i+1)*dim], share[T](c.Node.Attr.Mean, offsets[i+1]-offsets[i])
		for e := offsets[i]; e < offsets[i+1]; e++ {
			id := int(ids[e])
			if id < lo || id >= hi {
				continue
			}
			w := weights[e] * part
			if dim == 1 {
				out[id] += T(w * grad[0])
				continue
			}
			row := out[id*dim : (id+1)*dim]
			b.k.AddScaled(row, row, grad, w)
		}
	}
}
