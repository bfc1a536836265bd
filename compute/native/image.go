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
		return b.eachPlane(0, b.pool)
	case graph.MaxPool2DGrad, graph.AvgPool2DGrad:
		return b.eachPlane(1, b.poolGrad)
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
func (b *builder[T]) patches(dst, image []T, v convolution) {
	for ch := range v.chans {
		plane := at(image, ch, v.high*v.wide)
		for tap := range v.kh * v.kw {
			row := dst[:v.patches]
			dst = dst[v.patches:]
			if f, ok := v.flat(tap); ok {
				clear(row[:f.from])
				copy(row[f.from:f.to], plane[f.from+f.shift:])
				clear(row[f.to:])
				clearBorder(f, row, v.wide)
				continue
			}
			first, last, from, to, start := v.meets(tap)
			clear(row[:first*v.outWide])
			for oy := first; oy < last; oy++ {
				part := at(row, oy, v.outWide)
				clear(part[:from])
				if from < to {
					b.every(part[from:to], plane[start+oy*v.stride*v.wide+from*v.stride:], v.stride)
				}
				clear(part[to:])
			}
			clear(row[last*v.outWide:])
		}
	}
}

// addPatches adds patches back to the image they were taken from. It changes src.
func (b *builder[T]) addPatches(image, src []T, v convolution) {
	for ch := range v.chans {
		plane := at(image, ch, v.high*v.wide)
		for tap := range v.kh * v.kw {
			row := src[:v.patches]
			src = src[v.patches:]
			if f, ok := v.flat(tap); ok {
				clearBorder(f, row, v.wide)
				to := plane[f.from+f.shift : f.to+f.shift]
				b.k.Add(to, to, row[f.from:f.to])
				continue
			}
			first, last, from, to, start := v.meets(tap)
			for oy := first; oy < last && from < to; oy++ {
				b.addEvery(plane[start+oy*v.stride*v.wide+from*v.stride:], at(row, oy, v.outWide)[from:to], v.stride)
			}
		}
	}
}

// meets returns the rows and columns of the result for which a tap meets the
// image, and where it is in the image for result 0, which may lie outside.
func (v *convolution) meets(tap int) (first, last, from, to, start int) {
	down, over := tap/v.kw-v.pad, tap%v.kw-v.pad
	first, last = within(v.outHigh, down, v.stride, v.high)
	from, to = within(v.outWide, over, v.stride, v.wide)
	return first, last, from, to, down*v.wide + over
}

// flat is what a tap meets where the result is as wide as the image: all of the
// plane, moved. Elements from to to are those moved by shift; in each row, left
// or right ones come from beyond the border.
type flat struct{ from, to, shift, left, right int }

func (v *convolution) flat(tap int) (f flat, ok bool) {
	if v.stride != 1 || v.outWide != v.wide {
		return f, false
	}
	down, over := tap/v.kw-v.pad, tap%v.kw-v.pad
	f.shift, f.left, f.right = down*v.wide+over, min(v.wide, max(0, -over)), min(v.wide, max(0, over))
	f.from = max(0, -down*v.wide, -f.shift)
	f.to = min(v.outHigh*v.wide, (v.high-down)*v.wide, v.high*v.wide-f.shift)
	if f.to <= f.from { // all from beyond
		f = flat{}
	}
	return f, true
}

// clearBorder clears what a row has from beyond the border.
func clearBorder[T tensor.Float](f flat, row []T, wide int) {
	if f.left == 0 && f.right == 0 {
		return
	}
	for ; len(row) > 0; row = row[wide:] {
		clear(row[:f.left])
		clear(row[wide-f.right : wide])
	}
}

// within returns which of n elements, stride apart from start on, are among the
// first size.
func within(n, start, stride, size int) (from, to int) {
	from = min(n, (max(0, -start)+stride-1)/stride)
	return from, max(from, min(n, (max(0, size-start)+stride-1)/stride))
}

// every copies every stride-th element of x.
func (b *builder[T]) every(out, x []T, stride int) {
	switch stride {
	case 1:
		copy(out, x)
	case 2:
		b.k.Second(out, x)
	default:
		for i := range out {
			out[i] = x[i*stride]
		}
	}
}

// addEvery adds x to every stride-th element of out.
func (b *builder[T]) addEvery(out, x []T, stride int) {
	switch stride {
	case 1:
		out = out[:len(x)]
		b.k.Add(out, out, x)
	case 2:
		b.k.AddSecond(out, x)
	default:
		for i, v := range x {
			out[i*stride] += v
		}
	}
}

// at returns part i of n of x.
func at[T any](x []T, i, n int) []T { return x[i*n : (i+1)*n] }

func (b *builder[T]) convolve(c *compute.Call, v convolution, i int, w *scratch[T]) {
	w.a = grow(w.a, v.taps*v.patches)
	b.patches(w.a, at(tensor.Data[T](c.In[0]), i, v.chans*v.high*v.wide), v)
	out := at(tensor.Data[T](c.Out), i, v.out*v.patches)
	w.product.Multiply(out, v.patches, view(tensor.Data[T](c.In[1]), v.out, v.taps, false), view(w.a, v.taps, v.patches, false), 0, v.out, 0, v.patches, v.taps)
}

