package ref

import (
	"slices"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// move returns the kernel of an operator that only moves or repeats values,
// nil for others.
func move[T tensor.Float](n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.Const:
		return func(c *compute.Call) error { return fill(c.Out, T(c.Node.Attr.Value)) }
	case graph.FillLike:
		return func(c *compute.Call) error { return fill(c.Out, tensor.Data[T](c.In[0])[0]) }
	case graph.Reshape, graph.ReshapeLike:
		return func(c *compute.Call) error {
			copy(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]))
			return nil
		}
	case graph.SpreadRows:
		return spreadRows[T]
	case graph.SpreadAxis, graph.MeanGrad:
		return spreadAxis[T]
	case graph.Transpose:
		return transpose[T]
	case graph.Concat:
		return concat[T]
	case graph.Slice:
		return slice[T]
	case graph.PadSlice:
		return padSlice[T]
	}
	return nil
}

func fill[T tensor.Float](t *tensor.Tensor, v T) error {
	out := tensor.Data[T](t)
	for i := range out {
		out[i] = v
	}
	return nil
}

func spreadRows[T tensor.Float](c *compute.Call) error {
	dy, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out)
	dim := c.Out.Shape()[1]
	for i := range out {
		out[i] = dy[i/dim]
	}
	return nil
}

// spreadAxis repeats dy over an axis; for a mean, divided by its size.
func spreadAxis[T tensor.Float](c *compute.Call) error {
	dy, out, axis := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Node.Attr.Axis
	outer, inner := split(c.Out.Shape(), axis)
	size := c.Out.Shape()[axis]
	divisor := T(1)
	if c.Node.Op == graph.MeanGrad {
		divisor = T(size)
	}
	for o := range outer {
		for a := range size {
			for i := range inner {
				out[(o*size+a)*inner+i] = dy[o*inner+i] / divisor
			}
		}
	}
	return nil
}

// transpose finds, for every element of the result, its coordinates and where
// these lie in x.
func transpose[T tensor.Float](c *compute.Call) error {
	x, out, s := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Out.Shape()
	for i := range out {
		from, rest := 0, i
		for d, size := range slices.Backward(s) {
			p := c.Node.Attr.Perm[d]
			from += rest % size * c.In[0].Shape()[p+1:].Elems()
			rest /= size
		}
		out[i] = x[from]
	}
	return nil
}

// split returns how many blocks the dims before axis make and how many
// elements one step on axis is.
func split(s tensor.Shape, axis int) (outer, inner int) {
	return s[:axis].Elems(), s[axis+1:].Elems()
}

func concat[T tensor.Float](c *compute.Call) error {
	out, axis := tensor.Data[T](c.Out), c.Node.Attr.Axis
	outer, inner := split(c.Out.Shape(), axis)
	width := c.Out.Shape()[axis] * inner
	at := 0
	for _, t := range c.In {
		x, w := tensor.Data[T](t), t.Shape()[axis]*inner
		for o := range outer {
			copy(out[o*width+at:o*width+at+w], x[o*w:(o+1)*w])
		}
		at += w
	}
	return nil
}

func slice[T tensor.Float](c *compute.Call) error {
	x, out, axis := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Node.Attr.Axis
	outer, inner := split(c.Out.Shape(), axis)
	width, w := c.In[0].Shape()[axis]*inner, c.Out.Shape()[axis]*inner
	at := c.Node.Attr.Start * inner
	for o := range outer {
		copy(out[o*w:(o+1)*w], x[o*width+at:o*width+at+w])
	}
	return nil
}

func padSlice[T tensor.Float](c *compute.Call) error {
	dy, out, axis := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Node.Attr.Axis
	outer, inner := split(c.Out.Shape(), axis)
	width, w := c.Out.Shape()[axis]*inner, c.In[0].Shape()[axis]*inner
	at := c.Node.Attr.Start * inner
	clear(out)
	for o := range outer {
		copy(out[o*width+at:o*width+at+w], dy[o*w:(o+1)*w])
	}
	return nil
}
