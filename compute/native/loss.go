package native

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// losses returns the kernel of a loss or its gradient, nil for others.
//
// A loss computes the loss of every row on threads, in float64, and then adds
// them in order.
func (b *builder[T]) losses(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.LogisticLoss:
		return checked(checkTargets[T], b.loss(60, func(c *compute.Call, i, _ int) float64 {
			return logisticLoss(float64(tensor.Data[T](c.In[0])[i]), float64(tensor.Data[T](c.In[1])[i]))
		}))
	case graph.SquaredLoss:
		return b.loss(1, func(c *compute.Call, i, _ int) float64 {
			d := float64(tensor.Data[T](c.In[0])[i]) - float64(tensor.Data[T](c.In[1])[i])
			return d * d / 2
		})
	case graph.SoftmaxLoss:
		return checked(checkClasses[T], b.loss(0, b.softmaxLoss))
	case graph.LogisticGrad:
		return checked(checkTargets[T], b.each(40, logisticGrad[T]))
	case graph.SquaredGrad:
		return b.each(1, squaredGrad[T])
	case graph.SoftmaxLossGrad:
		return checked(checkClasses[T], b.eachRow(0, 4, b.softmaxLossGrad))
	}
	return nil
}

// checked looks at the labels first.
func checked(check func(c *compute.Call) error, k compute.Kernel) compute.Kernel {
	return func(c *compute.Call) error {
		if err := check(c); err != nil {
			return err
		}
		return k(c)
	}
}

func checkTargets[T tensor.Float](c *compute.Call) error {
	return compute.CheckTargets(tensor.Data[T](c.In[1]))
}

func checkClasses[T tensor.Float](c *compute.Call) error {
	return compute.CheckClasses(tensor.Data[T](c.In[1]), c.In[0].Shape()[1])
}

// loss adds up what row makes of every label. cost 0 is that of a softmax.
func (b *builder[T]) loss(cost int, row func(c *compute.Call, i, worker int) float64) compute.Kernel {
	var all []float64
	rows := b.eachOf(func(c *compute.Call) (int, int) {
		if cost == 0 {
			return len(all), 4 * lastDim(c.In[0])
		}
		return len(all), cost
	}, func(c *compute.Call, lo, hi, worker int) {
		for i := lo; i < hi; i++ {
			all[i] = row(c, i, worker)
		}
	})
	return func(c *compute.Call) error {
		all = grow(all, c.In[1].Elems())
		if err := rows(c); err != nil {
			return err
		}
		total := 0.0
		for _, v := range all {
			total += v
		}
		c.Out.SetScalar(total)
		return nil
	}
}

// logisticLoss is max(z,0) - z·y + log(1+exp(-|z|)), which never overflows.
func logisticLoss(z, y float64) float64 {
	return max(z, 0) - z*y + math.Log1p(math.Exp(-math.Abs(z)))
}

func logisticGrad[T tensor.Float](c *compute.Call, lo, hi, _ int) {
	out, z, y, dy := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), c.In[2].Scalar()
	for i := lo; i < hi; i++ {
		v := float64(z[i])
		e := math.Exp(-math.Abs(v))
		p := 1 / (1 + e)
		if v < 0 {
			p = e / (1 + e)
		}
		out[i] = T((p - float64(y[i])) * dy)
	}
}

func squaredGrad[T tensor.Float](c *compute.Call, lo, hi, _ int) {
	out, p, y, dy := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), c.In[2].Scalar()
	for i := lo; i < hi; i++ {
		out[i] = T((float64(p[i]) - float64(y[i])) * dy)
	}
}

// softmaxLoss is max + log Σexp(z - max) - z_y.
func (b *builder[T]) softmaxLoss(c *compute.Call, i, worker int) float64 {
	n := lastDim(c.In[0])
	row := tensor.Data[T](c.In[0])[i*n : (i+1)*n]
	w := &b.work[worker]
	w.a = grow(w.a, n)
	top := b.k.Max(row)
	s := b.k.ExpSum(w.a, row, top)
	return float64(top) + math.Log(s) - float64(row[int(tensor.Data[T](c.In[1])[i])])
}

// softmaxLossGrad is (softmax(z) - onehot(y))·dy. out may be z.
func (b *builder[T]) softmaxLossGrad(c *compute.Call, lo, hi, _ int) {
	out, z, y, n := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), lastDim(c.Out)
	dy := T(c.In[2].Scalar())
	for i := lo; i < hi; i++ {
		row := out[i*n : (i+1)*n]
		b.softmax(row, z[i*n:(i+1)*n])
		row[int(y[i])]--
		if dy != 1 {
			b.k.Scale(row, row, dy)
		}
	}
}
