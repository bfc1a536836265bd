package broadcast

import (
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/tensor"
)

// TestPiece finds the element of every operand that meets one of the result, and
// compares it with what indices with dims of 1 left out say.
func TestPiece(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		shape := make(tensor.Shape, r.IntN(5))
		for d := range shape {
			shape[d] = r.IntN(4)
		}
		var in []*tensor.Tensor
		for range 1 + r.IntN(OperandsMax) {
			s := shape.Clone()
			for d := range s {
				if r.IntN(3) == 0 {
					s[d] = 1
				}
			}
			x := tensor.New(tensor.F64, s[r.IntN(len(s)+1):]...)
			for i := range x.F64() {
				x.F64()[i] = float64(i)
			}
			in = append(in, x)
		}
		b := Of(shape, in)
		if n := shape.Elems(); b.Outer*b.Inner != n {
			t.Fatalf("%v: %d blocks of %d", shape, b.Outer, b.Inner)
		}
		for e := range shape.Elems() {
			for o, x := range in {
				piece := Piece(&b, o, e/b.Inner, x.F64())
				got := piece[0]
				if len(piece) > 1 {
					got = piece[e%b.Inner]
				}
				if want := meets(shape, x.Shape(), e); got != float64(want) {
					t.Fatalf("element %d of %v meets %v of %v, want %d", e, shape, got, x.Shape(), want)
				}
			}
		}
	}
}

// meets returns the index in an operand of shape s that meets element e.
func meets(shape, s tensor.Shape, e int) int {
	at, stride := 0, 1
	for d := 1; d <= len(shape); d++ {
		i := e % shape[len(shape)-d]
		e /= shape[len(shape)-d]
		if d <= len(s) && s[len(s)-d] != 1 {
			at += i * stride
			stride *= s[len(s)-d]
		}
	}
	return at
}
