package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native/internal/kernel"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// queryBlock is how many queries are worked off at a time: their scores against
// all earlier keys stay in the second cache.
const queryBlock = 48

// heads is what an attention is made of: n matrices of s × d, the rows of one
// example's h heads side by side.
type heads struct {
	n, s, h, d int
	scale      float64
}

func headsOf(c *compute.Call) heads {
	s := c.In[0].Shape()
	return heads{s[0] * s[2], s[1], s[2], s[3], compute.AttentionScale(c.Node.Attr.Alpha, s[3])}
}

// cost is that of one head, passes being how many products there are.
func (h heads) cost(passes int) (n, cost int) { return h.n, passes*h.s*h.s*h.d/32 + 4*h.s*h.s + 1 }

// headOf returns the i-th head of x as a matrix.
func headOf[T tensor.Float](h heads, x *tensor.Tensor, i int) kernel.Matrix[T] {
	return kernel.Matrix[T]{Data: tensor.Data[T](x)[(i/h.h*h.s*h.h+i%h.h)*h.d:], Row: h.h * h.d, Col: 1}
}

// rowsFrom is a matrix without its first r rows.
func rowsFrom[T tensor.Float](m kernel.Matrix[T], r int) kernel.Matrix[T] {
	m.Data = m.Data[r*m.Row:]
	return m
}

func transposed[T tensor.Float](m kernel.Matrix[T]) kernel.Matrix[T] {
	return kernel.Matrix[T]{Data: m.Data, Row: m.Col, Col: m.Row}
}

// attention computes each head on one thread.
func (b *builder[T]) attention() compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) { return headsOf(c).cost(2) }, func(c *compute.Call, lo, hi, worker int) {
		h, w := headsOf(c), &b.work[worker]
		if h.s*h.d == 0 {
			return
		}
		w.a = grow(w.a, queryBlock*h.s)
		for i := lo; i < hi; i++ {
			q, k, v, out := headOf[T](h, c.In[0], i), headOf[T](h, c.In[1], i), headOf[T](h, c.In[2], i), headOf[T](h, c.Out, i)
			for r := 0; r < h.s; r += queryBlock {
				end := min(h.s, r+queryBlock)
				p := b.weights(w, h, q, k, r, end)
				w.product.Multiply(rowsFrom(out, r).Data, out.Row, p, v, 0, end-r, 0, h.d, end)
			}
		}
	})
}

// weights computes rows [r, end) of softmax(scale·q·kᵀ) over the keys up to each
// query, 0 after it, as a matrix of end columns in w.a.
func (b *builder[T]) weights(w *scratch[T], h heads, q, k kernel.Matrix[T], r, end int) kernel.Matrix[T] {
	w.product.Multiply(w.a, end, rowsFrom(q, r), transposed(k), 0, end-r, 0, end, h.d)
	for i := r; i < end; i++ {
		row := w.a[(i-r)*end : (i-r+1)*end]
		seen := row[:i+1]
		b.k.Scale(seen, seen, T(h.scale))
		b.softmax(seen, seen)
		clear(row[i+1:])
	}
	return kernel.Matrix[T]{Data: w.a, Row: end, Col: 1}
}

// attentionGrad computes, with P the weights and dP = dy·vᵀ: dv = Pᵀ·dy,
// dS = scale·P∘(dP - Σ P∘dP), dq = dS·k, dk = dSᵀ·q. Keys and values get their
// sums from the blocks of queries in order, the last first: it has all of them.
func (b *builder[T]) attentionGrad() compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) { return headsOf(c).cost(5) }, func(c *compute.Call, lo, hi, worker int) {
		h := headsOf(c)
		for i := lo; i < hi && h.s*h.d > 0; i++ {
			b.headGrad(c, h, i, &b.work[worker])
		}
	})
}

func (b *builder[T]) headGrad(c *compute.Call, h heads, i int, w *scratch[T]) {
	q, k, v, dy := headOf[T](h, c.In[0], i), headOf[T](h, c.In[1], i), headOf[T](h, c.In[2], i), headOf[T](h, c.In[3], i)
	wide := 3 * h.h * h.d
	grad := func(part int) []T { // of q, k or v
		return tensor.Data[T](c.Out)[i/h.h*h.s*wide+(part*h.h+i%h.h)*h.d:]
	}
	w.a, w.b = grow(w.a, queryBlock*h.s), grow(w.b, queryBlock*h.s)
	for r := (h.s - 1) / queryBlock * queryBlock; r >= 0; r -= queryBlock {
		end := min(h.s, r+queryBlock)
		n := end - r
		p := b.weights(w, h, q, k, r, end)
		part, queries := rowsFrom(dy, r), rowsFrom(q, r)
		w.product.Multiply(w.b, end, part, transposed(v), 0, n, 0, end, h.d)
		w.product.Add = end < h.s
		w.product.Multiply(grad(2), wide, transposed(p), part, 0, end, 0, h.d, n)
		w.product.Add = false
		for j := range n {
			row, grad := w.a[j*end:(j+1)*end], w.b[j*end:(j+1)*end]
			dot := T(b.k.Dot(row, grad))
			b.k.SoftmaxGrad(grad, row, grad, dot)
			b.k.Scale(grad, grad, T(h.scale))
		}
		ds := kernel.Matrix[T]{Data: w.b, Row: end, Col: 1}
		w.product.Multiply(grad(0)[r*wide:], wide, ds, k, 0, n, 0, h.d, end)
		w.product.Add = end < h.s
		w.product.Multiply(grad(1), wide, transposed(ds), queries, 0, end, 0, h.d, n)
		w.product.Add = false
	}
}

