package native

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// pointLoss is for losses of one number and its label a row: there are few of
// them beside the rest of a model, so they are taken in float64.
func pointLoss[T tensor.Float](op graph.Op) compute.Kernel {
	return func(c *compute.Call) error {
		z, y := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1])
		if op == graph.LogisticLoss || op == graph.LogisticGrad {
			if err := compute.CheckTargets(y); err != nil {
				return err
			}
		}
		switch op {
		case graph.LogisticLoss:
			c.Out.SetScalar(logisticLoss(z, y))
		case graph.SquaredLoss:
			c.Out.SetScalar(squaredLoss(z, y))
		case graph.LogisticGrad:
			logisticGrad(tensor.Data[T](c.Out), z, y, c.In[2].Scalar())
		case graph.SquaredGrad:
			squaredGrad(tensor.Data[T](c.Out), z, y, c.In[2].Scalar())
		}
		return nil
	}
}

// logisticLoss is Σ max(z,0) - z·y + log(1+exp(-|z|)), which never overflows.
func logisticLoss[T tensor.Float](z, y []T) float64 {
	y = y[:len(z)]
	loss := 0.0
	for i, v := range z {
		p := float64(v)
		loss += max(p, 0) - p*float64(y[i]) + math.Log1p(math.Exp(-math.Abs(p)))
	}
	return loss
}

func squaredLoss[T tensor.Float](p, y []T) float64 {
	y = y[:len(p)]
	loss := 0.0
	for i, v := range p {
		d := float64(v) - float64(y[i])
		loss += d * d / 2
	}
	return loss
}

func logisticGrad[T tensor.Float](out, z, y []T, dy float64) {
	z, y = z[:len(out)], y[:len(out)]
	for i := range out {
		out[i] = T((sigmoid64(float64(z[i])) - float64(y[i])) * dy)
	}
}

func squaredGrad[T tensor.Float](out, p, y []T, dy float64) {
	p, y = p[:len(out)], y[:len(out)]
	for i := range out {
		out[i] = T((float64(p[i]) - float64(y[i])) * dy)
	}
}
