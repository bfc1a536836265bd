package ref

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/tensor"
)

// gather copies the row that each id names.
func gather[T tensor.Float](c *compute.Call) error {
	rows, ids, out := tensor.Data[T](c.In[0]), c.In[1].I64(), tensor.Data[T](c.Out)
	n, dim := c.In[0].Shape()[0], c.In[0].Shape()[1]
	if err := compute.CheckIDs(ids, n); err != nil {
		return err
	}
	for e, id := range ids {
		for d := range dim {
			out[e*dim+d] = rows[int(id)*dim+d]
		}
	}
	return nil
}

// gatherGrad adds the gradient of each entry to the row it was copied from, in
// order of entry.
func gatherGrad[T tensor.Float](c *compute.Call) error {
	dy, ids, out := tensor.Data[T](c.In[0]), c.In[1].I64(), tensor.Data[T](c.Out)
	n, dim := c.Out.Shape()[0], c.Out.Shape()[1]
	if err := compute.CheckIDs(ids, n); err != nil {
		return err
	}
	clear(out)
	for e, id := range ids {
		for d := range dim {
			out[int(id)*dim+d] += dy[e*dim+d]
		}
	}
	return nil
}

// bag is the weighted sum of the rows that the entries of a bag name.
func bag[T tensor.Float](c *compute.Call) error {
	rows, ids, out := tensor.Data[T](c.In[0]), c.In[1].I64(), tensor.Data[T](c.Out)
	offsets, weights := c.In[2].I64(), tensor.Data[T](c.In[3])
	n, dim := c.In[0].Shape()[0], c.In[0].Shape()[1]
	if err := checkBags(ids, offsets, n); err != nil {
		return err
	}
	clear(out)
	for b := range len(offsets) - 1 {
		for e := offsets[b]; e < offsets[b+1]; e++ {
			for d := range dim {
				out[b*dim+d] += weights[e] * rows[int(ids[e])*dim+d]
			}
		}
		if n := offsets[b+1] - offsets[b]; c.Node.Attr.Mean && n > 0 {
			for d := range dim {
				out[b*dim+d] /= T(n)
			}
		}
	}
	return nil
}

// bagGrad adds the gradient of a bag, times the weight of the entry, to the
// row of each of its entries. Weights have no gradient.
func bagGrad[T tensor.Float](c *compute.Call) error {
	dy, ids, out := tensor.Data[T](c.In[0]), c.In[1].I64(), tensor.Data[T](c.Out)
	offsets, weights := c.In[2].I64(), tensor.Data[T](c.In[3])
	n, dim := c.Out.Shape()[0], c.Out.Shape()[1]
	if err := checkBags(ids, offsets, n); err != nil {
		return err
	}
	clear(out)
	for b := range len(offsets) - 1 {
		for e := offsets[b]; e < offsets[b+1]; e++ {
			for d := range dim {
				g := dy[b*dim+d]
				if c.Node.Attr.Mean {
					g /= T(offsets[b+1] - offsets[b])
				}
				out[int(ids[e])*dim+d] += weights[e] * g
			}
		}
	}
	return nil
}

func checkBags(ids, offsets []int64, rows int) error {
	if err := compute.CheckOffsets(offsets, len(ids)); err != nil {
		return err
	}
	return compute.CheckIDs(ids, rows)
}