// factors is FMInteraction and its gradient. The sum over pairs is taken as that
// of the products of each vector with the sum of those before it: nothing
// cancels, as it would in the square of the sum.
func (b *builder[T]) factors(op graph.Op) compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) {
		s := c.In[0].Shape()
		return s[0], 4*s[1]*s[2] + 8
	}, func(c *compute.Call, lo, hi, worker int) {
		s, x, w := c.In[0].Shape(), tensor.Data[T](c.In[0]), &b.work[worker]
		f, d := s[1], s[2]
		w.a = grow(w.a, d)
		for i := lo; i < hi; i++ {
			rows, out := x[i*f*d:(i+1)*f*d], tensor.Data[T](c.Out)
			if op == graph.FMInteraction {
				out[i] = b.factorSum(w.a, rows, d)
				continue
			}
			b.factorGrad(w.a, out[i*f*d:(i+1)*f*d], rows, d, tensor.Data[T](c.In[1])[i])
		}
	})
}

func (b *builder[T]) factorSum(before, rows []T, d int) T {
	clear(before)
	total := 0.0
	for ; d > 0 && len(rows) > 0; rows = rows[d:] {
		total += b.k.Dot(before, rows[:d])
		b.k.Add(before, before, rows[:d])
	}
	return T(total)
}

// factorGrad is, for each vector, dy times the sum of those before and of those
// after it.
func (b *builder[T]) factorGrad(sum, out, rows []T, d int, dy T) {
	clear(sum)
	for at := 0; at < len(rows); at += d {
		copy(out[at:at+d], sum)
		b.k.Add(sum, sum, rows[at:at+d])
	}
	clear(sum)
	for at := len(rows) - d; at >= 0 && d > 0; at -= d {
		o := out[at : at+d]
		b.k.Add(o, o, sum)
		b.k.Scale(o, o, dy)
		b.k.Add(sum, sum, rows[at:at+d])
	}
}

// dots is DotInteraction and its gradient: a product of each example's matrix
// with itself, of which half is kept, and of the symmetric matrix of the
// gradient with it.
func (b *builder[T]) dots(op graph.Op) compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) {
		s := c.In[0].Shape()
		return s[0], dotsCost(s)
	}, func(c *compute.Call, lo, hi, worker int) {
		pairs := pairsOf(c.In[0].Shape()[1])
		if op == graph.DotInteraction {
			b.dotRows(c, tensor.Data[T](c.Out), pairs, lo, hi, worker)
		} else {
			b.dotGradRows(c, tensor.Data[T](c.In[1]), pairs, lo, hi, worker)
		}
	})
}

// dotsCost is the cost of an example of vectors of shape [B f dim].
func dotsCost(s tensor.Shape) int { return s[1]*s[1]*(1+s[2]/32) + 64 }

// pairsOf is how many pairs f vectors make.
func pairsOf(f int) int { return f * (f - 1) / 2 }

// dotRows computes examples lo to hi of a DotInteraction, which lie step apart in out.
func (b *builder[T]) dotRows(c *compute.Call, out []T, step, lo, hi, worker int) {
	s, w := c.In[0].Shape(), &b.work[worker]
	f, d := s[1], s[2]
	w.a = grow(w.a, f*f)
	for i := lo; i < hi; i++ {
		x := kernel.Matrix[T]{Data: tensor.Data[T](c.In[0])[i*f*d : (i+1)*f*d], Row: d, Col: 1}
		w.product.Multiply(w.a, f, x, transposed(x), 0, f, 0, f, d)
		kernel.Upper(out[i*step:i*step+pairsOf(f)], w.a, f)
	}
}

// dotGradRows computes examples lo to hi of its gradient, from those of dy, which
// lie step apart.
func (b *builder[T]) dotGradRows(c *compute.Call, dy []T, step, lo, hi, worker int) {
	s, w := c.In[0].Shape(), &b.work[worker]
	f, d := s[1], s[2]
	w.a = grow(w.a, f*f)
	g := kernel.Matrix[T]{Data: w.a, Row: f, Col: 1}
	for i := lo; i < hi; i++ {
		x := kernel.Matrix[T]{Data: tensor.Data[T](c.In[0])[i*f*d : (i+1)*f*d], Row: d, Col: 1}
		kernel.Symmetric(w.a, dy[i*step:i*step+pairsOf(f)], f)
		w.product.Multiply(tensor.Data[T](c.Out)[i*f*d:(i+1)*f*d], d, g, x, 0, f, 0, d, f)
	}
}
