package kernel

import "github.com/gangline/gangline/tensor"

func second[T tensor.Float](out, x []T) {
	for i := range out {
		out[i] = x[2*i]
	}
}

func addSecond[T tensor.Float](out, x []T) {
	for i, v := range x {
		out[2*i] += v
	}
}

// drop writes compute.Mask.Keeps out, for a loop without calls.
func drop[T tensor.Float](out, x []T, k0, k1, least uint32, scale T) {
	x = x[:len(out)]
	for i, v := range x {
		h := uint32(i)*0x9e3779b9 + k0
		h = (h ^ h>>16) * 0x85ebca6b
		h = (h ^ h>>13 ^ k1) * 0xc2b2ae35
		v *= scale
		if h^h>>16 < least {
			v = 0
		}
		out[i] = v
	}
}

// Blocks of turn: as many columns as a cache line of x has, and as many rows as
// stay near even where they lie a power of two apart.
const (
	turnCols = 8
	turnRows = 32
)

func turn[T tensor.Float](out []T, outRow int, x []T, xRow, rows, cols int) {
	for top := 0; top < rows; top += turnRows {
		n := min(turnRows, rows-top)
		for left := 0; left < cols; left += turnCols {
			for c := left; c < min(cols, left+turnCols); c++ {
				at, dst := top*xRow+c, out[c*outRow+top:][:n]
				for r := range dst {
					dst[r] = x[at]
					at += xRow
				}
			}
		}
	}
}

// pairs is how many elements of n, a multiple of 4, the assembly can do that
// reads or writes so many pairs.
func pairs(n, pairs int) int { return min(n, pairs) &^ 3 }

func secondFast(out, x []float32) {
	n := pairs(len(out), len(x)/2)
	if n > 0 {
		secondAVX(&out[0], &x[0], n)
	}
	second(out[n:], x[2*n:])
}

func addSecondFast(out, x []float32) {
	n := pairs(len(x), len(out)/2)
	if n > 0 {
		addSecondAVX(&out[0], &x[0], n)
	}
	addSecond(out[2*n:], x[n:])
}

// turnFast has 8 rows at a time turned by what packs matrices, which takes
// columns by 8 as well.
func turnFast(out []float32, outRow int, x []float32, xRow, rows, cols int) {
	whole, r := cols&^7, 0
	for ; whole > 0 && r+8 <= rows; r += 8 {
		_, _ = out[(whole-1)*outRow+r+7], x[(r+7)*xRow+whole-1]
		packTranspose8(&out[r], 4*outRow, &x[r*xRow], 4*xRow, whole/8, 0)
	}
	if whole > 0 && r < rows {
		turn(out[r:], outRow, x[r*xRow:], xRow, rows-r, whole)
	}
	if whole < cols {
		turn(out[whole*outRow:], outRow, x[whole:], xRow, rows, cols-whole)
	}
}