func (b *builder[T]) convolveGradX(c *compute.Call, v convolution, i int, w *scratch[T]) {
	w.a = grow(w.a, v.taps*v.patches)
	dy := view(at(tensor.Data[T](c.In[0]), i, v.out*v.patches), v.out, v.patches, false)
	w.product.Multiply(w.a, v.patches, view(tensor.Data[T](c.In[1]), v.taps, v.out, true), dy, 0, v.taps, 0, v.patches, v.out)
	image := at(tensor.Data[T](c.Out), i, v.chans*v.high*v.wide)
	clear(image)
	b.addPatches(image, w.a, v)
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
				b.patches(w.a, at(tensor.Data[T](c.In[1]), i, v.chans*v.high*v.wide), v)
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
func (b *builder[T]) eachPlane(k int, body func(out, in, x []T, p *plane, w *scratch[T])) compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) {
		s := c.In[k].Shape()
		return s[0] * s[1], 4 * s[2] * s[3]
	}, func(c *compute.Call, lo, hi, worker int) {
		w := &b.work[worker]
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
				body(at(tensor.Data[T](c.Out), i, outSize), nil, at(tensor.Data[T](c.In[0]), i, size), &p, w)
				continue
			}
			body(at(tensor.Data[T](c.Out), i, size), at(tensor.Data[T](c.In[0]), i, outSize), at(tensor.Data[T](c.In[1]), i, size), &p, w)
		}
	})
}

// band is the rows of results that are computed as one, with elements between
// them that are of no use: rows from to to, whose windows are rowStep apart and
// begin with the first n elements from start on.
type band struct{ from, to, start, n int }

// rowStep is how far windows lie from those above.
func (p *plane) rowStep() int { return p.stride * p.wide }

// narrow is below what width of a plane more in one go is faster than less in all.
const narrow = 128

// bands are how many there are, and how many rows each has.
func (p *plane) bands() (count, rows int) {
	if p.stride == 1 || p.rowStep() < narrow {
		return min(1, p.outHigh), p.outHigh
	}
	return p.outHigh, 1
}

func (p *plane) band(i int) band {
	_, rows := p.bands()
	return band{i * rows, (i + 1) * rows, i * rows * p.rowStep(), (rows-1)*p.rowStep() + (p.outWide-1)*p.stride + 1}
}

// tap is what element k of every window of a band is.
func tap[T tensor.Float](p *plane, of band, x []T, k int) []T {
	return x[of.start+k/p.window*p.wide+k%p.window:][:of.n]
}

// results puts what a band has been computed to where it belongs.
func (b *builder[T]) results(out, all []T, p *plane, of band) {
	for oy := of.from; oy < of.to; oy++ {
		b.every(at(out, oy, p.outWide), all[(oy-of.from)*p.rowStep():], p.stride)
	}
}

// choose sets w.a to the largest elements of the windows of a band, and w.b to
// which of a window is the first of them; NaN is greater than any number.
func (b *builder[T]) choose(x []T, p *plane, of band, w *scratch[T]) {
	w.a, w.b = grow(w.a, of.n), grow(w.b, of.n)
	copy(w.a, tap(p, of, x, 0))
	clear(w.b)
	for k := 1; k < p.window*p.window; k++ {
		b.k.Raise(w.a, w.b, tap(p, of, x, k), T(k))
	}
}

func (b *builder[T]) pool(out, _, x []T, p *plane, w *scratch[T]) {
	count, _ := p.bands()
	for i := range count {
		of := p.band(i)
		if p.average {
			w.a = grow(w.a, of.n)
			copy(w.a, tap(p, of, x, 0))
			for k := 1; k < p.window*p.window; k++ {
				b.k.Add(w.a, w.a, tap(p, of, x, k))
			}
		} else {
			b.choose(x, p, of, w)
		}
		b.results(out, w.a, p, of)
	}
	if p.average {
		w.a = grow(w.a, 1)
		w.a[0] = T(p.window * p.window)
		b.k.Div(out, out, w.a)
	}
}

// poolGrad adds up, for every element of x, what the windows that it is in give
// it, in the order of windows: those further on have it further up and left.
func (b *builder[T]) poolGrad(out, dy, x []T, p *plane, w *scratch[T]) {
	clear(out)
	n, first := len(dy), p.band(0).n // what choose takes of w.b
	w.b = grow(w.b, first+2*n+2)
	chosen, share, number, zero := w.b[first:][:n], w.b[first+n:][:n], w.b[first+2*n:][:1], w.b[first+2*n+1:][:1]
	zero[0] = 0
	if p.average {
		number[0] = T(p.window * p.window)
		b.k.Div(share, dy, number)
	} else {
		count, _ := p.bands()
		for i := range count {
			of := p.band(i)
			b.choose(x, p, of, w)
			b.results(chosen, w.b, p, of)
		}
	}
	for k := p.window*p.window - 1; k >= 0; k-- {
		if !p.average {
			number[0] = T(k)
			b.k.Equal(share, chosen, number)
			b.k.Where(share, share, dy, zero)
		}
		for oy := range p.outHigh {
			b.addEvery(out[oy*p.rowStep()+k/p.window*p.wide+k%p.window:], at(share, oy, p.outWide), p.stride)
		}
	}
}
