package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// rowsKernel is for operators that read or add up rows by index. Ids and
// offsets are checked in a pass of their own, after which the loops trust them.
func rowsKernel[T tensor.Float](op graph.Op) compute.Kernel {
	switch op {
	case graph.GatherRows, graph.Gather:
		return func(c *compute.Call) error {
			ids, s := c.In[1].I64(), c.In[0].Shape()
			if err := compute.CheckIDs(ids, s[0]); err != nil {
				return err
			}
			gather(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), ids, s[1])
			return nil
		}
	case graph.GatherGrad:
		return func(c *compute.Call) error {
			ids, s := c.In[1].I64(), c.Out.Shape()
			if err := compute.CheckIDs(ids, s[0]); err != nil {
				return err
			}
			gatherGrad(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), ids, s[1])
			return nil
		}
	}
	kernel, shapeOf := bag[T], func(c *compute.Call) tensor.Shape { return c.In[0].Shape() }
	if op == graph.BagGrad {
		kernel, shapeOf = bagGrad[T], func(c *compute.Call) tensor.Shape { return c.Out.Shape() }
	}
	return func(c *compute.Call) error {
		ids, offsets, s := c.In[1].I64(), c.In[2].I64(), shapeOf(c)
		if err := compute.CheckOffsets(offsets, len(ids)); err != nil {
			return err
		}
		if err := compute.CheckIDs(ids, s[0]); err != nil {
			return err
		}
		kernel(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), ids, offsets, tensor.Data[T](c.In[3]), s[1])
		return nil
	}
}

func gather[T tensor.Float](out, rows []T, ids []int64, dim int) {
	if dim == 1 {
		out = out[:len(ids)]
		for e, id := range ids {
			out[e] = rows[id]
		}
		return
	}
	for e, id := range ids {
		copy(out[e*dim:(e+1)*dim], rows[int(id)*dim:])
	}
}

func gatherGrad[T tensor.Float](out, dy []T, ids []int64, dim int) {
	clear(out)
	for e, id := range ids {
		row := out[int(id)*dim : int(id+1)*dim]
		add(row, row, dy[e*dim:(e+1)*dim])
	}
}

// bag adds up the weighted rows of each bag, in order of entry.
func bag[T tensor.Float](out, rows []T, ids, offsets []int64, weights []T, dim int) {
	if dim == 1 {
		bagScalars(out, rows, ids, offsets, weights)
		return
	}
	clear(out)
	for b := range len(offsets) - 1 {
		dst := out[b*dim : (b+1)*dim]
		for e := offsets[b]; e < offsets[b+1]; e++ {
			id := int(ids[e])
			addScaled(dst, rows[id*dim:(id+1)*dim], weights[e])
		}
	}
}

// bagScalars is bag for rows of one element: the linear part of sparse models.
func bagScalars[T tensor.Float](out, rows []T, ids, offsets []int64, weights []T) {
	for b := range len(offsets) - 1 {
		lo, hi := offsets[b], offsets[b+1]
		w := weights[lo:hi]
		var s T
		for e, id := range ids[lo:hi] {
			s += w[e] * rows[id]
		}
		out[b] = s
	}
}

// bagGrad adds the weighted gradient of each bag to the rows of its entries.
func bagGrad[T tensor.Float](out, dy []T, ids, offsets []int64, weights []T, dim int) {
	clear(out)
	for b := range len(offsets) - 1 {
		grad := dy[b*dim : (b+1)*dim]
		for e := offsets[b]; e < offsets[b+1]; e++ {
			id := int(ids[e])
			if dim == 1 {
				out[id] += weights[e] * grad[0]
				continue
			}
			addScaled(out[id*dim:(id+1)*dim], grad, weights[e])
		}
	}
}

func addScaled[T tensor.Float](out, x []T, alpha T) {
	x = x[:len(out)]
	for i := range out {
		out[i] += alpha * x[i]
	}
}
