package native

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// norms returns the kernel of a normalisation or a softmax over the last dim,
// or of their gradients; nil for others.
func (b *builder[T]) norms(n *graph.Node) compute.Kernel {
	layer := n.Op == graph.LayerNorm || n.Op == graph.LayerNormGrad || n.Op == graph.LayerNormGainGrad
	eps := n.Attr.Eps
	switch n.Op {
	case graph.LayerNorm, graph.RMSNorm:
		return b.eachRow(0, 2, func(c *compute.Call, lo, hi, _ int) { b.normalize(c, lo, hi, layer, eps) })
	case graph.LayerNormGrad, graph.RMSNormGrad:
		return b.eachRow(0, 4, func(c *compute.Call, lo, hi, _ int) { b.normGrad(c, lo, hi, layer, eps) })
	case graph.LayerNormGainGrad, graph.RMSNormGainGrad:
		return b.gainGrad(layer, eps)
	case graph.Softmax:
		return b.eachRow(0, 4, func(c *compute.Call, lo, hi, _ int) {
			out, z, n := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), lastDim(c.Out)
			for i := lo; i < hi; i++ {
				b.softmax(out[i*n:(i+1)*n], z[i*n:(i+1)*n])
			}
		})
	case graph.SoftmaxGrad:
		return b.eachRow(0, 2, func(c *compute.Call, lo, hi, _ int) {
			out, y, dy, n := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), lastDim(c.Out)
			for i := lo; i < hi; i++ {
				row, grad := y[i*n:(i+1)*n], dy[i*n:(i+1)*n]
				b.k.SoftmaxGrad(out[i*n:(i+1)*n], row, grad, T(b.k.Dot(row, grad)))
			}
		})
	}
	return nil
}

func lastDim(t *tensor.Tensor) int { return t.Shape()[len(t.Shape())-1] }

// softmax is exp(z - max)/Σexp(z - max). out may be z.
func (b *builder[T]) softmax(out, z []T) {
	s := b.k.ExpSum(out, z, b.k.Max(z))
	b.k.Scale(out, out, T(1/s))
}

// moments returns what a row is normalised by: its mean, 0 for an RMS norm, and
// 1/sqrt(variance + eps).
func (b *builder[T]) moments(x []T, layer bool, eps float64) (mean, inv float64) {
	n := float64(len(x))
	if !layer {
		return 0, 1 / math.Sqrt(b.k.Dot(x, x)/n+eps)
	}
	mean = b.k.Sum(x) / n
	return mean, 1 / math.Sqrt(b.k.Squares(x, mean)/n+eps)
}

func (b *builder[T]) normalize(c *compute.Call, lo, hi int, layer bool, eps float64) {
	out, x, gain, n := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), lastDim(c.Out)
	for i := lo; i < hi; i++ {
		row := x[i*n : (i+1)*n]
		mean, inv := b.moments(row, layer, eps)
		if layer {
			b.k.Normalize(out[i*n:(i+1)*n], row, gain, tensor.Data[T](c.In[2]), T(mean), T(inv))
			continue
		}
		b.k.ScaleMul(out[i*n:(i+1)*n], row, gain, T(inv))
	}
}

// normGrad is, with t = dy·gain and x̂ = (x - mean)·inv, the means over the row
// written as M: inv·(t - M(t) - x̂·M(t·x̂)); without M(t) for an RMS norm.
func (b *builder[T]) normGrad(c *compute.Call, lo, hi int, layer bool, eps float64) {
	out, x, gain, dy := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.In[2])
	n := lastDim(c.Out)
	for i := lo; i < hi; i++ {
		row, t := x[i*n:(i+1)*n], out[i*n:(i+1)*n]
		mean, inv := b.moments(row, layer, eps)
		b.k.Mul(t, dy[i*n:(i+1)*n], gain)
		shift := 0.0
		slope := b.k.Dot(t, row)
		if layer {
			shift = b.k.Sum(t)
			slope -= mean * shift
			shift /= float64(n)
		}
		slope *= inv * inv / float64(n)
		b.k.NormGrad(t, t, row, T(mean), T(inv), T(shift), T(slope))
	}
}

// gainGrad is Σ x̂·dy over the rows: first the moments of every row, then the
// columns, each in the order of the rows.
func (b *builder[T]) gainGrad(layer bool, eps float64) compute.Kernel {
	var moments [][2]T
	rows := b.eachRow(0, 1, func(c *compute.Call, lo, hi, _ int) {
		x, n := tensor.Data[T](c.In[0]), lastDim(c.Out)
		for i := lo; i < hi; i++ {
			mean, inv := b.moments(x[i*n:(i+1)*n], layer, eps)
			moments[i] = [2]T{T(mean), T(inv)}
		}
	})
	columns := b.eachColumn(func(c *compute.Call) (int, int) {
		return c.Out.Elems(), len(moments)
	}, func(c *compute.Call, lo, hi, _ int) {
		if x, dy := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]); len(moments) > 0 {
			b.k.SumNormProducts(tensor.Data[T](c.Out)[lo:hi], x[lo:], dy[lo:], moments, c.Out.Elems())
			return
		}
		clear(tensor.Data[T](c.Out)[lo:hi])
	})
	return func(c *compute.Call) error {
		s := c.In[0].Shape()
		moments = grow(moments, s[:len(s)-1].Elems())
		if err := rows(c); err != nil {
			return err
		}
		return columns(c)
	}
}
