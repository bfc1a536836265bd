package ref

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// pointLoss is the sum over rows of a loss of one number and its label.
func pointLoss[T tensor.Float](c *compute.Call) error {
	z, y := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1])
	logistic := c.Node.Op == graph.LogisticLoss
	if logistic {
		if err := compute.CheckTargets(y); err != nil {
			return err
		}
	}
	loss := 0.0
	for i := range z {
		p, t := float64(z[i]), float64(y[i])
		if logistic {
			loss += max(p, 0) - p*t + math.Log1p(math.Exp(-math.Abs(p)))
		} else {
			loss += (p - t) * (p - t) / 2
		}
	}
	c.Out.SetScalar(loss)
	return nil
}

func pointLossGrad[T tensor.Float](c *compute.Call) error {
	z, y, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	dy := c.In[2].Scalar()
	logistic := c.Node.Op == graph.LogisticGrad
	if logistic {
		if err := compute.CheckTargets(y); err != nil {
			return err
		}
	}
	for i := range z {
		p := float64(z[i])
		if logistic {
			p = sigmoid(p)
		}
		out[i] = T((p - float64(y[i])) * dy)
	}
	return nil
}

func softmaxLoss[T tensor.Float](c *compute.Call) error {
	z, y := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1])
	classes := c.In[0].Shape()[1]
	if err := compute.CheckClasses(y, classes); err != nil {
		return err
	}
	loss := 0.0
	for i, label := range y {
		row := z[i*classes : (i+1)*classes]
		loss += logSumExp(row) - float64(row[int(label)])
	}
	c.Out.SetScalar(loss)
	return nil
}

// softmaxLossGrad is (softmax(z) - onehot(label))·dy.
func softmaxLossGrad[T tensor.Float](c *compute.Call) error {
	z, y, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	classes, dy := c.In[0].Shape()[1], c.In[2].Scalar()
	if err := compute.CheckClasses(y, classes); err != nil {
		return err
	}
	for i, label := range y {
		row := z[i*classes : (i+1)*classes]
		logSum := logSumExp(row)
		for j, v := range row {
			g := math.Exp(float64(v) - logSum)
			if j == int(label) {
				g--
			}
			out[i*classes+j] = T(g * dy)
		}
	}
	return nil
}
