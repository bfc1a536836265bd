package native

import (
	"slices"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// moves is for operators that only move or repeat values; nil for others.
func (b *builder[T]) moves(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.Const:
		return func(c *compute.Call) error {
			b.k.Fill(tensor.Data[T](c.Out), T(c.Node.Attr.Value))
			return nil
		}
	case graph.FillLike:
		return b.each(1, func(c *compute.Call, lo, hi, _ int) {
			b.k.Fill(tensor.Data[T](c.Out)[lo:hi], tensor.Data[T](c.In[0])[0])
		})
	case graph.Reshape, graph.ReshapeLike:
		return func(c *compute.Call) error {
			if c.Out != c.In[0] {
				copy(c.Out.Bytes(), c.In[0].Bytes())
			}
			return nil
		}
	case graph.Float:
		return b.each(1, func(c *compute.Call, lo, hi, _ int) {
			out := tensor.Data[T](c.Out)[lo:hi]
			for i, v := range c.In[0].I64()[lo:hi] {
				out[i] = T(v)
			}
		})
	case graph.SpreadRows:
		return b.eachRow(1, 1, func(c *compute.Call, lo, hi, _ int) {
			dim, out, dy := lastDim(c.Out), tensor.Data[T](c.Out), tensor.Data[T](c.In[0])
			for i := lo; i < hi; i++ {
				b.k.Fill(out[i*dim:(i+1)*dim], dy[i])
			}
		})
	case graph.Concat:
		return b.eachOf(rowsAround, concat[T])
	case graph.Slice, graph.PadSlice:
		return b.eachOf(rowsAround, slice[T])
	case graph.Transpose:
		return b.transpose()
	case graph.Dropout:
		return b.dropout(n)
	}
	return nil
}

// rowsAround counts the rows of the result that are cut by the axis, for
// operators that copy columns.
func rowsAround(c *compute.Call) (n, cost int) {
	s := c.Out.Shape()
	return s[:c.Node.Attr.Axis].Elems(), s[c.Node.Attr.Axis:].Elems() + 8*len(c.In)
}

func concat[T tensor.Float](c *compute.Call, lo, hi, _ int) {
	out, axis := tensor.Data[T](c.Out), c.Node.Attr.Axis
	width, at := c.Out.Shape()[axis:].Elems(), 0
	for _, t := range c.In {
		w := t.Shape()[axis:].Elems()
		copyColumns(out, tensor.Data[T](t), columns{width, at, w, 0, w}, lo, hi)
		at += w
	}
}

// slice copies a range of columns out of its input or, for a PadSlice, into
// zeros.
func slice[T tensor.Float](c *compute.Call, lo, hi, _ int) {
	x, out, axis := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Node.Attr.Axis
	from, to := c.In[0].Shape(), c.Out.Shape()
	start := c.Node.Attr.Start * to[axis+1:].Elems()
	widthIn, widthOut := from[axis:].Elems(), to[axis:].Elems()
	if c.Node.Op == graph.PadSlice {
		clear(out[lo*widthOut : hi*widthOut])
		copyColumns(out, x, columns{widthOut, start, widthIn, 0, widthIn}, lo, hi)
		return
	}
	copyColumns(out, x, columns{widthOut, 0, widthIn, start, widthOut}, lo, hi)
}

// columns says which n columns to copy: from column fromAt of rows of fromWidth
// to column toAt of rows of toWidth.
type columns struct{ toWidth, toAt, fromWidth, fromAt, n int }

// copyColumns copies columns of rows lo to hi.
func copyColumns[T tensor.Float](to, from []T, c columns, lo, hi int) {
	for r := lo; r < hi && c.n > 0; r++ {
		copy(to[r*c.toWidth+c.toAt:][:c.n], from[r*c.fromWidth+c.fromAt:][:c.n])
	}
}

// run is a dim of a transposition: its size, and how far its elements lie apart
// in the input and in the result.
type run struct{ n, in, out int }

// transpose reorders dims. Where the last dim of the result is that of x, runs of
// it are copied; otherwise this dim and the one that is last in x are turned, in
// blocks, for every index of the others.
func (b *builder[T]) transpose() compute.Kernel {
	var dims []run // of the result, the one that is last in x put before the last
	var cuts int   // of that one
	return b.eachOf(func(c *compute.Call) (int, int) {
		in, out, perm := c.In[0].Shape(), c.Out.Shape(), c.Node.Attr.Perm
		last := len(perm) - 1
		dims = grow(dims, len(perm))
		at := 0
		for d, p := range perm {
			r := run{out[d], in[p+1:].Elems(), out[d+1:].Elems()}
			switch {
			case d == last:
				dims[last] = r
			case p == last:
				dims[last-1] = r
			default:
				dims[at] = r
				at++
			}
		}
		n := max(1, out[last])
		if perm[last] == last {
			return c.Out.Elems() / n, n + 8
		}
		cuts = (dims[last-1].n + turnColumns - 1) / turnColumns
		return c.Out.Elems() / n / max(1, dims[last-1].n) * cuts, 2*n*turnColumns + 16
	}, func(c *compute.Call, lo, hi, _ int) {
		out, x, last := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), len(dims)-1
		if rows := dims[last]; rows.in == 1 {
			for i := lo; i < hi; i++ {
				from, _ := place(dims[:last], i)
				copy(out[i*rows.n:(i+1)*rows.n], x[from:])
			}
			return
		}
		for i := lo; i < hi; i++ {
			from, to := place(dims[:last-1], i/cuts)
			first, rows, cols := i%cuts*turnColumns, dims[last], dims[last-1]
			b.k.Turn(out[to+first*cols.out:], cols.out, x[from+first:], rows.in, rows.n, min(turnColumns, cols.n-first))
		}
	})
}

// turnColumns is how many columns are turned as one.
const turnColumns = 64

// place is where element i of some dims lies in the input and in the result.
func place(dims []run, i int) (in, out int) {
	for _, d := range slices.Backward(dims) {
		at := i % d.n
		in, out, i = in+at*d.in, out+at*d.out, i/d.n
	}
	return in, out
}

// dropout keeps the elements that the mask of their example keeps.
func (b *builder[T]) dropout(n *graph.Node) compute.Kernel {
	seed, rate := n.Attr.Seed, n.Attr.Rate
	scale := T(1 / (1 - rate))
	return b.eachOf(func(c *compute.Call) (int, int) {
		examples := c.In[1].Elems()
		return examples, c.Out.Elems() / max(1, examples)
	}, func(c *compute.Call, lo, hi, _ int) {
		index := c.In[1].I64()
		size := c.Out.Elems() / max(1, len(index))
		for e := lo; e < hi; e++ {
			k0, k1, least := compute.MaskOf(seed, rate, c.Step, index[e]).Keys()
			b.k.Drop(at(tensor.Data[T](c.Out), e, size), at(tensor.Data[T](c.In[0]), e, size), k0, k1, least, scale)
		}
	})
}
