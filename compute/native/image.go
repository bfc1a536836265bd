package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native/internal/kernel"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// images returns the kernel of a convolution, a pooling or a gradient of one;
// nil for others.
func (b *builder[T]) images(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.Conv2D:
		return b.eachImage(0, 1, func(c *compute.Call) convolution {
			return convolutionOf(c.Node, c.In[0].Shape(), c.In[1].Shape(), c.Out.Shape())
		}, b.convolve)
	case graph.Conv2DGradX:
		return b.eachImage(2, 1, func(c *compute.Call) convolution {
			return convolutionOf(c.Node, c.In[2].Shape(), c.In[1].Shape(), c.In[0].Shape())
		}, b.convolveGradX)
	case graph.Conv2DGradW:
		return b.convolveGradW()
	case graph.MaxPool2D, graph.AvgPool2D:
		return b.eachPlane(0, pool[T])
	case graph.MaxPool2DGrad, graph.AvgPool2DGrad:
		return b.eachPlane(1, poolGrad[T])
	}
	return nil
}

// convolution is the sizes of one: images of chans × high × wide, out filters of
// kh × kw, results of outHigh × outWide.
type convolution struct {
	chans, high, wide    int
	out, kh, kw          int
	outHigh, outWide     int
	stride, pad, patches int // patches: results an image
	taps                 int // chans·kh·kw
}

func convolutionOf(n *graph.Node, x, w, y tensor.Shape) convolution {
	return convolution{
		chans: x[1], high: x[2], wide: x[3], out: w[0], kh: w[2], kw: w[3], outHigh: y[2], outWide: y[3],
		stride: max(1, n.Attr.Stride), pad: n.Attr.Pad, patches: y[2] * y[3], taps: w[1] * w[2] * w[3],
	}
}

// eachImage makes a kernel of a body over the images of input k.
func (b *builder[T]) eachImage(k, passes int, sizes func(c *compute.Call) convolution, body func(c *compute.Call, v convolution, image int, w *scratch[T])) compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) {
		v := sizes(c)
		return c.In[k].Shape()[0], passes * v.patches * v.taps * (2 + v.out/16)
	}, func(c *compute.Call, lo, hi, worker int) {
		v := sizes(c)
		for i := lo; i < hi; i++ {
			body(c, v, i, &b.work[worker])
		}
	})
}

// patches writes what every filter tap meets, a row a tap, for all patches.
func patches[T tensor.Float](dst, image []T, v convolution) {
	for ch := range v.chans {
		plane := image[ch*v.high*v.wide : (ch+1)*v.high*v.wide]
		for ky := range v.kh {
			for kx := range v.kw {
				for oy := range v.outHigh {
					row := dst[:v.outWide]
					dst = dst[v.outWide:]
					y := oy*v.stride + ky - v.pad
					if y < 0 || y >= v.high {
						clear(row)
						continue
					}
					patchRow(row, plane[y*v.wide:(y+1)*v.wide], kx-v.pad, v.stride)
				}
			}
		}
	}
}

// patchRow copies every stride-th element from start on, 0 where there is none.
func patchRow[T tensor.Float](row, line []T, start, stride int) {
	if stride == 1 {
		from, to := min(max(0, -start), len(row)), max(0, min(len(row), len(line)-start))
		clear(row[:from])
		if from < to {
			copy(row[from:to], line[start+from:])
		}
		clear(row[max(from, to):])
		return
	}
	for o := range row {
		row[o] = 0
		if x := start + o*stride; x >= 0 && x < len(line) {
			row[o] = line[x]
		}
	}
}

// addPatches adds patches back to the image they were taken from.
func addPatches[T tensor.Float](image, src []T, v convolution) {
	for ch := range v.chans {
		plane := image[ch*v.high*v.wide : (ch+1)*v.high*v.wide]
		for ky := range v.kh {
			for kx := range v.kw {
				for oy := range v.outHigh {
					row := src[:v.outWide]
					src = src[v.outWide:]
					y := oy*v.stride + ky - v.pad
					if y < 0 || y >= v.high {
						continue
					}
					line := plane[y*v.wide : (y+1)*v.wide]
					for o, g := range row {
						if x := o*v.stride + kx - v.pad; x >= 0 && x < len(line) {
							line[x] += g
						}
					}
				}
			}
		}
	}
}

// at returns part i of n of x.
func at[T any](x []T, i, n int) []T { return x[i*n : (i+1)*n] }

func (b *builder[T]) convolve(c *compute.Call, v convolution, i int, w *scratch[T]) {
	w.a = grow(w.a, v.taps*v.patches)
	patches(w.a, at(tensor.Data[T](c.In[0]), i, v.chans*v.high*v.wide), v)
	out := at(tensor.Data[T](c.Out), i, v.out*v.patches)
	w.product.Multiply(out, v.patches, view(tensor.Data[T](c.In[1]), v.out, v.taps, false), view(w.a, v.taps, v.patches, false), 0, v.out, 0, v.patches, v.taps)
}

