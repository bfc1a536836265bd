package kernel

import (
	"math"

	"github.com/gangline/gangline/tensor"
)

// Sums are taken in float64, element i in lane i mod 8, and the lanes added up
// as a tree: the order of the assembly, which has two vectors of four.
type lanes [8]float64

func (l *lanes) total() float64 {
	return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

func sum[T tensor.Float](x []T) float64 {
	var l lanes
	addTo(&l, x)
	return l.total()
}

func addTo[T tensor.Float](l *lanes, x []T) {
	for ; len(x) >= 8; x = x[8:] {
		for i := range 8 {
			l[i] += float64(x[i])
		}
	}
	for i, v := range x {
		l[i] += float64(v)
	}
}

func dot[T tensor.Float](x, y []T) float64 {
	var l lanes
	addProducts(&l, x, y)
	return l.total()
}

func addProducts[T tensor.Float](l *lanes, x, y []T) {
	y = y[:len(x)]
	for i, v := range x {
		l[i&7] += float64(float64(v) * float64(y[i]))
	}
}

func squares[T tensor.Float](x []T, mean float64) float64 {
	var l lanes
	addSquares(&l, x, mean)
	return l.total()
}

func addSquares[T tensor.Float](l *lanes, x []T, mean float64) {
	for i, v := range x {
		d := float64(v) - mean
		l[i&7] += float64(d * d)
	}
}

// expSumOf makes a Table.ExpSum of an exponential function.
func expSumOf[T tensor.Float](exp func(T) T) func(out, x []T, shift T) float64 {
	return func(out, x []T, shift T) float64 {
		var l lanes
		x = x[:len(out)]
		for i, v := range x {
			e := exp(v - shift)
			out[i] = e
			l[i&7] += float64(e)
		}
		return l.total()
	}
}

func maximum[T tensor.Float](x []T) T {
	top := T(math.Inf(-1))
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	return top
}

// The same by assembly, and the elements left over by the functions above.

func sumFast(x []float32) float64 {
	var l lanes
	n := len(x) &^ 7
	if n > 0 {
		sumAVX(&l[0], &x[0], n)
	}
	addTo(&l, x[n:])
	return l.total()
}

func dotFast(x, y []float32) float64 {
	var l lanes
	y = y[:len(x)]
	n := len(x) &^ 7
	if n > 0 {
		dotAVX(&l[0], &x[0], &y[0], n)
	}
	addProducts(&l, x[n:], y[n:])
	return l.total()
}

func squaresFast(x []float32, mean float64) float64 {
	var l lanes
	n := len(x) &^ 7
	if n > 0 {
		squaresAVX(&l[0], &x[0], n, mean)
	}
	addSquares(&l, x[n:], mean)
	return l.total()
}

func expSumFast(out, x []float32, shift float32) float64 {
	var l lanes
	x = x[:len(out)]
	n := len(x) &^ 7
	if n > 0 {
		expSumAVX(&l[0], &out[0], &x[0], n, shift)
	}
	for i, v := range x[n:] {
		e := exp32(v - shift)
		out[n+i] = e
		l[i] += float64(e)
	}
	return l.total()
}

func maximumFast(x []float32) float32 {
	n := len(x) &^ 7
	if n == 0 {
		return maximum(x)
	}
	top := [8]float32{x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]}
	for i, v := range top {
		if v != v {
			top[i] = float32(math.Inf(-1))
		}
	}
	maxAVX(&top[0], &x[0], n)
	return max(maximum(top[:]), maximum(x[n:]))
}
