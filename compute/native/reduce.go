package native

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

func reduction[T tensor.Float](op graph.Op) compute.Kernel {
	switch op {
	case graph.Sum:
		return func(c *compute.Call) error {
			c.Out.SetScalar(sum(tensor.Data[T](c.In[0])))
			return nil
		}
	case graph.SumRows:
		return func(c *compute.Call) error {
			sumRows(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), c.In[0].Shape()[1])
			return nil
		}
	case graph.Unbroadcast:
		return func(c *compute.Call) error {
			unbroadcast(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), c.In[0].Shape(), c.In[1].Shape())
			return nil
		}
	}
	return func(c *compute.Call) error {
		c.Out.SetScalar(float64(c.In[0].Shape()[0]))
		return nil
	}
}

// sum adds in float64, in four interleaved sums that do not wait for each other.
func sum[T tensor.Float](x []T) float64 {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		s0, s1, s2, s3 = s0+float64(x[0]), s1+float64(x[1]), s2+float64(x[2]), s3+float64(x[3])
		x = x[4:]
	}
	for _, v := range x {
		s0 += float64(v)
	}
	return s0 + s1 + (s2 + s3)
}

func sumRows[T tensor.Float](out, x []T, dim int) {
	for i := range out {
		out[i] = T(sum(x[i*dim : (i+1)*dim]))
	}
}

func (b *builder[T]) softmaxKernel(op graph.Op) compute.Kernel {
	switch op {
	case graph.Softmax:
		return func(c *compute.Call) error {
			softmax(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), c.Out.Shape()[1], b.math.exp)
			return nil
		}
	case graph.SoftmaxGrad:
		return func(c *compute.Call) error {
			softmaxGrad(tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), c.Out.Shape()[1])
			return nil
		}
	}
	return func(c *compute.Call) error {
		z, y, classes := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), c.In[0].Shape()[1]
		if err := compute.CheckClasses(y, classes); err != nil {
			return err
		}
		if op == graph.SoftmaxLoss {
			c.Out.SetScalar(softmaxLoss(z, y, classes, b.math.exp))
			return nil
		}
		softmaxLossGrad(tensor.Data[T](c.Out), z, y, T(c.In[2].Scalar()), classes, b.math.exp)
		return nil
	}
}

// softmax is exp(z - max)/Σexp(z - max) a row. out may be z.
func softmax[T tensor.Float](out, z []T, classes int, exp func(T) T) {
	for len(z) > 0 {
		row, dst := z[:classes], out[:classes]
		top, s := maximum(row), 0.0
		for j, v := range row {
			e := exp(v - top)
			dst[j] = e
			s += float64(e)
		}
		scale(dst, dst, T(1/s))
		z, out = z[classes:], out[classes:]
	}
}

// softmaxGrad is y·(dy - Σ y·dy) a row. out may be y or dy.
func softmaxGrad[T tensor.Float](out, y, dy []T, classes int) {
	for len(y) > 0 {
		row, grad, dst := y[:classes], dy[:classes], out[:classes]
		dot := 0.0
		for j, v := range row {
			dot += float64(v) * float64(grad[j])
		}
		for j, v := range row {
			dst[j] = v * (grad[j] - T(dot))
		}
		y, dy, out = y[classes:], dy[classes:], out[classes:]
	}
}

// softmaxLoss is Σ max + log Σexp(z - max) - z_y, added up in float64.
func softmaxLoss[T tensor.Float](z, y []T, classes int, exp func(T) T) float64 {
	loss := 0.0
	for i, label := range y {
		row := z[i*classes : (i+1)*classes]
		top, s := maximum(row), 0.0
		for _, v := range row {
			s += float64(exp(v - top))
		}
		loss += float64(top) + math.Log(s) - float64(row[int(label)])
	}
	return loss
}

// softmaxLossGrad is (softmax(z) - onehot(y))·dy. out may be z.
func softmaxLossGrad[T tensor.Float](out, z, y []T, dy T, classes int, exp func(T) T) {
	softmax(out, z, classes, exp)
	for i, label := range y {
		out[i*classes+int(label)]--
	}
	if dy != 1 {
		scale(out, out, dy)
	}
}

func maximum[T tensor.Float](x []T) T {
	top := T(math.Inf(-1))
	for _, v := range x {
		top = max(top, v)
	}
	return top
}
