package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native/internal/broadcast"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// binary returns the kernel of an operator of operands that are broadcast to
// each other; nil for others.
func (b *builder[T]) binary(n *graph.Node) compute.Kernel {
	f := b.binaryFunc(n.Op)
	if f == nil {
		return nil
	}
	var bl broadcast.Blocks
	body := func(c *compute.Call, lo, hi, _ int) {
		out := tensor.Data[T](c.Out)
		for i := lo; i < hi; i++ {
			var x [broadcast.OperandsMax][]T
			for o, t := range c.In {
				x[o] = broadcast.Piece(&bl, o, i, tensor.Data[T](t))
			}
			f(out[i*bl.Inner:(i+1)*bl.Inner], x[0], x[1], x[2])
		}
	}
	flat := b.each(1, func(c *compute.Call, lo, hi, _ int) {
		var x [broadcast.OperandsMax][]T
		for o, t := range c.In {
			if x[o] = tensor.Data[T](t); len(x[o]) > 1 || c.Out.Elems() == 1 {
				x[o] = x[o][lo:hi]
			}
		}
		f(tensor.Data[T](c.Out)[lo:hi], x[0], x[1], x[2])
	})
	rows := b.eachOf(func(*compute.Call) (int, int) { return bl.Outer, bl.Inner }, body)
	return func(c *compute.Call) error {
		bl = broadcast.Of(c.Out.Shape(), c.In)
		if bl.Outer == 1 {
			return flat(c)
		}
		return rows(c)
	}
}

// binaryFunc is the operator on one block: an operand has the elements of out
// or one. The third is used by Where alone.
func (b *builder[T]) binaryFunc(op graph.Op) func(out, x, y, z []T) {
	k := b.k
	f := map[graph.Op]func(out, x, y []T){
		graph.Add: k.Add, graph.Sub: k.Sub, graph.Mul: k.Mul, graph.Div: k.Div,
		graph.Maximum: k.Maximum, graph.Minimum: k.Minimum,
		graph.Less: k.Less, graph.LessEqual: k.LessEqual, graph.Equal: k.Equal,
	}[op]
	switch {
	case op == graph.Where:
		return k.Where
	case f == nil:
		return nil
	}
	return func(out, x, y, _ []T) { f(out, x, y) }
}

// unbroadcast adds dy up to the shape of x, for each element in the order of
// dy: whole columns of a matrix on threads, where that is all there is to it.
func (b *builder[T]) unbroadcast() compute.Kernel {
	rows := func(c *compute.Call) int { return c.In[0].Elems() / max(1, c.Out.Elems()) }
	columns := b.eachColumn(func(c *compute.Call) (int, int) {
		return c.Out.Elems(), rows(c)
	}, func(c *compute.Call, lo, hi, _ int) {
		dy := tensor.Data[T](c.In[0])
		b.k.SumRows(tensor.Data[T](c.Out)[lo:hi], dy[min(lo, len(dy)):], rows(c), c.Out.Elems())
	})
	return func(c *compute.Call) error {
		bl := broadcast.Of(c.In[0].Shape(), c.In[1:2])
		if c.Out.Elems() == bl.Inner && !bl.Single[0] {
			return columns(c)
		}
		out, dy, n := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), bl.Inner
		clear(out)
		for i := range bl.Outer {
			row, block := broadcast.Piece(&bl, 0, i, out), dy[i*n:(i+1)*n]
			if bl.Single[0] {
				row[0] += T(b.k.Sum(block))
				continue
			}
			b.k.Add(row, row, block)
		}
		return nil
	}
}
