package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// blocks says how a tensor b is repeated to the shape of a: in outer blocks of
// inner elements of a, each of which meets inner elements of b, or one element
// if scalar is set.
type blocks struct {
	outer, inner int
	scalar       bool
	a, b         tensor.Shape // of the blocks
}

// blocksOf takes as many trailing dims as possible into the inner block.
func blocksOf(a, b tensor.Shape) blocks {
	bl := blocks{inner: 1}
	dim := func(d int) int { // of b, the d-th from the end
		if d > len(b) {
			return 1
		}
		return b[len(b)-d]
	}
	d := 1
	for d <= len(a) && dim(d) == a[len(a)-d] {
		bl.inner *= a[len(a)-d]
		d++
	}
	if bl.inner == 1 {
		for bl.scalar = true; d <= len(a) && dim(d) == 1; d++ {
			bl.inner *= a[len(a)-d]
		}
	}
	bl.a, bl.b = a[:len(a)-d+1], b[:max(0, len(b)-d+1)]
	bl.outer = bl.a.Elems()
	return bl
}

// at returns which block of b meets block i of a.
func (bl *blocks) at(i int) int {
	j, stride := 0, 1
	for d := 1; d <= len(bl.b); d++ {
		size := bl.a[len(bl.a)-d]
		if bl.b[len(bl.b)-d] != 1 {
			j += i % size * stride
		}
		i /= size
		stride *= bl.b[len(bl.b)-d]
	}
	return j
}

func binary[T tensor.Float](op graph.Op) compute.Kernel {
	vector, scalar := add[T], addScalar[T]
	switch op {
	case graph.Sub:
		vector, scalar = sub[T], subScalar[T]
	case graph.Mul:
		vector, scalar = mul[T], scale[T]
	}
	return func(c *compute.Call) error {
		out, a, b := tensor.Data[T](c.Out), tensor.Data[T](c.In[0]), tensor.Data[T](c.In[1])
		bl := blocksOf(c.In[0].Shape(), c.In[1].Shape())
		n := bl.inner
		for i := range bl.outer {
			j := bl.at(i)
			if bl.scalar {
				scalar(out[i*n:(i+1)*n], a[i*n:(i+1)*n], b[j])
			} else {
				vector(out[i*n:(i+1)*n], a[i*n:(i+1)*n], b[j*n:(j+1)*n])
			}
		}
		return nil
	}
}

// unbroadcast adds dy, of shape from, up to out, of shape to; for each element
// of out in the order of dy.
func unbroadcast[T tensor.Float](out, dy []T, from, to tensor.Shape) {
	clear(out)
	bl := blocksOf(from, to)
	n := bl.inner
	for i := range bl.outer {
		j := bl.at(i)
		if bl.scalar {
			s := out[j]
			for _, v := range dy[i*n : (i+1)*n] {
				s += v
			}
			out[j] = s
			continue
		}
		row := out[j*n : (j+1)*n]
		add(row, row, dy[i*n:(i+1)*n])
	}
}

func add[T tensor.Float](out, a, b []T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] + b[i]
	}
}

func sub[T tensor.Float](out, a, b []T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] - b[i]
	}
}

func mul[T tensor.Float](out, a, b []T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] * b[i]
	}
}

func addScalar[T tensor.Float](out, a []T, b T) {
	a = a[:len(out)]
	for i := range out {
		out[i] = a[i] + b
	}
}

func subScalar[T tensor.Float](out, a []T, b T) {
	a = a[:len(out)]
	for i := range out {
		out[i] = a[i] - b
	}
}
