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

func squaredLoss[T tensor.Float](p, y []T) float64 {
	var l lanes
	y = y[:len(p)]
	for i, v := range p {
		d := float64(v) - float64(y[i])
		l[i&7] += float64(d * d)
	}
	return l.total()
}

// logisticLossOf makes a Table.LogisticLoss of exp(x) and log(1+x). |z|·t + log(1+exp(-|z|)),
// t being y where z < 0 and 1-y elsewhere, is max(z, 0) - z·y + log(1+exp(-|z|))
// without a difference that loses digits.
func logisticLossOf[T tensor.Float](exp, logOf1And func(T) T) func(z, y []T) float64 {
	return func(z, y []T) float64 {
		var l lanes
		y = y[:len(z)]
		for i, v := range z {
			t, a := 1-y[i], abs(v)
			if v < 0 {
				t = y[i]
			}
			l[i&7] += float64(T(a*t) + logOf1And(exp(-a)))
		}
		return l.total()
	}
}

// largest is -Inf of none. What it adds makes 0 of -0.
func largest[T tensor.Float](x []T) T {
	top := T(math.Inf(-1))
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	return top + 0
}

// first returns the index of the first maximum. NaN is greater than any number.
func first[T tensor.Float](x []T) int {
	best := 0
	for i, v := range x {
		top := x[best]
		if top != top {
			return best
		}
		if v > top || v != v {
			best = i
		}
	}
	return best
}

// raise is a step of first in many columns at once.
func raise[T tensor.Float](top, at, x []T, i T) {
	at, x = at[:len(top)], x[:len(top)]
	for j, t := range top {
		if v := x[j]; t == t && !(v <= t) {
			top[j], at[j] = v, i
		}
	}
}

func inside[T tensor.Float](x []T, low, high T) bool {
	for _, v := range x {
		if !(v >= low && v <= high) {
			return false
		}
	}
	return true
}
