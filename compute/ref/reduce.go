package ref

import (
	"math"

	"github.com/gangline/gangline/compute"
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

// softmax is exp(z)/Σexp(z) a row, with the row's maximum taken off first so
// that no exponential overflows.
func softmax[T tensor.Float](c *compute.Call) error {
	z, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out)
	rows, classes := c.Out.Shape()[0], c.Out.Shape()[1]
	for i := range rows {
		row := z[i*classes : (i+1)*classes]
		logSum := logSumExp(row)
		for j, v := range row {
			out[i*classes+j] = T(math.Exp(float64(v) - logSum))
		}
	}
	return nil
}

// softmaxGrad is y·(dy - Σ y·dy) a row.
func softmaxGrad[T tensor.Float](c *compute.Call) error {
	y, dy, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	rows, classes := c.Out.Shape()[0], c.Out.Shape()[1]
	for i := range rows {
		dot := 0.0
		for j := i * classes; j < (i+1)*classes; j++ {
			dot += float64(y[j]) * float64(dy[j])
		}
		for j := i * classes; j < (i+1)*classes; j++ {
			out[j] = y[j] * (dy[j] - T(dot))
		}
	}
	return nil
}

func logSumExp[T tensor.Float](z []T) float64 {
	top := math.Inf(-1)
	for _, v := range z {
		top = max(top, float64(v))
	}
	s := 0.0
	for _, v := range z {
		s += math.Exp(float64(v) - top)
	}
	return top + math.Log(s)
}
