package native

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// linkChunk is how many elements go through all links of a chain at a time: what
// the links hand on stays in the first cache.
const linkChunk = 1024

// chain computes a group: element-wise operators, each a link, on some elements
// after the other; behind a product of matrices, on each block of it.
type chain[T tensor.Float] struct {
	loop
	b     *builder[T]
	first *matMul[T] // nil: there is none
	to    int        // which call's memory the product goes to: the first that is kept
	links []link[T]
	cost  int
	calls []*compute.Call // of the links
	lead  []T             // the result of first
}

// link is one operator of a chain.
type link[T tensor.Float] struct {
	*pointwise[T]
	args [operandsMax]source
	kept bool
	room int // where in the scratch memory its result is, if not kept
}

// source is where an operand comes from.
type source int

// lead is the product; other sources are numbers of links, or ^k for input k of
// the link itself.
const lead source = 1 << 30

// chain returns the kernel of a group that fuse made.
func (b *builder[T]) chain(g compute.Group) compute.GroupKernel {
	c := &chain[T]{b: b, to: slices.Index(g.Kept, true)}
	c.team, c.body = b.team, func(_ *compute.Call, lo, hi, worker int) { c.run(lo, hi, worker) }
	at := map[*graph.Node]source{}
	for i, n := range g.Nodes {
		if n.Op == graph.MatMul {
			c.first, at[n] = &matMul[T]{b: b, then: c}, lead
			continue
		}
		l := link[T]{pointwise: b.pointwise(n), kept: g.Kept[i], room: len(c.links) * linkChunk}
		for k, x := range n.In {
			var ok bool
			if l.args[k], ok = at[x]; !ok {
				l.args[k] = ^source(k)
			}
		}
		at[n] = source(len(c.links))
		c.links = append(c.links, l)
		c.cost += l.cost
	}
	return c.compute
}

// compute is the kernel.
func (c *chain[T]) compute(calls []*compute.Call) error {
	if err := sameShape(calls); err != nil {
		return err
	}
	if c.calls = calls; c.first != nil {
		c.calls = calls[1:]
		c.lead = tensor.Data[T](calls[c.to].Out)
		c.first.multiply(calls[0], c.lead)
	} else {
		c.spread(nil, calls[0].Out.Elems(), c.cost)
	}
	c.calls, c.lead = nil, nil
	return nil
}

// sameShape demands what fuse took for granted of dims that the batch decides.
func sameShape(calls []*compute.Call) error {
	for _, call := range calls[1:] {
		if a, b := calls[0].Out.Shape(), call.Out.Shape(); !a.Equal(b) {
			return fmt.Errorf("%q is %v and not %v as %q: dims that the batch decides must be equal", call.Node.Name, b, a, calls[0].Node.Name)
		}
	}
	return nil
}

// run computes elements lo to hi, counted over the whole result.
func (c *chain[T]) run(lo, hi, worker int) {
	w := &c.b.work[worker]
	w.links = grow(w.links, len(c.links)*linkChunk)
	for ; lo < hi; lo += linkChunk {
		end := min(hi, lo+linkChunk)
		for i := range c.links {
			c.link(w.links, i, lo, end)
		}
	}
}

// link computes elements lo to hi of one link, piece by piece if an operand
// repeats within them.
func (c *chain[T]) link(links []T, i, lo, hi int) {
	l, call := &c.links[i], c.calls[i]
	out := links[l.room : l.room+hi-lo]
	if l.kept {
		out = tensor.Data[T](call.Out)[lo:hi]
	}
	for at := lo; at < hi; {
		end := hi
		var x [operandsMax][]T
		for k := range l.inputs {
			switch s := l.args[k]; {
			case s == lead:
				x[k] = c.lead[at:]
			case s >= 0 && c.links[s].kept:
				x[k] = tensor.Data[T](c.calls[s].Out)[at:]
			case s >= 0:
				x[k] = links[c.links[s].room+at-lo:]
			default:
				x[k] = repeated(tensor.Data[T](call.In[k]), call.Out.Elems(), at)
			}
			if len(x[k]) > 1 {
				end = min(end, at+len(x[k]))
			}
		}
		for k := range l.inputs {
			if len(x[k]) > 1 || end-at == 1 {
				x[k] = x[k][:end-at]
			}
		}
		l.run(out[at-lo:end-lo], x[0], x[1], x[2])
		at = end
	}
}

// repeated returns an operand of n elements from element at on: up to its end if
// it repeats, and its only element if it has one.
func repeated[T any](x []T, n, at int) []T {
	switch len(x) {
	case n:
		return x[at:]
	case 1:
		return x
	}
	return x[at%len(x):]
}

// tail runs a chain on the blocks of a product.
type tail[T tensor.Float] struct {
	chain              *chain[T]
	row, width, worker int // the row of the result that the product's first is, and the length of each
}

// Block implements kernel.Product's After.
func (t *tail[T]) Block(i0, i1, j0, j1 int) {
	if j0 == 0 && j1 == t.width {
		t.chain.run((t.row+i0)*t.width, (t.row+i1)*t.width, t.worker)
		return
	}
	for i := t.row + i0; i < t.row+i1; i++ {
		t.chain.run(i*t.width+j0, i*t.width+j1, t.worker)
	}
}
