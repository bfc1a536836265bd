package native

import (
	"fmt"
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
		return b.eachOuter(0, b.maxAxis)
	case graph.ArgMax:
		return checked(countable[T](0), b.eachOuter(0, b.argMax))
	case graph.SpreadAxis, graph.MeanGrad:
		return b.eachOuter(1, b.spreadAxis)
	case graph.MaxGrad:
		return checked(countable[T](1), b.eachOuter(1, b.maxGrad))
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
func (b *builder[T]) eachOuter(k int, body func(c *compute.Call, a axis, lo, hi, worker int)) compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) {
		a := axisOf(c.In[k].Shape(), c.Node.Attr.Axis)
		return a.outer, max(a.n, 1) * a.inner
	}, func(c *compute.Call, lo, hi, worker int) {
		body(c, axisOf(c.In[k].Shape(), c.Node.Attr.Axis), lo, hi, worker)
	})
}

// sumAxis is SumAxis and Mean. The mean of nothing is 0.
func (b *builder[T]) sumAxis(c *compute.Call, a axis, lo, hi, _ int) {
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
func (b *builder[T]) spreadAxis(c *compute.Call, a axis, lo, hi, _ int) {
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

// mostNumbers is up to which whole numbers are exact in float32.
const mostNumbers = 1 << 24

// countable returns a check that the axis of input k, unless it is the last dim,
// has no more elements than a T can number.
func countable[T tensor.Float](k int) func(c *compute.Call) error {
	return func(c *compute.Call) error {
		a, most := axisOf(c.In[k].Shape(), c.Node.Attr.Axis), T(mostNumbers)
		if a.inner > 1 && a.n > mostNumbers && most+1 == most {
			return fmt.Errorf("dim %d has %d elements, more than the %d that %T can number: transpose, so that it is the last dim", c.Node.Attr.Axis, a.n, mostNumbers, most)
		}
		return nil
	}
}

// columnsBlock is how many columns are searched at once, so that what is known of
// them stays near.
const columnsBlock = 1 << 10

// largest calls f with runs of columns of one outer block: at column j, the
// largest elements along the axis, and the numbers of the first of them, NaN
// being larger than any number.
func (b *builder[T]) largest(x []T, a axis, worker int, f func(j int, top, at []T)) {
	w := &b.work[worker]
	w.a, w.b = grow(w.a, columnsBlock+2), grow(w.b, columnsBlock) // 2 for maxGrad
	for j := 0; j < a.inner; j += columnsBlock {
		n := min(columnsBlock, a.inner-j)
		top, at := w.a[:n], w.b[:n]
		copy(top, x[j:])
		clear(at)
		for i := 1; i < a.n; i++ {
			b.k.Raise(top, at, x[i*a.inner+j:][:n], T(i))
		}
		f(j, top, at)
	}
}

func (b *builder[T]) maxAxis(c *compute.Call, a axis, lo, hi, worker int) {
	out, x := tensor.Data[T](c.Out), tensor.Data[T](c.In[0])
	if a.n == 0 {
		b.k.Fill(out[lo*a.inner:hi*a.inner], T(math.Inf(-1)))
		return
	}
	for o := lo; o < hi; o++ {
		block := at(x, o, a.n*a.inner)
		if a.inner == 1 {
			out[o] = block[b.k.First(block)]
			continue
		}
		b.largest(block, a, worker, func(j int, top, _ []T) { copy(out[o*a.inner+j:], top) })
	}
}

func (b *builder[T]) argMax(c *compute.Call, a axis, lo, hi, worker int) {
	out, x := c.Out.I64(), tensor.Data[T](c.In[0])
	if a.n == 0 {
		clear(out[lo*a.inner : hi*a.inner])
		return
	}
	for o := lo; o < hi; o++ {
		block := at(x, o, a.n*a.inner)
		if a.inner == 1 {
			out[o] = int64(b.k.First(block))
			continue
		}
		b.largest(block, a, worker, func(j int, _, at []T) {
			for i, v := range at {
				out[o*a.inner+j+i] = int64(v)
			}
		})
	}
}

func (b *builder[T]) maxGrad(c *compute.Call, a axis, lo, hi, worker int) {
	out, dy, x := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1])
	if a.inner == 1 {
		clear(out[lo*a.n : hi*a.n])
	}
	for o := lo; o < hi && a.n > 0; o++ {
		block, grad := at(x, o, a.n*a.inner), at(out, o, a.n*a.inner)
		if a.inner == 1 {
			grad[b.k.First(block)] = dy[o]
			continue
		}
		b.largest(block, a, worker, func(j int, _, at []T) {
			zero, number := b.work[worker].a[columnsBlock:][:1], b.work[worker].a[columnsBlock+1:]
			zero[0] = 0
			for i := range a.n {
				row := grad[i*a.inner+j:][:len(at)]
				number[0] = T(i)
				b.k.Equal(row, at, number)
				b.k.Where(row, row, dy[o*a.inner+j:][:len(at)], zero)
			}
		})
	}
}