func (b *builder[T]) convolveGradX(c *compute.Call, v convolution, i int, w *scratch[T]) {
	w.a = grow(w.a, v.taps*v.patches)
	dy := view(at(tensor.Data[T](c.In[0]), i, v.out*v.patches), v.out, v.patches, false)
	w.product.Multiply(w.a, v.patches, view(tensor.Data[T](c.In[1]), v.taps, v.out, true), dy, 0, v.taps, 0, v.patches, v.out)
	image := at(tensor.Data[T](c.Out), i, v.chans*v.high*v.wide)
	clear(image)
	addPatches(image, w.a, v)
}

// gradGroups is how many sums the gradient of filters is taken in: fixed, so
// that it does not depend on threads.
const gradGroups = 8

// convolveGradW adds up dy·patchesᵀ over the images, in groups on threads, and
// then the groups.
func (b *builder[T]) convolveGradW() compute.Kernel {
	var sums []T
	sizes := func(c *compute.Call) convolution {
		return convolutionOf(c.Node, c.In[1].Shape(), c.In[2].Shape(), c.In[0].Shape())
	}
	groups := b.eachOf(func(*compute.Call) (int, int) { return gradGroups, grain }, func(c *compute.Call, lo, hi, worker int) {
		v, w, images := sizes(c), &b.work[worker], c.In[1].Shape()[0]
		w.a = grow(w.a, v.taps*v.patches)
		w.product.Add = true
		for g := lo; g < hi; g++ {
			sum := at(sums, g, v.out*v.taps)
			clear(sum)
			for i := images * g / gradGroups; i < images*(g+1)/gradGroups; i++ {
				patches(w.a, at(tensor.Data[T](c.In[1]), i, v.chans*v.high*v.wide), v)
				dy := view(at(tensor.Data[T](c.In[0]), i, v.out*v.patches), v.out, v.patches, false)
				w.product.Multiply(sum, v.taps, dy, kernel.Matrix[T]{Data: w.a, Row: 1, Col: v.patches}, 0, v.out, 0, v.taps, v.patches)
			}
		}
		w.product.Add = false
	})
	return func(c *compute.Call) error {
		n := c.Out.Elems()
		sums = grow(sums, gradGroups*n)
		if err := groups(c); err != nil {
			return err
		}
		out := tensor.Data[T](c.Out)
		copy(out, sums[:n])
		for g := 1; g < gradGroups; g++ {
			b.k.Add(out, out, at(sums, g, n))
		}
		return nil
	}
}

// plane is one channel of one image, with the windows taken of it.
type plane struct {
	high, wide, outHigh, outWide, window, stride int
	average                                      bool
}

// eachPlane makes a kernel of a body over the planes of input k, which are
// pooled to, or whose gradient comes from, the other side.
func (b *builder[T]) eachPlane(k int, body func(out, in, x []T, p plane)) compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) {
		s := c.In[k].Shape()
		return s[0] * s[1], 4 * s[2] * s[3]
	}, func(c *compute.Call, lo, hi, _ int) {
		x, y := c.In[k].Shape(), c.Out.Shape()
		average := c.Node.Op == graph.AvgPool2D || c.Node.Op == graph.AvgPool2DGrad
		if k == 1 {
			y = c.In[0].Shape()
		}
		p := plane{x[2], x[3], y[2], y[3], c.Node.Attr.Window, c.Node.Attr.Stride, average}
		if p.stride == 0 {
			p.stride = p.window
		}
		size, outSize := p.high*p.wide, p.outHigh*p.outWide
		for i := lo; i < hi; i++ {
			if k == 0 {
				body(at(tensor.Data[T](c.Out), i, outSize), nil, at(tensor.Data[T](c.In[0]), i, size), p)
				continue
			}
			body(at(tensor.Data[T](c.Out), i, size), at(tensor.Data[T](c.In[0]), i, outSize), at(tensor.Data[T](c.In[1]), i, size), p)
		}
	})
}

// elements are the indexes of a window that starts at i, by rows.
func (p *plane) elements(i int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for y := range p.window {
			for x := range p.window {
				if !yield(i + y*p.wide + x) {
					return
				}
			}
		}
	}
}

// choose returns the index of the first maximum of a window; NaN is greater
// than any number.
func choose[T tensor.Float](x []T, p *plane, start int) int {
	best := start
	for i := range p.elements(start) {
		if v, top := x[i], x[best]; top == top && (v > top || v != v) {
			best = i
		}
	}
	return best
}

func pool[T tensor.Float](out, _, x []T, p plane) {
	area := T(p.window * p.window)
	for oy := range p.outHigh {
		for ox := range p.outWide {
			start := oy*p.stride*p.wide + ox*p.stride
			if !p.average {
				out[oy*p.outWide+ox] = x[choose(x, &p, start)]
				continue
			}
			var s T
			for i := range p.elements(start) {
				s += x[i]
			}
			out[oy*p.outWide+ox] = s / area
		}
	}
}

func poolGrad[T tensor.Float](out, dy, x []T, p plane) {
	clear(out)
	area := T(p.window * p.window)
	for oy := range p.outHigh {
		for ox := range p.outWide {
			start, g := oy*p.stride*p.wide+ox*p.stride, dy[oy*p.outWide+ox]
			if !p.average {
				out[choose(x, &p, start)] += g
				continue
			}
			for i := range p.elements(start) {
				out[i] += g / area
			}
		}
	}
}
