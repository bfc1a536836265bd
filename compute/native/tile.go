package native

import "github.com/gangline/gangline/tensor"

// The size of the register tile: 8 sums, 2 + 4 operands and one product fit the
// 15 registers that the compiler has on amd64.
const (
	tileM = 2
	tileN = 4
)

// tile sets t, row-major tileM×tileN, to the product of a panel of a
// (tileM elements a step) and one of b (tileN elements a step), adding by
// ascending step. It is where nearly all time of a dense model goes; four
// steps a turn hide the cost of moving the slices on.
func tile[T tensor.Float](t *[tileM * tileN]T, a, b []T) {
	var s00, s01, s02, s03, s10, s11, s12, s13 T
	for len(a) >= 8 && len(b) >= 16 {
		x, y := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		x, y = a[2], a[3]
		b0, b1, b2, b3 = b[4], b[5], b[6], b[7]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		x, y = a[4], a[5]
		b0, b1, b2, b3 = b[8], b[9], b[10], b[11]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		x, y = a[6], a[7]
		b0, b1, b2, b3 = b[12], b[13], b[14], b[15]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		a, b = a[8:], b[16:]
	}
	for len(a) >= 2 && len(b) >= 4 {
		x, y := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		s00, s01, s02, s03 = s00+x*b0, s01+x*b1, s02+x*b2, s03+x*b3
		s10, s11, s12, s13 = s10+y*b0, s11+y*b1, s12+y*b2, s13+y*b3
		a, b = a[2:], b[4:]
	}
	t[0], t[1], t[2], t[3] = s00, s01, s02, s03
	t[4], t[5], t[6], t[7] = s10, s11, s12, s13
}
