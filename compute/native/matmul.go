package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native/internal/kernel"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// products returns the kernel of a matrix product and of what is made of them;
// nil for others.
func (b *builder[T]) products(n *graph.Node) compute.Kernel {
	switch n.Op {
	case graph.MatMul:
		m := &matMul[T]{b: b}
		return m.run
	case graph.CausalAttention:
		return b.attention()
	case graph.CausalAttentionGrad:
		return b.attentionGrad()
	case graph.FMInteraction, graph.FMInteractionGrad:
		return b.factors(n.Op)
	case graph.DotInteraction, graph.DotInteractionGrad:
		return b.dots(n.Op)
	}
	return nil
}

// matMul is a node's product: batch products of [m k] by [k n], cut for threads
// into a grid of rows × cols parts each.
type matMul[T tensor.Float] struct {
	b               *builder[T]
	m, n, k         int
	batch           int
	ta, tb          bool
	shared          bool // all products have the same b
	rows, cols      int
	stepM, stepN    int
	out, left, back []T
	then            *chain[T] // what is done to parts of the result; nil: nothing
}

// view is the operand of rows × cols, stored transposed or not.
func view[T tensor.Float](data []T, rows, cols int, trans bool) kernel.Matrix[T] {
	if trans {
		return kernel.Matrix[T]{Data: data, Row: 1, Col: rows}
	}
	return kernel.Matrix[T]{Data: data, Row: cols, Col: 1}
}

func (p *matMul[T]) run(c *compute.Call) error {
	p.multiply(c, tensor.Data[T](c.Out))
	return nil
}

// multiply computes a call, whose result may be elsewhere than in its Out.
func (p *matMul[T]) multiply(c *compute.Call, out []T) {
	at, sa, so := c.Node.Attr, c.In[0].Shape(), c.Out.Shape()
	p.ta, p.tb = at.TransA, at.TransB
	p.m, p.n = so[len(so)-2], so[len(so)-1]
	p.k = sa[len(sa)-1]
	if p.ta {
		p.k = sa[len(sa)-2]
	}
	p.batch = so[:len(so)-2].Elems()
	p.shared = len(c.In[1].Shape()) == 2
	if p.shared && !p.ta {
		p.m, p.batch = p.m*p.batch, 1 // the rows of all are rows of one
	}
	p.out, p.left, p.back = out, tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1])
	if p.batch*p.m*p.n > 0 {
		p.grid()
		p.b.team.Spread(p.batch*p.rows*p.cols, p)
	}
	p.out, p.left, p.back = nil, nil, nil
}

// grid chooses how to cut one product: not at all if there are many or they are
// small, else such that the least is packed twice.
func (p *matMul[T]) grid() {
	p.rows, p.cols = 1, 1
	tile, size := p.b.k.Tile, p.b.team.Size()
	parts := size
	if work := p.m * p.n * p.k; p.batch >= 4*size || work < 16*grain {
		parts = 1
	} else {
		parts = min(parts, max(1, work/(8*grain)))
	}
	if parts > 1 {
		best := -1
		for rows := 1; rows <= parts; rows++ {
			cols := parts / rows
			// Packing of a once a column of the grid, of b once a row, and what
			// the largest part has more than its share.
			cost := cols*p.m*p.k + rows*p.n*p.k
			over := split(p.m, rows, tile.Rows)*rows*split(p.n, cols, tile.Cols)*cols - p.m*p.n
			cost += over * p.k / 16
			cost += (parts - rows*cols) * p.m * p.n * p.k / (16 * parts)
			if best < 0 || cost < best {
				best, p.rows, p.cols = cost, rows, cols
			}
		}
	}
	p.stepM, p.stepN = split(p.m, p.rows, tile.Rows), split(p.n, p.cols, tile.Cols)
}

// split is the size of n parts of a whole, in multiples of a unit.
func split(whole, n, unit int) int {
	size := (whole + n - 1) / n
	return (size + unit - 1) / unit * unit
}

// Part computes one part of one product.
func (p *matMul[T]) Part(i, worker int) {
	row, col, batch := i%p.rows, i/p.rows%p.cols, i/(p.rows*p.cols)
	out, left, back := p.out[batch*p.m*p.n:(batch+1)*p.m*p.n], p.left[batch*p.m*p.k:(batch+1)*p.m*p.k], p.back
	if !p.shared {
		back = back[batch*p.k*p.n : (batch+1)*p.k*p.n]
	}
	a, b := view(left, p.m, p.k, p.ta), view(back, p.k, p.n, p.tb)
	i0, i1 := min(p.m, row*p.stepM), min(p.m, (row+1)*p.stepM)
	j0, j1 := min(p.n, col*p.stepN), min(p.n, (col+1)*p.stepN)
	w := &p.b.work[worker]
	product := &w.product
	product.After = nil // of a part that did not end
	if p.n > 1 {
		if p.then != nil {
			w.tail.chain, w.tail.row, w.tail.width = p.then, batch*p.m, p.n
			product.After = &w.tail
		}
		product.Multiply(out, p.n, a, b, i0, i1, j0, j1, p.k)
		product.After, w.tail.chain = nil, nil
		return
	}
	p.column(product, out, left, back, i0, i1, j0, j1)
	if p.then != nil && j0 < j1 {
		p.then.run(batch*p.m+i0, batch*p.m+i1, worker)
	}
}

// column computes rows of a product that is one column.
func (p *matMul[T]) column(product *kernel.Product[T], out, left, back []T, i0, i1, j0, j1 int) {
	// A column is a row of the transposed product, or dot products.
	if j0 == j1 {
		return
	}
	if p.ta {
		product.Multiply(out, p.m, kernel.Matrix[T]{Data: back, Row: p.k, Col: 1}, kernel.Matrix[T]{Data: left, Row: p.m, Col: 1}, 0, 1, i0, i1, p.k)
		return
	}
	for i := i0; i < i1; i++ {
		out[i] = T(p.b.k.Dot(left[i*p.k:(i+1)*p.k], back))
	}
}
