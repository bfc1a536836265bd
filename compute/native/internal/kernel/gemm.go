package kernel

import "github.com/gangline/gangline/tensor"

// The blocking of a product of m×k by k×n. A panel of b, blockK·16 or ·32 elements,
// stays in the first cache while all panels of a block of a pass it; a block of
// a, blockM·blockK elements, stays in the second; a block of b, blockK·blockN
// elements, in the third.
const (
	blockM = 384
	blockN = 1024
	blockK = 320
)

// Matrix is a view of an operand: element (i, j) lies at i·Row + j·Col, and one
// of the strides is 1.
type Matrix[T tensor.Float] struct {
	Data     []T
	Row, Col int
}

// from returns the view that starts at (i, j).
func (m Matrix[T]) from(i, j int) Matrix[T] {
	m.Data = m.Data[i*m.Row+j*m.Col:]
	return m
}

// Product is one product of matrices, c = a·b, and the memory to pack its
// operands to. Several goroutines may compute different parts of one c, each
// with a Product of its own.
type Product[T tensor.Float] struct {
	Tile *Tile[T]
	// Add makes Multiply add to what c holds.
	Add bool
	// After is told of every block of c, of rows [i0, i1) and columns [j0, j1),
	// once it is done and still near. nil: nobody is.
	After interface{ Block(i0, i1, j0, j1 int) }

	a, b   []T
	corner []T // a tile of c on its way to the edge
}

// Tile is the register tile of a machine: up to Rows × Cols elements of c.
type Tile[T tensor.Float] struct {
	Rows, Cols int
	// Run sets c, or adds to it, rows × Cols sums of k products each:
	// Σ a(i,l)·b(l,j), l ascending. Element (i,l) of a lies at i·aRow + l·aStep,
	// (l,j) of b at l·bStep + j, and (i,j) of c at i·cRow + j.
	Run func(rows, k int, a []T, aRow, aStep int, b []T, bStep int, c []T, cRow int, add bool)
	// Half is Run for tiles of the first half of Cols; nil if there is none.
	Half func(rows, k int, a []T, aRow, aStep int, b []T, bStep int, c []T, cRow int, add bool)
	// Strided says that Run takes any strides. Otherwise a and b are packed:
	// aRow 1, aStep Rows, bStep Cols.
	Strided bool
	// packRows packs width rows of k neighbours, and packColumns k runs of
	// width neighbours; both read at stride and write runs of width.
	packRows, packColumns func(dst, src []T, stride, width, k int)
}

// Multiply sets elements [i0, i1) × [j0, j1) of c, whose rows are ld elements
// apart, to those of the product of a, of k columns, and b. The sum of an
// element is taken over l ascending within blocks that depend on k alone, so
// an element has the same bits in whatever part it is computed.
func (p *Product[T]) Multiply(c []T, ld int, a, b Matrix[T], i0, i1, j0, j1, k int) {
	m, n := i1-i0, j1-j0
	if m <= 0 || n <= 0 {
		return
	}
	c = c[i0*ld+j0:]
	if k == 0 {
		for i := 0; i < m && !p.Add; i++ {
			clear(c[i*ld : i*ld+n])
		}
		if p.After != nil {
			p.After.Block(i0, i1, j0, j1)
		}
		return
	}
	a, b = a.from(i0, 0), b.from(0, j0)
	// A few rows of a do not repay packing of b, nor a few columns packing of a.
	packA := !p.Tile.Strided || a.Col != 1 || n > 4*p.Tile.Cols
	packB := !p.Tile.Strided || b.Col != 1 || m > p.Tile.Rows
	blocks := (k + blockK - 1) / blockK
	kMax := ((k+blocks-1)/blocks + 7) &^ 7
	nMax := blockN
	if m <= blockM {
		nMax = n // then a panel of b is packed, used and forgotten
	}
	for j := 0; j < n; j += nMax {
		for l := 0; l < k; l += kMax {
			kb, nb := min(kMax, k-l), min(nMax, n-j)
			if m > blockM {
				p.packPanelsB(b.from(l, j), kb, nb)
			}
			for i := 0; i < m; i += blockM {
				mb := min(blockM, m-i)
				p.block(c[i*ld+j:], ld, a.from(i, l), b.from(l, j), mb, nb, kb, p.Add || l > 0, packA, packB, m > blockM)
				if p.After != nil && l+kb == k {
					p.After.Block(i0+i, i0+i+mb, j0+j, j0+j+nb)
				}
			}
		}
	}
}

