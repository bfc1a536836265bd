package ref

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/tensor"
)

// matMul is out[i j] = Σ_l a[i l]·b[l j], l ascending, for every product of the
// batch.
func matMul[T tensor.Float](c *compute.Call) error {
	a, b, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	x, aRow, aCol := operand(c.In[0].Shape(), c.Node.Attr.TransA)
	_, bRow, bCol := operand(c.In[1].Shape(), c.Node.Attr.TransB)
	o, _, _ := operand(c.Out.Shape(), false)
	m, n, k := o[0], o[1], x[1]
	if c.Node.Attr.TransA {
		k = x[0]
	}
	products := c.Out.Shape()[:len(c.Out.Shape())-2].Elems()
	shared := len(c.In[1].Shape()) == 2
	for p := range products {
		a, out, b := a[p*m*k:], out[p*m*n:], b
		if !shared {
			b = b[p*k*n:]
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
	}
	return nil
}

// operand returns the last two dims and how far apart neighbours of a row and
// of a column lie in memory; transposing swaps them.
func operand(s tensor.Shape, trans bool) (last tensor.Shape, row, col int) {
	last = s[len(s)-2:]
	if trans {
		return last, 1, last[1]
	}
	return last, last[1], 1
}
