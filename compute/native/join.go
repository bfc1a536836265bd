package native

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native/internal/fuse"
	"github.com/gangline/gangline/compute/native/internal/kernel"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// joinRows is how many rows of a concatenation are filled at a time: they stay
// in the second cache until all inputs are there.
const joinRows = 64

// join computes a Concat and what it alone reads, in its place.
type join[T tensor.Float] struct {
	loop
	b      *builder[T]
	placed []int // of every input, which call is computed in its place; -1: none
	calls  []*compute.Call
}

func (b *builder[T]) join(g compute.Group) compute.GroupKernel {
	end := g.Nodes[len(g.Nodes)-1]
	j := &join[T]{b: b, placed: make([]int, len(end.In))}
	for k, x := range end.In {
		j.placed[k] = slices.Index(g.Nodes, fuse.Placed(x, end.Attr.Axis))
	}
	j.team, j.body = b.team, j.rows
	return j.compute
}

// compute is the kernel.
func (j *join[T]) compute(calls []*compute.Call) error {
	cost := 0
	for _, c := range calls {
		switch c.Node.Op {
		case graph.Gather:
			if err := compute.CheckIDs(c.In[1].I64(), c.In[0].Shape()[0]); err != nil {
				return fmt.Errorf("reads %q: %w", c.Node.Name, err)
			}
			cost += 32 // a wait for memory
		case graph.DotInteraction:
			cost += dotsCost(c.In[0].Shape())
		}
	}
	end := calls[len(calls)-1]
	n, copies := rowsAround(end)
	j.calls = calls
	j.spread(end, n, cost+copies)
	j.calls = nil
	return nil
}

// rows fills rows lo to hi, some at a time.
func (j *join[T]) rows(c *compute.Call, lo, hi, worker int) {
	for ; lo < hi; lo += joinRows {
		width, at := c.Out.Shape()[c.Node.Attr.Axis:].Elems(), 0
		for k := range c.In {
			at += j.fill(c, k, columns{toWidth: width, toAt: at}, lo, min(hi, lo+joinRows), worker)
		}
	}
}

// fill writes rows lo to hi of input k to their place, and returns how wide they are.
func (j *join[T]) fill(c *compute.Call, k int, place columns, lo, hi, worker int) int {
	out, x := tensor.Data[T](c.Out), c.In[k]
	w := x.Shape()[c.Node.Attr.Axis:].Elems()
	if j.placed[k] < 0 {
		place.n, place.fromWidth = w, w
		copyColumns(out, tensor.Data[T](x), place, lo, hi)
		return w
	}
	source := j.calls[j.placed[k]]
	if source.Node.Op == graph.DotInteraction {
		j.b.dotRows(source, out[place.toAt:], place.toWidth, lo, hi, worker)
		return w
	}
	dim := source.Out.Shape()[1]
	per := w / dim
	j.b.k.Gather(out[lo*place.toWidth+place.toAt:], kernel.Runs{Per: per, Step: place.toWidth},
		tensor.Data[T](source.In[0]), source.In[1].I64()[lo*per:hi*per], dim)
	return w
}

// cut computes a gradient from a Slice that it alone reads, in its place.
type cut[T tensor.Float] struct {
	loop
	b     *builder[T]
	slice *compute.Call
}

func (b *builder[T]) cut() compute.GroupKernel {
	c := &cut[T]{b: b}
	c.team, c.body = b.team, c.rows
	return c.compute
}

// compute is the kernel.
func (t *cut[T]) compute(calls []*compute.Call) error {
	c := calls[len(calls)-1]
	t.slice = calls[0]
	defer func() { t.slice = nil }()
	if c.Node.Op == graph.DotInteractionGrad {
		s := c.In[0].Shape()
		t.spread(c, s[0], dotsCost(s))
		return nil
	}
	if err := compute.CheckIDs(c.In[1].I64(), c.Out.Shape()[0]); err != nil {
		return err
	}
	t.b.spreadRows(&t.loop, c)
	return nil
}

// rows computes rows lo to hi of the gradient.
func (t *cut[T]) rows(c *compute.Call, lo, hi, worker int) {
	x, axis := t.slice.In[0], t.slice.Node.Attr.Axis
	step, width := x.Shape()[axis:].Elems(), t.slice.Out.Shape()[axis:].Elems()
	start := min(x.Elems(), t.slice.Node.Attr.Start*x.Shape()[axis+1:].Elems())
	piece := tensor.Data[T](x)[start:]
	if c.Node.Op == graph.DotInteractionGrad {
		t.b.dotGradRows(c, piece, step, lo, hi, worker)
		return
	}
	t.b.addRows(c, piece, kernel.Runs{Per: width / c.Out.Shape()[1], Step: step}, lo, hi)
}
