package shape

import (
	"errors"
	"fmt"

	"github.com/gangline/gangline/tensor"
)

// Reshape is to with its dynamic dim filled in, if x is static.
func Reshape(dst, x, to Shape) (Shape, error) {
	hole, known := -1, 1
	for i, d := range to {
		switch {
		case d != tensor.Dynamic:
			known *= d
		case hole >= 0:
			return nil, fmt.Errorf("cannot give %v the shape %v: it has more than one dynamic dim", x, to)
		default:
			hole = len(dst) + i
		}
	}
	n := x.Elems()
	dst = append(dst, to...)
	switch {
	case n == tensor.Dynamic && hole < 0:
		return nil, fmt.Errorf("cannot give %v the shape %v: one has a dynamic size, the other has not", x, to)
	case n == tensor.Dynamic:
		return dst, nil
	case hole >= 0 && known > 0 && n%known == 0:
		dst[hole] = n / known
		return dst, nil
	case hole < 0 && n == known:
		return dst, nil
	}
	return nil, fmt.Errorf("cannot give %v the shape %v: %d elements do not fill it", x, to, n)
}

// Inferable reports whether Reshape can give a value the shape s: at most one dim
// is dynamic, and none 0, beside which the dynamic one could be anything.
func Inferable(s Shape) bool {
	dynamic := 0
	for _, d := range s {
		if d == 0 {
			return false
		}
		if d == tensor.Dynamic {
			dynamic++
		}
	}
	return dynamic <= 1
}

// ReshapeLike is x, if dy has as many elements.
func ReshapeLike(dst, dy, x Shape) (Shape, error) {
	if dy.Static() != x.Static() || dy.Elems() != x.Elems() {
		return nil, fmt.Errorf("cannot give %v the shape %v", dy, x)
	}
	return append(dst, x...), nil
}

// Transpose is the dims of x in the order perm.
func Transpose(dst, x Shape, perm []int) (Shape, error) {
	seen := uint64(0)
	for _, p := range perm {
		if p < 0 || p >= min(len(x), 64) || seen>>p&1 == 1 {
			return nil, fmt.Errorf("the order %v is not one of the dims of %v", perm, x)
		}
		seen |= 1 << p
		dst = append(dst, x[p])
	}
	if len(perm) != len(x) {
		return nil, fmt.Errorf("the order %v is not one of the dims of %v", perm, x)
	}
	return dst, nil
}

// Concat joins values on an axis whose dims are known.
func Concat(dst Shape, in []Shape, axis int) (Shape, error) {
	first, n := in[0], len(dst)
	if err := checkAxis(axis, first); err != nil {
		return nil, err
	}
	dst = append(dst, first...)
	for i, s := range in {
		for d := range first {
			if len(s) != len(first) || d != axis && s[d] != first[d] {
				return nil, fmt.Errorf("cannot join %v and %v on dim %d", first, s, axis)
			}
		}
		if s[axis] == tensor.Dynamic {
			return nil, fmt.Errorf("dim %d of %v, which is joined, must be known", axis, s)
		}
		if i > 0 {
			dst[n+axis] += s[axis]
		}
	}
	return dst, nil
}

// Slice is x with the range [start, end) of an axis.
func Slice(dst, x Shape, axis, start, end int) (Shape, error) {
	if err := checkAxis(axis, x); err != nil {
		return nil, err
	}
	if start < 0 || end < start || end > x[axis] {
		return nil, fmt.Errorf("the range [%d, %d) is not within dim %d of %v", start, end, axis, x)
	}
	n := len(dst)
	dst = append(dst, x...)
	dst[n+axis] = end - start
	return dst, nil
}

// PadSlice is x, if dy is a slice of it.
func PadSlice(dst, dy, x Shape, axis, start, end int) (Shape, error) {
	n := len(dst)
	s, err := Slice(dst, x, axis, start, end)
	return want(dy, s, n, err, x)
}

// Reduce is x without an axis, or with 1 there if keep is set.
func Reduce(dst, x Shape, axis int, keep bool) (Shape, error) {
	if err := checkAxis(axis, x); err != nil {
		return nil, err
	}
	dst = append(dst, x[:axis]...)
	if keep {
		dst = append(dst, 1)
	}
	return append(dst, x[axis+1:]...), nil
}

// Spread is x, if dy is x reduced over an axis.
func Spread(dst, dy, x Shape, axis int) (Shape, error) {
	n := len(dst)
	s, err := Reduce(dst, x, axis, len(dy) == len(x))
	return want(dy, s, n, err, x)
}

// SumRows is the rows of a matrix.
func SumRows(dst, x Shape) (Shape, error) {
	if err := rank(x, 2); err != nil {
		return nil, err
	}
	return append(dst, x[0]), nil
}

// SpreadRows is x, a matrix, if dy is a vector of its rows.
func SpreadRows(dst, dy, x Shape) (Shape, error) {
	if len(dy) != 1 || len(x) != 2 || dy[0] != x[0] {
		return nil, fmt.Errorf("cannot repeat %v over the last dim of %v", dy, x)
	}
	return append(dst, x...), nil
}

// Count is a scalar, the rows of x.
func Count(dst, x Shape) (Shape, error) {
	if len(x) == 0 {
		return nil, errors.New("its input is a scalar, which has no rows")
	}
	return dst, nil
}
