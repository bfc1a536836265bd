package ref

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// conv2D visits, for every element of the result y, the elements of x and w whose
// products it sums: op is called with their places in memory, in the order of
// image, output channel, row and column; then input channel, row and column of w.
func conv2D(x, w, y tensor.Shape, a *graph.Attr, op func(x, w, y int)) {
	for b := range y[0] {
		for o := range y[1] {
			for i := range y[2] {
				for j := range y[3] {
					at := ((b*y[1]+o)*y[2]+i)*y[3] + j
					for c := range w[1] {
						for k := range w[2] {
							for l := range w[3] {
								row, col := i*a.Stride+k-a.Pad, j*a.Stride+l-a.Pad
								if row < 0 || row >= x[2] || col < 0 || col >= x[3] {
									continue // in the zeros around
								}
								op(((b*x[1]+c)*x[2]+row)*x[3]+col, ((o*w[1]+c)*w[2]+k)*w[3]+l, at)
							}
						}
					}
				}
			}
		}
	}
}

// convolution is Conv2D and its two gradients: what is summed is a product of
// the other two.
func convolution[T tensor.Float](c *compute.Call) error {
	a, b, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	sa, sb, so := c.In[0].Shape(), c.In[1].Shape(), c.Out.Shape()
	clear(out)
	switch c.Node.Op {
	case graph.Conv2D:
		conv2D(sa, sb, so, &c.Node.Attr, func(x, w, y int) { out[y] += a[x] * b[w] })
	case graph.Conv2DGradX:
		conv2D(so, sb, sa, &c.Node.Attr, func(x, w, y int) { out[x] += a[y] * b[w] })
	default:
		conv2D(sb, so, sa, &c.Node.Attr, func(x, w, y int) { out[w] += a[y] * b[x] })
	}
	return nil
}

// pool2D calls op for every element of the result y with where its window in x
// starts.
func pool2D(x, y tensor.Shape, stride int, op func(x, y int)) {
	for p := range y[0] * y[1] {
		for i := range y[2] {
			for j := range y[3] {
				op((p*x[2]+i*stride)*x[3]+j*stride, (p*y[2]+i)*y[3]+j)
			}
		}
	}
}

// window calls op for the places of a window that starts at x, in images of the
// given width.
func window(x, width, side int, op func(x int)) {
	for k := range side {
		for l := range side {
			op(x + k*width + l)
		}
	}
}

func maxPool[T tensor.Float](c *compute.Call) error {
	x, out, s, a := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.In[0].Shape(), &c.Node.Attr
	pool2D(s, c.Out.Shape(), a.Stride, func(from, to int) {
		out[to] = T(math.Inf(-1))
		window(from, s[3], a.Window, func(i int) { out[to] = max(out[to], x[i]) })
	})
	return nil
}

// maxPoolGrad adds dy to the first maximum of each window.
func maxPoolGrad[T tensor.Float](c *compute.Call) error {
	dy, x, out := tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1]), tensor.Data[T](c.Out)
	s, a := c.Out.Shape(), &c.Node.Attr
	clear(out)
	pool2D(s, c.In[0].Shape(), a.Stride, func(from, to int) {
		best := from
		window(from, s[3], a.Window, func(i int) {
			if x[i] > x[best] || x[i] != x[i] && x[best] == x[best] {
				best = i
			}
		})
		out[best] += dy[to]
	})
	return nil
}

func avgPool[T tensor.Float](c *compute.Call) error {
	x, out, s, a := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.In[0].Shape(), &c.Node.Attr
	pool2D(s, c.Out.Shape(), a.Stride, func(from, to int) {
		var sum T
		window(from, s[3], a.Window, func(i int) { sum += x[i] })
		out[to] = sum / T(a.Window*a.Window)
	})
	return nil
}

func avgPoolGrad[T tensor.Float](c *compute.Call) error {
	dy, out, s, a := tensor.Data[T](c.In[0]), tensor.Data[T](c.Out), c.Out.Shape(), &c.Node.Attr
	clear(out)
	pool2D(s, c.In[0].Shape(), a.Stride, func(from, to int) {
		window(from, s[3], a.Window, func(i int) { out[i] += dy[to] / T(a.Window*a.Window) })
	})
	return nil
}
