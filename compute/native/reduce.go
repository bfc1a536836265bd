package native

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// reductions returns the kernel of an operator that sums or chooses, nil for
// others.
func (b *builder[T]) reductions(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.Sum:
		return b.sum()
	case graph.SumRows:
		return b.eachRow(0, 1, func(c *compute.Call, lo, hi, _ int) {
			out, x, dim := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), lastDim(c.In[0])
			for i := lo; i < hi; i++ {
				out[i] = T(b.k.Sum(x[i*dim : (i+1)*dim]))
			}
		})
	case graph.Count:
		return func(c *compute.Call) error {
			c.Out.SetScalar(float64(c.In[0].Shape()[0]))
			return nil
		}
	case graph.Unbroadcast:
		return b.unbroadcast()
	case graph.SumAxis, graph.Mean:
		return b.eachOuter(0, b.sumAxis)
	case graph.Max:
		return b.eachOuter(0, maxAxis[T])
	case graph.ArgMax:
		return b.eachOuter(0, argMax[T])
	case graph.SpreadAxis, graph.MeanGrad:
		return b.eachOuter(1, b.spreadAxis)
	case graph.MaxGrad:
		return b.eachOuter(1, maxGrad[T])
	}
	return nil
}

// sumBlock is how many elements are added up in one go: the sum of these sums
// does not depend on who took which.
const sumBlock = 1 << 15

// sum adds blocks on threads, and then their sums.
func (b *builder[T]) sum() compute.Kernel {
	var sums []float64
	blocks := b.eachOf(func(*compute.Call) (int, int) { return len(sums), sumBlock }, func(c *compute.Call, lo, hi, _ int) {
		x := tensor.Data[T](c.In[0])
		for i := lo; i < hi; i++ {
			sums[i] = b.k.Sum(x[i*sumBlock : min(len(x), (i+1)*sumBlock)])
		}
	})
	return func(c *compute.Call) error {
		sums = grow(sums, (c.In[0].Elems()+sumBlock-1)/sumBlock)
		if err := blocks(c); err != nil {
			return err
		}
		c.Out.SetScalar(total(sums))
		return nil
	}
}

// axis is a tensor seen as [outer n inner] around one of its dims.
type axis struct{ outer, n, inner int }

func axisOf(s tensor.Shape, at int) axis {
	return axis{s[:at].Elems(), s[at], s[at+1:].Elems()}
}

// eachOuter makes a kernel of a body over the outer blocks of input k.
func (b *builder[T]) eachOuter(k int, body func(c *compute.Call, a axis, lo, hi int)) compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) {
		a := axisOf(c.In[k].Shape(), c.Node.Attr.Axis)
		return a.outer, max(a.n, 1) * a.inner
	}, func(c *compute.Call, lo, hi, _ int) {
		body(c, axisOf(c.In[k].Shape(), c.Node.Attr.Axis), lo, hi)
	})
}

// sumAxis is SumAxis and Mean. The mean of nothing is 0.
func (b *builder[T]) sumAxis(c *compute.Call, a axis, lo, hi int) {
	out, x := tensor.Data[T](c.Out), tensor.Data[T](c.In[0])
	divisor := 1.0
	if c.Node.Op == graph.Mean {
		divisor = float64(max(1, a.n))
	}
	for o := lo; o < hi; o++ {
		if a.inner == 1 {
			out[o] = T(b.k.Sum(x[o*a.n:(o+1)*a.n]) / divisor)
			continue
		}
		dst := out[o*a.inner : (o+1)*a.inner]
		clear(dst)
		for i := range a.n {
			at := (o*a.n + i) * a.inner
			b.k.Add(dst, dst, x[at:at+a.inner])
		}
		if divisor != 1 {
			b.k.Scale(dst, dst, T(1/divisor))
		}
	}
}

// spreadAxis is SpreadAxis and MeanGrad.
func (b *builder[T]) spreadAxis(c *compute.Call, a axis, lo, hi int) {
	out, dy, alpha := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), T(1)
	if c.Node.Op == graph.MeanGrad {
		alpha = T(1 / float64(max(1, a.n)))
	}
	for o := lo; o < hi; o++ {
		src := dy[o*a.inner : (o+1)*a.inner]
		for i := range a.n {
			at := (o*a.n + i) * a.inner
			b.k.Scale(out[at:at+a.inner], src, alpha)
		}
	}
}

// first returns where along the axis the first maximum is, of n elements that
// lie stride apart. NaN is greater than any number.
func first[T tensor.Float](x []T, n, stride int) int {
	best := 0
	for i := range n {
		v, top := x[i*stride], x[best*stride]
		if top != top {
			return best
		}
		if v > top || v != v {
			best = i
		}
	}
	return best
}

func maxAxis[T tensor.Float](c *compute.Call, a axis, lo, hi int) {
	out, x := tensor.Data[T](c.Out), tensor.Data[T](c.In[0])
	for o := lo; o < hi; o++ {
		for i := range a.inner {
			if a.n == 0 {
				out[o*a.inner+i] = T(math.Inf(-1))
				continue
			}
			block := x[o*a.n*a.inner+i:]
			out[o*a.inner+i] = block[first(block, a.n, a.inner)*a.inner]
		}
	}
}

func argMax[T tensor.Float](c *compute.Call, a axis, lo, hi int) {
	out, x := c.Out.I64(), tensor.Data[T](c.In[0])
	for o := lo; o < hi; o++ {
		for i := range a.inner {
			out[o*a.inner+i] = 0
			if a.n > 0 {
				out[o*a.inner+i] = int64(first(x[o*a.n*a.inner+i:], a.n, a.inner))
			}
		}
	}
}

func maxGrad[T tensor.Float](c *compute.Call, a axis, lo, hi int) {
	out, dy, x := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1])
	clear(out[lo*a.n*a.inner : hi*a.n*a.inner])
	for o := lo; o < hi && a.n > 0; o++ {
		for i := range a.inner {
			at := o*a.n*a.inner + i
			out[at+first(x[at:], a.n, a.inner)*a.inner] = dy[o*a.inner+i]
		}
	}
}
