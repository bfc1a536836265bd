// Package glance says what a Commit must know of a gradient: whether it is finite, and
// how long it is.
package glance

//go:generate sh -c "cd ../../../tools && go run ./asmgen -out ../exec/internal/glance"

import (
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// Glance is what is seen of a tensor.
type Glance struct {
	Finite  bool
	Squares float64 // their sum, if it is asked for
}

// At goes over a tensor of floats, and adds up their squares if norm says so: a sum that
// is too large for a float64 is not finite.
func At(t *tensor.Tensor, norm bool) Glance {
	if !norm {
		return Glance{Finite: Finite(t)}
	}
	squares := squareNorm(t)
	return Glance{Squares: squares, Finite: !math.IsInf(squares, 0) && !math.IsNaN(squares)}
}

func squareNorm(t *tensor.Tensor) float64 {
	switch t.DType() {
	case tensor.F32:
		return optim.SquareNorm(t.F32())
	case tensor.F64:
		return optim.SquareNorm(t.F64())
	case tensor.BF16, tensor.F16, tensor.I32, tensor.I64, tensor.Invalid:
	}
	return squareNorm16(t)
}

// squareNorm16 is squareNorm of 16-bit floats, widened some at a time.
func squareNorm16(t *tensor.Tensor) float64 {
	var buf [512]float32
	h, x, sum := compute.HalfOf(t.DType()), t.Halves(), 0.0
	for len(x) > 0 {
		n := min(len(x), len(buf))
		h.Widen(buf[:n], x[:n])
		sum += optim.SquareNorm(buf[:n])
		x = x[n:]
	}
	return sum
}
