package optim

import (
	"math"

	"github.com/gangline/gangline/optim/internal/vector"
)

// lanes is the number of partial sums of SquareNorm.
const lanes = 8

// SquareNorm returns the sum of the squares of v in float64, in an order that
// vector code keeps: element i is added to partial sum i mod 8, and the
// partial sums s are added as ((s0+s4)+(s2+s6)) + ((s1+s5)+(s3+s7)). It is not finite
// if an element is not, and may be infinite where elements exceed 1e150. One
// pass; no allocation.
func SquareNorm[T Float](v []T) float64 {
	if len(v) >= lanes {
		if squares, ok := vector.Squares(singles(v)); ok {
			return squares
		}
	}
	var s [lanes]float64
	a, b, c, d, e, f, g, h := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
	for len(v) >= lanes {
		w := (*[lanes]T)(v)
		a += square(w[0])
		b += square(w[1])
		c += square(w[2])
		d += square(w[3])
		e += square(w[4])
		f += square(w[5])
		g += square(w[6])
		h += square(w[7])
		v = v[lanes:]
	}
	s = [lanes]float64{a, b, c, d, e, f, g, h}
	for i, x := range v {
		s[i] += square(x)
	}
	return fold(&s)
}

// square is x² in float64, rounded before anything is added to it.
func square[T Float](x T) float64 { return float64(float64(x) * float64(x)) }

func fold(s *[lanes]float64) float64 {
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

// Divisor returns what Dense and Rows must be given as the total weight of a
// step for ClipNorm to hold. squares is the squared norm of the gradient sums of
// all parameters: Σ SquareNorm. The mean gradient is sum/total; if its norm
// exceeds ClipNorm, dividing by √squares/ClipNorm instead makes it just that.
// Without ClipNorm, and for a step without examples, it is total.
func (r Rule) Divisor(total, squares float64) float64 {
	if r.ClipNorm == 0 || total == 0 {
		return total
	}
	return max(total, math.Sqrt(squares)/r.ClipNorm)
}
