// Package broadcast says how operands of different shapes meet in a result
// (NumPy's rules of broadcasting).
package broadcast

import "github.com/gangline/gangline/tensor"

// OperandsMax is how many operands are broadcast to each other at most.
const OperandsMax = 3

// Blocks says how operands are repeated to a shape: in outer blocks of inner
// elements, within which an operand has either all elements or one.
type Blocks struct {
	Outer, Inner int
	count        int
	Single       [OperandsMax]bool // has one element a block
	shape        tensor.Shape      // of the blocks
	operand      [OperandsMax]tensor.Shape
}

// dimOf is the d-th dim from the end, 1 where there is none.
func dimOf(s tensor.Shape, d int) int {
	if d > len(s) {
		return 1
	}
	return s[len(s)-d]
}

// Of takes as many trailing dims as possible into the inner block: those
// in which every operand is either whole or repeated all along.
func Of(shape tensor.Shape, in []*tensor.Tensor) Blocks {
	b := Blocks{Inner: 1, count: len(in)}
	d, first := 1, true
scan:
	for ; d <= len(shape); d++ {
		size := shape[len(shape)-d]
		if size == 1 {
			continue
		}
		for i, t := range in {
			single := dimOf(t.Shape(), d) != size
			if !first && single != b.Single[i] {
				break scan
			}
			b.Single[i] = single
		}
		first = false
		b.Inner *= size
	}
	b.shape = shape[:max(0, len(shape)-d+1)]
	b.Outer = b.shape.Elems()
	for i, t := range in {
		s := t.Shape()
		b.operand[i] = s[:max(0, len(s)-d+1)]
		if first {
			b.Single[i] = true
		}
	}
	return b
}

// at returns which block of operand o meets block i.
func (b *Blocks) at(o, i int) int {
	j, stride, s := 0, 1, b.operand[o]
	for d := 1; d <= len(s); d++ {
		size := b.shape[len(b.shape)-d]
		if s[len(s)-d] != 1 {
			j += i % size * stride
		}
		i /= size
		stride *= s[len(s)-d]
	}
	return j
}

// Piece returns what block i has of the elements x of operand o.
func Piece[T any](b *Blocks, o, i int, x []T) []T {
	j := b.at(o, i)
	if b.Single[o] {
		return x[j : j+1]
	}
	return x[j*b.Inner : (j+1)*b.Inner]
}
