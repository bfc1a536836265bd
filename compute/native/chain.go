package native

import (
	"fmt"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native/internal/broadcast"
	"github.com/gangline/gangline/compute/native/internal/fuse"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// linkChunk is how many elements go through all links of a chain at a time: what
// the links hand on stays in the first cache.
const linkChunk = 2048

// chain computes a group: element-wise operators, each a link, on some elements
// after the other; behind a product of matrices, on each block of it.
type chain[T tensor.Float] struct {
	loop
	b     *builder[T]
	first *matMul[T] // nil: there is none
	to    int        // which call's memory the product goes to
	links []link[T]
	cost  int
	lead  []T // the result of first
}

// link is one operator of a chain.
type link[T tensor.Float] struct {
	*pointwise[T]
	args [broadcast.OperandsMax]source
	full [broadcast.OperandsMax]bool // the operand has the shape of the result
	kept bool
	room int // where in the scratch memory its result is, if not kept

	// During a call: the memory of the result, if kept, and the operands.
	out     []T
	operand [broadcast.OperandsMax]operand[T]
	period  int // of the operands that repeat, the shortest; 0: none does
}

// operand is where the elements of one operand are.
type operand[T tensor.Float] struct {
	data   []T // nil: in the scratch memory, from room on
	room   int
	period int // 0: as many as the result has; else it repeats
}

// source is where an operand comes from.
type source int

// lead is the product; other sources are numbers of links, or ^k for input k of
// the link itself.
const lead source = 1 << 30

// chain returns the kernel of a group of package fuse.
func (b *builder[T]) chain(g compute.Group) compute.GroupKernel {
	c := &chain[T]{b: b, to: fuse.Home(g)}
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
			l.full[k] = x.Shape.Equal(n.Shape)
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
	if err := c.sameShape(calls); err != nil {
		return err
	}
	if c.first != nil {
		c.lead = tensor.Data[T](calls[c.to].Out)
		c.bind(calls[1:])
		c.first.multiply(calls[0], c.lead)
	} else {
		c.bind(calls)
		c.spread(nil, calls[0].Out.Elems(), c.cost)
	}
	c.release()
	return nil
}

// sameShape demands what package fuse took for granted of dims that the batch decides.
func (c *chain[T]) sameShape(calls []*compute.Call) error {
	want := calls[0].Out.Shape()
	for i, call := range calls[len(calls)-len(c.links):] {
		if got := call.Out.Shape(); !got.Equal(want) {
			return differs(call.Node, got, calls[0].Node, want)
		}
		for k, x := range call.In {
			if got := x.Shape(); c.links[i].full[k] && !got.Equal(want) {
				return differs(call.Node.In[k], got, calls[0].Node, want)
			}
		}
	}
	return nil
}

func differs(a *graph.Node, got tensor.Shape, b *graph.Node, want tensor.Shape) error {
	return fmt.Errorf("%q is %v and not %v as %q: dims that the batch decides must be equal", a.Name, got, want, b.Name)
}

// bind finds the memory that the links read and write.
func (c *chain[T]) bind(calls []*compute.Call) {
	n := calls[len(calls)-1].Out.Elems()
	for i := range c.links {
		l := &c.links[i]
		l.out, l.period = nil, 0
		if l.kept {
			l.out = tensor.Data[T](calls[i].Out)
		}
		for k := range l.inputs {
			o := operand[T]{}
			switch s := l.args[k]; {
			case s == lead:
				o.data = c.lead
			case s >= 0 && c.links[s].kept:
				o.data = c.links[s].out
			case s >= 0:
				o.room = c.links[s].room
			default:
				if o.data = tensor.Data[T](calls[i].In[k]); len(o.data) != n {
					o.period = len(o.data)
				}
			}
			if o.period > 1 && (l.period == 0 || o.period < l.period) {
				l.period = o.period
			}
			l.operand[k] = o
		}
	}
}

// release forgets what bind found.
func (c *chain[T]) release() {
	for i := range c.links {
		c.links[i].out, c.links[i].operand = nil, [broadcast.OperandsMax]operand[T]{}
	}
	c.lead = nil
}

// run computes elements lo to hi, counted over the whole result.
func (c *chain[T]) run(lo, hi, worker int) {
	w := &c.b.work[worker]
	w.links = grow(w.links, len(c.links)*linkChunk)
	for ; lo < hi; lo += linkChunk {
		end := min(hi, lo+linkChunk)
		for i := range c.links {
			c.links[i].compute(w.links, lo, end)
		}
	}
}

// compute computes elements lo to hi, run by run of what repeats least.
func (l *link[T]) compute(scratch []T, lo, hi int) {
	out := scratch[l.room : l.room+hi-lo]
	if l.kept {
		out = l.out[lo:hi]
	}
	if l.period == 0 {
		l.run(out, l.piece(0, scratch, lo, lo, hi), l.piece(1, scratch, lo, lo, hi), l.piece(2, scratch, lo, lo, hi))
		return
	}
	for at := lo; at < hi; {
		end := min(hi, at+l.period-at%l.period)
		l.run(out[at-lo:end-lo], l.piece(0, scratch, lo, at, end), l.piece(1, scratch, lo, at, end), l.piece(2, scratch, lo, at, end))
		at = end
	}
}

// piece returns elements at to end of operand k, lo being where the scratch
// memory begins.
func (l *link[T]) piece(k int, scratch []T, lo, at, end int) []T {
	o := &l.operand[k]
	switch {
	case k >= l.inputs:
		return nil
	case o.data == nil:
		return scratch[o.room+at-lo : o.room+end-lo]
	case o.period == 0:
		return o.data[at:end]
	case o.period == 1:
		return o.data
	}
	from := at % o.period
	return o.data[from : from+end-at]
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

// pointwise returns a node as operator on elements, nil if it is none.
func (b *builder[T]) pointwise(n *graph.Node) *pointwise[T] {
	if p := b.unary(n); p != nil {
		return p
	}
	if f := b.binaryFunc(n.Op); f != nil {
		return &pointwise[T]{len(n.In), 1, f}
	}
	return nil
}

// links reports whether a node can be a link of a chain: an operator on elements,
// each input of the result's shape, of one element, or repeated to it whole.
func (b *builder[T]) links(n *graph.Node) bool {
	if b.pointwise(n) == nil {
		return false
	}
	for _, x := range n.In {
		if !x.Shape.Equal(n.Shape) && !fuse.Repeats(x.Shape, n.Shape) {
			return false
		}
	}
	return true
}
