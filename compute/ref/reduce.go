package ref

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

func sum[T tensor.Float](c *compute.Call) error {
	s := 0.0
	for _, v := range tensor.Data[T](c.In[0]) {
		s += float64(v)
	}
	c.Out.SetScalar(s)
	return nil
}

func sumRows[T tensor.Float](c *compute.Call) error {
	x, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out)
	dim := c.In[0].Shape()[1]
	for i := range out {
		s := 0.0
		for _, v := range x[i*dim : (i+1)*dim] {
			s += float64(v)
		}
		out[i] = T(s)
	}
	return nil
}

func count[T tensor.Float](c *compute.Call) error {
	c.Out.SetScalar(float64(c.In[0].Shape()[0]))
	return nil
}

// unbroadcast adds every element of dy to the one that was broadcast to it.
func unbroadcast[T tensor.Float](c *compute.Call) error {
	dy, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out)
	clear(out)
	for i, v := range dy {
		out[broadcastIndex(i, c.In[0].Shape(), c.In[1].Shape())] += v
	}
	return nil
}

// reduceAxis is the sum or mean over an axis.
func reduceAxis[T tensor.Float](c *compute.Call) error {
	x, out, axis := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Node.Attr.Axis
	outer, inner := split(c.In[0].Shape(), axis)
	size := c.In[0].Shape()[axis]
	for o := range outer {
		for i := range inner {
			s := 0.0
			for a := range size {
				s += float64(x[(o*size+a)*inner+i])
			}
			if c.Node.Op == graph.Mean && size > 0 {
				s /= float64(size)
			}
			out[o*inner+i] = T(s)
		}
	}
	return nil
}

// first returns the index of the first maximum of n elements of x, stride
// apart; NaN is greater than any number.
func first[T tensor.Float](x []T, n, stride int) int {
	best := 0
	for a := 1; a < n; a++ {
		v, top := x[a*stride], x[best*stride]
		if v > top || v != v && top == top {
			best = a
		}
	}
	return best
}

// maxAxis is the maximum over an axis.
func maxAxis[T tensor.Float](c *compute.Call) error {
	x, out, axis := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Node.Attr.Axis
	outer, inner := split(c.In[0].Shape(), axis)
	size := c.In[0].Shape()[axis]
	for o := range outer {
		for i := range inner {
			out[o*inner+i] = T(math.Inf(-1))
			if size > 0 {
				at := x[o*size*inner+i:]
				out[o*inner+i] = at[first(at, size, inner)*inner]
			}
		}
	}
	return nil
}

func argMax[T tensor.Float](c *compute.Call) error {
	x, out, axis := tensor.Data[T](c.In[0]), c.Out.I64(), c.Node.Attr.Axis
	outer, inner := split(c.In[0].Shape(), axis)
	size := c.In[0].Shape()[axis]
	for o := range outer {
		for i := range inner {
			out[o*inner+i] = 0
			if size > 0 {
				out[o*inner+i] = int64(first(x[o*size*inner+i:], size, inner))
			}
		}
	}
	return nil
}

// maxGrad hands dy to the first maximum.
func maxGrad[T tensor.Float](c *compute.Call) error {
	dy, x, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	axis := c.Node.Attr.Axis
	outer, inner := split(c.Out.Shape(), axis)
	size := c.Out.Shape()[axis]
	clear(out)
	for o := range outer {
		for i := range inner {
			if size > 0 {
				at := o*size*inner + i
				out[at+first(x[at:], size, inner)*inner] = dy[o*inner+i]
			}
		}
	}
	return nil
}
