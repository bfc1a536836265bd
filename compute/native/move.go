package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// moves is for operators that only move or repeat values; nil for others.
func (b *builder[T]) moves(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.Const:
		return func(c *compute.Call) error {
			fill(tensor.Data[T](c.Out), T(c.Node.Attr.Value))
			return nil
		}
	case graph.FillLike:
		return b.each(1, func(c *compute.Call, lo, hi, _ int) {
			fill(tensor.Data[T](c.Out)[lo:hi], tensor.Data[T](c.In[0])[0])
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
				fill(out[i*dim:(i+1)*dim], dy[i])
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

func fill[T tensor.Float](out []T, v T) {
	for i := range out {
		out[i] = v
	}
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

// transpose reorders dims: for every index of the outer dims of the result, a
// run of its last dim, copied if it is the last dim of x as well.
func (b *builder[T]) transpose() compute.Kernel {
	var strides []int // in x, for every dim of the result
	return b.eachOf(func(c *compute.Call) (int, int) {
		in, perm := c.In[0].Shape(), c.Node.Attr.Perm
		strides = grow(strides, len(perm))
		for d, p := range perm {
			strides[d] = in[p+1:].Elems()
		}
		n := max(1, c.Out.Shape()[len(perm)-1])
		return c.Out.Elems() / n, 2*n + 8
	}, func(c *compute.Call, lo, hi, _ int) {
		out, x, shape := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), c.Out.Shape()
		last := len(shape) - 1
		n, stride := shape[last], strides[last]
		for i := lo; i < hi; i++ {
			at, rest := 0, i
			for d := last - 1; d >= 0; d-- {
				at += rest % shape[d] * strides[d]
				rest /= shape[d]
			}
			dst := out[i*n : (i+1)*n]
			if stride == 1 {
				copy(dst, x[at:])
				continue
			}
			for j := range dst {
				dst[j] = x[at+j*stride]
			}
		}
	})
}

// dropout keeps the elements that the mask of their example keeps.
func (b *builder[T]) dropout(n *graph.Node) compute.Kernel {
	seed, rate := n.Attr.Seed, n.Attr.Rate
	scale := T(1 / (1 - rate))
	return b.eachOf(func(c *compute.Call) (int, int) {
		examples := c.In[1].Elems()
		return examples, 4 * c.Out.Elems() / max(1, examples)
	}, func(c *compute.Call, lo, hi, _ int) {
		index := c.In[1].I64()
		size := c.Out.Elems() / max(1, len(index))
		for e := lo; e < hi; e++ {
			mask := compute.MaskOf(seed, rate, c.Step, index[e])
			out, x := at(tensor.Data[T](c.Out), e, size), at(tensor.Data[T](c.In[0]), e, size)
			for i, v := range x {
				if mask.Keeps(i) {
					out[i] = v * scale
				} else {
					out[i] = 0
				}
			}
		}
	})
}
