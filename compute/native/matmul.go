package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/tensor"
)

// The blocking of a product of m×k by k×n. A panel of b, tileN·blockK elements,
// stays in the first cache while all panels of a block of a pass it; a block of
// a, blockM·blockK elements, stays in the second.
const (
	blockM = 128
	blockN = 1024
	blockK = 1024
)

// packs is the memory that operands are packed to; it grows to what the
// largest product needs and is then kept.
type packs[T tensor.Float] struct{ a, b []T }

// matrix is a view of an operand: element (i, j) lies at i·row + j·col, and
// one of the strides is 1.
type matrix[T tensor.Float] struct {
	data     []T
	row, col int
}

func (b *builder[T]) matMul(c *compute.Call) error {
	at, sa, sb := c.Node.Attr, c.In[0].Shape(), c.In[1].Shape()
	x := matrix[T]{tensor.Data[T](c.In[0]), sa[1], 1}
	k := sa[1]
	if at.TransA {
		x.row, x.col, k = 1, sa[1], sa[0]
	}
	y := matrix[T]{tensor.Data[T](c.In[1]), sb[1], 1}
	if at.TransB {
		y.row, y.col = 1, sb[1]
	}
	out := c.Out.Shape()
	b.packs.multiply(tensor.Data[T](c.Out), x, y, out[0], out[1], k)
	return nil
}

// multiply sets c, row-major m×n, to a·b. For each element the products are
// added by ascending l within blocks of blockK, and the blocks in order.
func (p *packs[T]) multiply(c []T, a, b matrix[T], m, n, k int) {
	if k == 0 {
		clear(c)
		return
	}
	for j := 0; j < n; j += blockN {
		nb := min(blockN, n-j)
		for l := 0; l < k; l += blockK {
			kb := min(blockK, k-l)
			p.b = pack(p.b, b, l, j, kb, nb, b.row, b.col, tileN)
			for i := 0; i < m; i += blockM {
				mb := min(blockM, m-i)
				p.a = pack(p.a, a, i, l, kb, mb, a.col, a.row, tileM)
				multiplyBlock(c[i*n+j:], n, p.a, p.b, mb, nb, kb, l > 0)
			}
		}
	}
}

// multiplyBlock multiplies packed blocks tile by tile into c, whose rows are ld
// elements apart, and adds to what is there if add is set.
func multiplyBlock[T tensor.Float](c []T, ld int, a, b []T, m, n, k int, add bool) {
	var t [tileM * tileN]T
	for j := 0; j < n; j += tileN {
		bp := b[j*k : (j+tileN)*k]
		for i := 0; i < m; i += tileM {
			tile(&t, a[i*k:(i+tileM)*k], bp)
			rows, cols := min(tileM, m-i), min(tileN, n-j)
			for r := range rows {
				dst, src := c[(i+r)*ld+j:(i+r)*ld+j+cols], t[r*tileN:r*tileN+cols]
				if add {
					for x, v := range src {
						dst[x] += v
					}
					continue
				}
				copy(dst, src)
			}
		}
	}
}

// pack copies a block of s that starts at (i0, j0) into panels: width
// neighbours across, for k steps along, the last panel filled up with zeros.
// along and across are the strides of the two directions. It returns dst, grown
// if needed.
func pack[T tensor.Float](dst []T, s matrix[T], i0, j0, k, across, alongStride, acrossStride, width int) []T {
	panels := (across + width - 1) / width
	if need := panels * width * k; cap(dst) < need {
		dst = make([]T, need)
	} else {
		dst = dst[:need]
	}
	start := i0*s.row + j0*s.col
	for p := range panels {
		panel := dst[p*width*k : (p+1)*width*k]
		n := min(width, across-p*width)
		if n < width {
			clear(panel)
		}
		from := s.data[start+p*width*acrossStride:]
		if acrossStride == 1 {
			packRows(panel, from, n, width, k, alongStride)
			continue
		}
		for x := range n {
			packColumn(panel[x:], from[x*acrossStride:][:k], width)
		}
	}
	return dst
}

// packRows copies k rows of n neighbours, stride apart, to rows of width.
func packRows[T tensor.Float](panel, from []T, n, width, k, stride int) {
	for l := range k {
		copy(panel[l*width:], from[l*stride:][:n])
	}
}

// packColumn copies neighbours to places width apart.
func packColumn[T tensor.Float](panel, from []T, width int) {
	at := 0
	for _, v := range from {
		panel[at] = v
		at += width
	}
}