// block multiplies one block of a by one of b, which is packed already if
// ready is set.
func (p *Product[T]) block(c []T, ld int, a, b Matrix[T], m, n, k int, add, packA, packB, ready bool) {
	t := p.Tile
	if packA {
		p.packPanelsA(a, m, k)
	}
	for j := 0; j < n; j += t.Cols {
		cols := min(t.Cols, n-j)
		run, width := t.forCols(cols)
		var panel []T
		bStep := width
		switch {
		case ready:
			panel = p.b[j*k:]
		case packB || cols < width:
			p.b = grow(p.b, t.Cols*k)
			packPanel(t, p.b, b.from(0, j), k, cols, width)
			panel = p.b
		default:
			panel, bStep = b.Data[j:], b.Row
		}
		for i := 0; i < m; i += t.Rows {
			rows := min(t.Rows, m-i)
			x, aRow, aStep := p.a, 1, t.Rows
			if packA {
				x = x[i*k:]
			} else {
				x, aRow, aStep = a.Data[i*a.Row:], a.Row, 1
			}
			if cols == width {
				run(rows, k, x, aRow, aStep, panel, bStep, c[i*ld+j:], ld, add)
				continue
			}
			p.corner = grow(p.corner, t.Rows*width)
			run(rows, k, x, aRow, aStep, panel, bStep, p.corner, width, false)
			p.fromCorner(c[i*ld+j:], ld, rows, cols, width, add)
		}
	}
}

// forCols returns what computes tiles of so many columns, and how many it has.
func (t *Tile[T]) forCols(cols int) (run func(rows, k int, a []T, aRow, aStep int, b []T, bStep int, c []T, cRow int, add bool), width int) {
	if half := t.Cols / 2; t.Half != nil && cols <= half {
		return t.Half, half
	}
	return t.Run, t.Cols
}

// fromCorner takes to c the first cols columns of a tile of a width.
func (p *Product[T]) fromCorner(c []T, ld, rows, cols, width int, add bool) {
	for r := range rows {
		dst, src := c[r*ld:r*ld+cols], p.corner[r*width:r*width+cols]
		if !add {
			copy(dst, src)
			continue
		}
		for j, v := range src {
			dst[j] += v
		}
	}
}

// packPanelsA packs m rows of k elements to panels of Tile.Rows.
func (p *Product[T]) packPanelsA(a Matrix[T], m, k int) {
	t := p.Tile
	p.a = grow(p.a, (m+t.Rows-1)/t.Rows*t.Rows*k+8) // packRows may write past a panel
	for i := 0; i < m; i += t.Rows {
		dst, src, rows := p.a[i*k:], a.Data[i*a.Row:], min(t.Rows, m-i)
		switch {
		case rows < t.Rows:
			clear(dst[:t.Rows*k])
			packEdge(dst, src, a.Row, a.Col, rows, k, t.Rows)
		case a.Col == 1:
			t.packRows(dst, src, a.Row, t.Rows, k)
		default:
			t.packColumns(dst, src, a.Col, t.Rows, k)
		}
	}
}

// packPanelsB packs k rows of n elements to panels of Tile.Cols.
func (p *Product[T]) packPanelsB(b Matrix[T], k, n int) {
	t := p.Tile
	p.b = grow(p.b, (n+t.Cols-1)/t.Cols*t.Cols*k+8)
	for j := 0; j < n; j += t.Cols {
		cols := min(t.Cols, n-j)
		_, width := t.forCols(cols)
		packPanel(t, p.b[j*k:], b.from(0, j), k, cols, width)
	}
}

// packPanel packs one panel of b of a width, filled up with zeros.
func packPanel[T tensor.Float](t *Tile[T], dst []T, b Matrix[T], k, cols, width int) {
	switch {
	case cols < width:
		clear(dst[:width*k])
		packEdge(dst, b.Data, b.Col, b.Row, cols, k, width)
	case b.Col == 1:
		t.packColumns(dst, b.Data, b.Row, width, k)
	default:
		t.packRows(dst, b.Data, b.Col, width, k)
	}
}

// packEdge packs n of width: element x of step l lies at x·across + l·along.
func packEdge[T tensor.Float](dst, src []T, across, along, n, k, width int) {
	if across == 1 {
		for l := range k {
			copy(dst[l*width:], src[l*along:][:n])
		}
		return
	}
	for x := range n {
		at := x
		for _, v := range src[x*across:][:k] {
			dst[at] = v
			at += width
		}
	}
}

func packRows[T tensor.Float](dst, src []T, stride, width, k int) {
	packEdge(dst, src, stride, 1, width, k, width)
}

func packColumns[T tensor.Float](dst, src []T, stride, width, k int) {
	packEdge(dst, src, 1, stride, width, k, width)
}

// grow returns memory of n elements, s if it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
