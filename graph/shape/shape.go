// Package shape says what shape the result of an operator has.
//
// There is one function an operator or family, on shapes alone, so that the
// graph, which knows dynamic dims only as tensor.Dynamic, and a program, which
// has real sizes, follow the same rule. A dynamic dim equals another dynamic dim
// and nothing else. Every function appends to dst, allocates nothing but to
// report an error, and names in an error the shapes that do not fit.
package shape

import (
	"fmt"
	"strings"

	"github.com/gangline/gangline/tensor"
)

// Shape is a tensor's.
type Shape = tensor.Shape

// rank fails unless s has n dims.
func rank(s Shape, n int) error {
	if len(s) != n {
		return fmt.Errorf("%v has %d dims, want %d", s, len(s), n)
	}
	return nil
}

// checkAxis fails unless axis is a dim of s.
func checkAxis(axis int, s Shape) error {
	if axis < 0 || axis >= len(s) {
		return fmt.Errorf("dim %d is not one of %v", axis, s)
	}
	return nil
}

// scalar fails unless s has one element.
func scalar(what string, s Shape) error {
	if s.Elems() != 1 {
		return fmt.Errorf("%s is %v, want a scalar", what, s)
	}
	return nil
}

// want fails unless got, the shape of a gradient, is what is left of result
// after the first n dims; it then returns like appended to dst.
func want(got, result Shape, n int, err error, like Shape) (Shape, error) {
	if err != nil {
		return nil, err
	}
	if !got.Equal(result[n:]) {
		return nil, fmt.Errorf("the gradient is %v, want %v for %v", got, result[n:].Clone(), like)
	}
	return append(result[:n], like...), nil
}

// Same is for operators on values of one shape.
func Same(dst, a, b Shape) (Shape, error) {
	if !a.Equal(b) {
		return nil, fmt.Errorf("shapes %v and %v differ", a, b)
	}
	return append(dst, a...), nil
}

// Matrices is the product of a and b, whose last two dims are read swapped if
// ta or tb is set. b has the leading dims of a, or none.
func Matrices(dst, a, b Shape, ta, tb bool) (Shape, error) {
	if len(a) < 2 || len(b) < 2 {
		return nil, fmt.Errorf("cannot multiply %v by %v: want two dims or more", a, b)
	}
	lead := a[:len(a)-2]
	if len(b) != 2 && !lead.Equal(b[:len(b)-2]) {
		return nil, fmt.Errorf("cannot multiply %v by %v: the leading dims differ", a, b)
	}
	m, k := a[len(a)-2], a[len(a)-1]
	if ta {
		m, k = k, m
	}
	k2, n := b[len(b)-2], b[len(b)-1]
	if tb {
		k2, n = n, k2
	}
	if k != k2 {
		return nil, fmt.Errorf("cannot multiply %v by %v: inner dims %s and %s differ", a, b, dim(k), dim(k2))
	}
	return append(append(dst, lead...), m, n), nil
}

// Broadcast is what all of shapes are repeated to: aligned at the last dim, dims
// are equal, or 1, or missing.
func Broadcast(dst Shape, shapes ...Shape) (Shape, error) {
	n := 0
	for _, s := range shapes {
		n = max(n, len(s))
	}
	for i := range n {
		d := 1
		for _, s := range shapes {
			at := i + len(s) - n
			if at < 0 || s[at] == 1 || s[at] == d {
				continue
			}
			if d != 1 {
				return nil, apart(shapes)
			}
			d = s[at]
		}
		dst = append(dst, d)
	}
	return dst, nil
}

func apart(shapes []Shape) error {
	words := make([]string, len(shapes))
	for i, s := range shapes {
		words[i] = s.String()
	}
	return fmt.Errorf("%s do not broadcast to each other", strings.Join(words, " and "))
}

// Unbroadcast is x, if it can be repeated to dy.
func Unbroadcast(dst, dy, x Shape) (Shape, error) {
	ok := len(x) <= len(dy)
	for i := range x {
		ok = ok && (x[i] == 1 || x[i] == dy[len(dy)-len(x)+i])
	}
	if !ok {
		return nil, fmt.Errorf("cannot broadcast %v to %v", x, dy)
	}
	return append(dst, x...), nil
}

// Fill is x, filled with a scalar.
func Fill(dst, value, x Shape) (Shape, error) { return append(dst, x...), scalar("the value", value) }

// Vectors is for operators over the last dim, which must be there.
func Vectors(dst, x Shape) (Shape, error) {
	if len(x) == 0 {
		return nil, fmt.Errorf("%v has no last dim", x)
	}
	return append(dst, x...), nil
}

// VectorsGrad is Vectors for a value and its gradient.
func VectorsGrad(dst, y, dy Shape) (Shape, error) {
	if len(y) == 0 {
		return Vectors(dst, y)
	}
	return Same(dst, y, dy)
}

// Norm is x, if gain and bias are vectors of its last dim.
func Norm(dst, x Shape, params ...Shape) (Shape, error) {
	if len(x) == 0 || x[len(x)-1] == tensor.Dynamic {
		return nil, fmt.Errorf("the last dim of %v is not known", x)
	}
	for _, p := range params {
		if len(p) != 1 || p[0] != x[len(x)-1] {
			return nil, fmt.Errorf("%v does not fit the last dim of %v", p, x)
		}
	}
	return append(dst, x...), nil
}

// NormGrad is Norm for the gradient of x.
func NormGrad(dst, x, gain, dy Shape) (Shape, error) {
	n := len(dst)
	s, err := Norm(dst, x, gain)
	return want(dy, s, n, err, x)
}

// NormGainGrad is the last dim of x.
func NormGainGrad(dst, x, dy Shape) (Shape, error) {
	n := len(dst)
	s, err := Norm(dst, x)
	if err != nil {
		return nil, err
	}
	return want(dy, s, n, err, x[len(x)-1:])
}

// Dropout is x, whose rows are those of index, or a multiple.
func Dropout(dst, x, index Shape) (Shape, error) {
	if err := rank(index, 1); err != nil {
		return nil, err
	}
	ok := len(x) > 0
	if ok {
		r, b := x[0], index[0]
		ok = r == b || r != tensor.Dynamic && b != tensor.Dynamic && b > 0 && r%b == 0
	}
	if !ok {
		return nil, fmt.Errorf("%v has not the rows of the batch, %v, or a multiple", x, index)
	}
	return append(dst, x...), nil
}

// MaxElems bounds the elements of a value, dynamic dims not counted.
const MaxElems = 1 << 40

// CheckSize refuses dims below 1 and sizes that could overflow.
func CheckSize(s tensor.Shape) error {
	n := 1
	for _, d := range s {
		if d == tensor.Dynamic {
			continue
		}
		if d < 1 {
			return fmt.Errorf("shape %v has a dim below 1", s)
		}
		if d > MaxElems/n {
			return fmt.Errorf("shape %v has more than %d elements", s, MaxElems)
		}
		n *= d
	}
	return nil
}
