package vector

import "math"

// Sum is a number in two: Hi is it, rounded, and Lo is what rounding left, not
// rounded into Hi so that sums of sums lose nothing either.
type Sum struct{ Hi, Lo float64 }

// Value returns the sum as one number. It is not finite if a product or the sum
// was not.
func (s Sum) Value() float64 { return s.Hi + s.Lo }

// Merge returns the sum of sums, in their order.
func Merge(sums ...Sum) Sum {
	var t Sum
	for _, s := range sums {
		t.add(s)
	}
	return t
}

func (s *Sum) add(o Sum) {
	hi, err := twoSum(s.Hi, o.Hi)
	s.Hi, s.Lo = hi, s.Lo+o.Lo+err
}

// twoSum returns a+b rounded, and the rounding error (Knuth 1969). There is no
// product in it that a compiler could fuse with a sum.
func twoSum(a, b float64) (sum, err float64) {
	sum = a + b
	z := sum - a
	return sum, (a - (sum - z)) + (b - z)
}

// dot64 is Dot2 of Ogita, Rump and Oishi in two lanes, of the even and the odd
// elements: one sum would wait for itself. Lanes are variables, as an array of them
// would stay in memory.
func dot64(a, b []float64) Sum {
	var h0, l0, h1, l1 float64
	b = b[:len(a)]
	for ; len(a) >= 2 && len(b) >= 2; a, b = a[2:], b[2:] {
		p := float64(a[0] * b[0]) // the conversion forbids to fuse it with what follows
		s := h0 + p
		z := s - h0
		l0 += ((h0 - (s - z)) + (p - z)) + math.FMA(a[0], b[0], -p)
		h0 = s
		q := float64(a[1] * b[1])
		r := h1 + q
		y := r - h1
		l1 += ((h1 - (r - y)) + (q - y)) + math.FMA(a[1], b[1], -q)
		h1 = r
	}
	sum := Merge(Sum{h0, l0}, Sum{h1, l1})
	for i := range a {
		p := float64(a[i] * b[i])
		sum.add(Sum{p, math.FMA(a[i], b[i], -p)})
	}
	return sum
}

// dot32 is the same of float32s, of which products are exact in float64.
func dot32(a, b []float32) Sum {
	var h0, l0, h1, l1 float64
	b = b[:len(a)]
	for ; len(a) >= 2 && len(b) >= 2; a, b = a[2:], b[2:] {
		p := float64(float64(a[0]) * float64(b[0]))
		s := h0 + p
		z := s - h0
		l0 += (h0 - (s - z)) + (p - z)
		h0 = s
		q := float64(float64(a[1]) * float64(b[1]))
		r := h1 + q
		y := r - h1
		l1 += (h1 - (r - y)) + (q - y)
		h1 = r
	}
	sum := Merge(Sum{h0, l0}, Sum{h1, l1})
	for i := range a {
		sum.add(Sum{Hi: float64(a[i]) * float64(b[i])})
	}
	return sum
}
