package kernel

import "github.com/gangline/gangline/tensor"

// Sums over the rows of a matrix, one after the other: the order that results
// do not depend on how columns are cut.

func sumRows[T tensor.Float](out, x []T, rows, stride int) {
	clear(out)
	for i := range rows {
		add(out, out, x[i*stride:])
	}
}

func sumNormProducts[T tensor.Float](out, x, dy []T, moments [][2]T, stride int) {
	clear(out)
	for i, m := range moments {
		addNormProducts(out, x[i*stride:], dy[i*stride:], m[0], m[1])
	}
}

func sumRowsFast(out, x []float32, rows, stride int) {
	n := len(out) &^ 7
	if rows == 0 {
		clear(out)
		return
	}
	if n > 0 {
		_ = x[(rows-1)*stride+len(out)-1]
		sumRowsAVX(&out[0], &x[0], rows, 4*stride, n)
	}
	if n < len(out) {
		sumRows(out[n:], x[n:], rows, stride)
	}
}

func sumNormProductsFast(out, x, dy []float32, moments [][2]float32, stride int) {
	n, rows := len(out)&^7, len(moments)
	if rows == 0 {
		clear(out)
		return
	}
	if n > 0 {
		_, _ = x[(rows-1)*stride+len(out)-1], dy[(rows-1)*stride+len(out)-1]
		sumNormProductsAVX(&out[0], &x[0], &dy[0], &moments[0][0], rows, 4*stride, n)
	}
	if n < len(out) {
		sumNormProducts(out[n:], x[n:], dy[n:], moments, stride)
	}
}
