package ref

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/tensor"
)

// matMul is out[i j] = Σ_l a[i l]·b[l j], l ascending. The strides say how far
// apart neighbours of a dim lie in memory; transposing swaps them.
func matMul[T tensor.Float](c *compute.Call) error {
	a, b, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	m, n := c.Out.Shape()[0], c.Out.Shape()[1]
	k, aRow, aCol := c.In[0].Shape()[1], c.In[0].Shape()[1], 1
	if c.Node.Attr.TransA {
		k, aRow, aCol = c.In[0].Shape()[0], 1, c.In[0].Shape()[1]
	}
	bRow, bCol := c.In[1].Shape()[1], 1
	if c.Node.Attr.TransB {
		bRow, bCol = bCol, bRow
	}
	for i := range m {
		for j := range n {
			var s T
			for l := range k {
				s += a[i*aRow+l*aCol] * b[l*bRow+j*bCol]
			}
			out[i*n+j] = s
		}
	}
	return nil
}
