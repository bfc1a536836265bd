package native

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// losses returns the kernel of a loss or its gradient, nil for others.
func (b *builder[T]) losses(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.LogisticLoss:
		return checked(b.checkTargets, b.loss(4, 1, b.k.LogisticLoss))
	case graph.SquaredLoss:
		return b.loss(1, 0.5, b.k.SquaredLoss)
	case graph.SoftmaxLoss:
		return checked(checkClasses[T], b.softmaxLoss())
	case graph.LogisticGrad:
		return checked(b.checkTargets, b.pointGrad(5, b.k.LogisticGrad))
	case graph.SquaredGrad:
		return b.pointGrad(1, b.k.SquaredGrad)
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

// checkTargets looks for the label that is wrong only if there is one.
func (b *builder[T]) checkTargets(c *compute.Call) error {
	y := tensor.Data[T](c.In[1])
	if b.k.Inside(y, 0, 1) {
		return nil
	}
	return compute.CheckTargets(y)
}

func checkClasses[T tensor.Float](c *compute.Call) error {
	return compute.CheckClasses(tensor.Data[T](c.In[1]), c.In[0].Shape()[1])
}

// lossBlock is how many rows' losses are added up in one go: the sum of these
// sums, in order, does not depend on who took which.
const lossBlock = 1 << 10

// loss adds blocks of rows on threads, in float64, and then their sums.
func (b *builder[T]) loss(cost int, factor float64, sum func(x, y []T) float64) compute.Kernel {
	var sums []float64
	blocks := b.eachOf(func(*compute.Call) (int, int) { return len(sums), cost * lossBlock }, func(c *compute.Call, lo, hi, _ int) {
		x, y := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1])
		for i := lo; i < hi; i++ {
			from, to := i*lossBlock, min(len(y), (i+1)*lossBlock)
			sums[i] = sum(x[from:to], y[from:to])
		}
	})
	return func(c *compute.Call) error {
		sums = grow(sums, (c.In[1].Elems()+lossBlock-1)/lossBlock)
		if err := blocks(c); err != nil {
			return err
		}
		c.Out.SetScalar(factor * total(sums))
		return nil
	}
}

// total adds in order.
func total(sums []float64) float64 {
	t := 0.0
	for _, s := range sums {
		t += s
	}
	return t
}

// pointGrad is the gradient of a loss of one number a row.
func (b *builder[T]) pointGrad(cost int, f func(out, x, y []T, dy T)) compute.Kernel {
	return b.each(cost, func(c *compute.Call, lo, hi, _ int) {
		f(tensor.Data[T](c.Out)[lo:hi], tensor.Data[T](c.In[0])[lo:hi], tensor.Data[T](c.In[1])[lo:hi], T(c.In[2].Scalar()))
	})
}

// softmaxLoss is max + log Σexp(z - max) - z_y of every row, on threads, and
// then their sum, in order.
func (b *builder[T]) softmaxLoss() compute.Kernel {
	var losses []float64
	rows := b.eachRow(0, 4, func(c *compute.Call, lo, hi, worker int) {
		z, y, n, w := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), lastDim(c.In[0]), &b.work[worker]
		w.a = grow(w.a, n)
		for i := lo; i < hi; i++ {
			row := z[i*n : (i+1)*n]
			top := b.k.Max(row)
			s := b.k.ExpSum(w.a, row, top)
			losses[i] = float64(top) + math.Log(s) - float64(row[int(y[i])])
		}
	})
	return func(c *compute.Call) error {
		losses = grow(losses, c.In[1].Elems())
		if err := rows(c); err != nil {
			return err
		}
		c.Out.SetScalar(total(losses))
		return nil
	}
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
