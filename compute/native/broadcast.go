package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// operandsMax is how many operands are broadcast to each other at most.
const operandsMax = 3

// blocks says how operands are repeated to a shape: in outer blocks of inner
// elements, within which an operand has either all elements or one.
type blocks struct {
	outer, inner int
	count        int
	single       [operandsMax]bool // has one element a block
	shape        tensor.Shape      // of the blocks
	operand      [operandsMax]tensor.Shape
}

// dimOf is the d-th dim from the end, 1 where there is none.
func dimOf(s tensor.Shape, d int) int {
	if d > len(s) {
		return 1
	}
	return s[len(s)-d]
}

// blocksOf takes as many trailing dims as possible into the inner block: those
// in which every operand is either whole or repeated all along.
func blocksOf(shape tensor.Shape, in []*tensor.Tensor) blocks {
	b := blocks{inner: 1, count: len(in)}
	d, first := 1, true
scan:
	for ; d <= len(shape); d++ {
		size := shape[len(shape)-d]
		if size == 1 {
			continue
		}
		for i, t := range in {
			single := dimOf(t.Shape(), d) != size
			if !first && single != b.single[i] {
				break scan
			}
			b.single[i] = single
		}
		first = false
		b.inner *= size
	}
	b.shape = shape[:max(0, len(shape)-d+1)]
	b.outer = b.shape.Elems()
	for i, t := range in {
		s := t.Shape()
		b.operand[i] = s[:max(0, len(s)-d+1)]
		if first {
			b.single[i] = true
		}
	}
	return b
}

// at returns which block of operand o meets block i.
func (b *blocks) at(o, i int) int {
	j, stride, s := 0, 1, b.operand[o]
	for d := 1; d <= len(s); d++ {
		size := b.shape[len(b.shape)-d]
		if s[len(s)-d] != 1 {
			j += i % size * stride
		}
		i /= size
		stride *= s[len(s)-d]
	}
	return j
}

// of returns what block i has of the elements x of operand o.
func of[T any](b *blocks, o, i int, x []T) []T {
	j := b.at(o, i)
	if b.single[o] {
		return x[j : j+1]
	}
	return x[j*b.inner : (j+1)*b.inner]
}

// binary returns the kernel of an operator of operands that are broadcast to
// each other; nil for others.
func (b *builder[T]) binary(n *graph.Node) compute.Kernel {
	f := b.binaryFunc(n.Op)
	if f == nil {
		return nil
	}
	var bl blocks
	body := func(c *compute.Call, lo, hi, _ int) {
		out := tensor.Data[T](c.Out)
		for i := lo; i < hi; i++ {
			var x [operandsMax][]T
			for o, t := range c.In {
				x[o] = of(&bl, o, i, tensor.Data[T](t))
			}
			f(out[i*bl.inner:(i+1)*bl.inner], x[0], x[1], x[2])
		}
	}
	flat := b.each(1, func(c *compute.Call, lo, hi, _ int) {
		var x [operandsMax][]T
		for o, t := range c.In {
			if x[o] = tensor.Data[T](t); len(x[o]) > 1 || c.Out.Elems() == 1 {
				x[o] = x[o][lo:hi]
			}
		}
		f(tensor.Data[T](c.Out)[lo:hi], x[0], x[1], x[2])
	})
	rows := b.eachOf(func(*compute.Call) (int, int) { return bl.outer, bl.inner }, body)
	return func(c *compute.Call) error {
		bl = blocksOf(c.Out.Shape(), c.In)
		if bl.outer == 1 {
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
		bl := blocksOf(c.In[0].Shape(), c.In[1:2])
		if c.Out.Elems() == bl.inner && !bl.single[0] {
			return columns(c)
		}
		out, dy, n := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), bl.inner
		clear(out)
		for i := range bl.outer {
			row, block := of(&bl, 0, i, out), dy[i*n:(i+1)*n]
			if bl.single[0] {
				row[0] += T(b.k.Sum(block))
				continue
			}
			b.k.Add(row, row, block)
		}
		return nil
	}
}
