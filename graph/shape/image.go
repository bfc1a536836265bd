package shape

import (
	"fmt"

	"github.com/gangline/gangline/tensor"
)

// places is how often a window fits along n with pad on each side.
func places(n, window, stride, pad int) (int, error) {
	if n == tensor.Dynamic || window == tensor.Dynamic {
		return 0, fmt.Errorf("the sizes of images and windows must be known")
	}
	if window < 1 || stride < 1 || pad < 0 || n+2*pad < window {
		return 0, fmt.Errorf("a window of %d with stride %d and pad %d does not fit %d", window, stride, pad, n)
	}
	return (n+2*pad-window)/stride + 1, nil
}

// Conv2D is [B O H' W'] of x [B C H W] and w [O C KH KW].
func Conv2D(dst, x, w Shape, stride, pad int) (Shape, error) {
	if len(x) != 4 || len(w) != 4 || x[1] != w[1] || w[0] == tensor.Dynamic || w[1] == tensor.Dynamic {
		return nil, fmt.Errorf("%v by %v: want [B C H W] by [O C KH KW]", x, w)
	}
	dst = append(dst, x[0], w[0])
	for d := 2; d < 4; d++ {
		n, err := places(x[d], w[d], stride, pad)
		if err != nil {
			return nil, fmt.Errorf("%v by %v: %w", x, w, err)
		}
		dst = append(dst, n)
	}
	return dst, nil
}

// Conv2DGrad is like, x or w, if dy is what Conv2D made of both.
func Conv2DGrad(dst, dy, x, w, like Shape, stride, pad int) (Shape, error) {
	n := len(dst)
	s, err := Conv2D(dst, x, w, stride, pad)
	return want(dy, s, n, err, like)
}

// Pool2D is [B C H' W'] of x [B C H W].
func Pool2D(dst, x Shape, window, stride int) (Shape, error) {
	if err := rank(x, 4); err != nil {
		return nil, err
	}
	dst = append(dst, x[0], x[1])
	for d := 2; d < 4; d++ {
		n, err := places(x[d], window, stride, 0)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", x, err)
		}
		dst = append(dst, n)
	}
	return dst, nil
}

// Pool2DGrad is x, if dy is what Pool2D made of it.
func Pool2DGrad(dst, dy, x Shape, window, stride int) (Shape, error) {
	n := len(dst)
	s, err := Pool2D(dst, x, window, stride)
	return want(dy, s, n, err, x)
}

// Attention is q, if k and v are [B S H D] as well.
func Attention(dst, q, k, v Shape) (Shape, error) {
	if len(q) != 4 || !q.Equal(k) || !q.Equal(v) || q[2] == tensor.Dynamic || q[3] == tensor.Dynamic {
		return nil, fmt.Errorf("attention of %v, %v and %v: want the same [B S H D]", q, k, v)
	}
	return append(dst, q...), nil
}

// AttentionGrad is [B S 3H D].
func AttentionGrad(dst, q, k, v, dy Shape) (Shape, error) {
	n := len(dst)
	s, err := Attention(dst, q, k, v)
	if s, err = want(dy, s, n, err, q); err != nil {
		return nil, err
	}
	s[n+2] *= 3
	return s, nil
}

// FM is [B] of x [B F D].
func FM(dst, x Shape) (Shape, error) {
	if err := rank(x, 3); err != nil {
		return nil, err
	}
	return append(dst, x[0]), nil
}

// FMGrad is x, if dy is [B].
func FMGrad(dst, x, dy Shape) (Shape, error) {
	n := len(dst)
	s, err := FM(dst, x)
	return want(dy, s, n, err, x)
}

// Dots is [B F(F-1)/2] of x [B F D]. F is at least 2.
func Dots(dst, x Shape) (Shape, error) {
	if err := rank(x, 3); err != nil {
		return nil, err
	}
	if x[1] < 2 {
		return nil, fmt.Errorf("%v has no pairs: want [B F D], F known and at least 2", x)
	}
	return append(dst, x[0], x[1]*(x[1]-1)/2), nil
}

// DotsGrad is x, if dy is what Dots made of it.
func DotsGrad(dst, x, dy Shape) (Shape, error) {
	n := len(dst)
	s, err := Dots(dst, x)
	return want(dy, s, n, err, x)
}
