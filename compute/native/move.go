package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// move is for operators that only move or repeat values; nil for others.
func move[T tensor.Float](op graph.Op) compute.Kernel {
	switch op {
	case graph.Const:
		return func(c *compute.Call) error {
			fill(tensor.Data[T](c.Out), T(c.Node.Attr.Value))
			return nil
		}
	case graph.FillLike:
		return func(c *compute.Call) error {
			fill(tensor.Data[T](c.Out), tensor.Data[T](c.In[0])[0])
			return nil
		}
	case graph.Reshape, graph.ReshapeLike:
		return func(c *compute.Call) error {
			if c.Out != c.In[0] {
				copy(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]))
			}
			return nil
		}
	case graph.SpreadRows:
		return func(c *compute.Call) error {
			dim, out := c.Out.Shape()[1], tensor.Data[T](c.Out)
			for i, v := range tensor.Data[T](c.In[0]) {
				fill(out[i*dim:(i+1)*dim], v)
			}
			return nil
		}
	case graph.Concat:
		return concat[T]
	case graph.Slice, graph.PadSlice:
		return slice[T]
	}
	return nil
}

func fill[T tensor.Float](out []T, v T) {
	for i := range out {
		out[i] = v
	}
}

func concat[T tensor.Float](c *compute.Call) error {
	out, axis := tensor.Data[T](c.Out), c.Node.Attr.Axis
	width := c.Out.Shape()[axis:].Elems()
	at := 0
	for _, t := range c.In {
		w := t.Shape()[axis:].Elems()
		copyColumns(out, tensor.Data[T](t), width, at, w, 0, w, c.Out.Shape()[:axis].Elems())
		at += w
	}
	return nil
}

// slice copies a range of columns out of its input or, for a PadSlice, into
// zeros.
func slice[T tensor.Float](c *compute.Call) error {
	x, out, axis := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Node.Attr.Axis
	from, to := c.In[0].Shape(), c.Out.Shape()
	start := c.Node.Attr.Start * to[axis+1:].Elems()
	widthIn, widthOut, rows := from[axis:].Elems(), to[axis:].Elems(), to[:axis].Elems()
	if c.Node.Op == graph.PadSlice {
		clear(out)
		copyColumns(out, x, widthOut, start, widthIn, 0, widthIn, rows)
		return nil
	}
	copyColumns(out, x, widthOut, 0, widthIn, start, widthOut, rows)
	return nil
}

// copyColumns copies n columns of every row, from column fromAt of rows of
// fromWidth to column toAt of rows of toWidth.
func copyColumns[T tensor.Float](to, from []T, toWidth, toAt, fromWidth, fromAt, n, rows int) {
	for r := range rows {
		copy(to[r*toWidth+toAt:][:n], from[r*fromWidth+fromAt:][:n])
	}
}
