package compute

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// ShapeOf appends the shape of a node's result to dst, given the tensors that
// came in: the counterpart, at run time, of the graph's inference. It checks
// that the shapes fit each other and the operator; values (ids, labels) are the
// kernel's to check. It allocates only to report an error.
func ShapeOf(dst tensor.Shape, n *graph.Node, in []*tensor.Tensor) (tensor.Shape, error) {
	switch n.Op {
	case graph.Const:
		if !n.Attr.Shape.Static() {
			return nil, fmt.Errorf("its shape %v is not static", n.Attr.Shape)
		}
		return append(dst, n.Attr.Shape...), nil
	case graph.MatMul:
		return matMulShape(dst, n.Attr, in[0].Shape(), in[1].Shape())
	case graph.Add, graph.Sub, graph.Mul:
		return broadcastShape(dst, in[0].Shape(), in[1].Shape())
	case graph.Scale, graph.Relu, graph.Sigmoid, graph.Tanh, graph.Exp, graph.Log, graph.Square:
		return append(dst, in[0].Shape()...), nil
	case graph.Softmax:
		return append(dst, in[0].Shape()...), wantRank(in[0], 2)
	case graph.Sum:
		return dst, nil
	case graph.Count:
		if len(in[0].Shape()) == 0 {
			return nil, fmt.Errorf("its input is a scalar, which has no rows")
		}
		return dst, nil
	case graph.SumRows:
		return append(dst, in[0].Shape()[:min(1, len(in[0].Shape()))]...), wantRank(in[0], 2)
	case graph.Reshape:
		return reshapeShape(dst, n.Attr.Shape, in[0].Shape())
	case graph.Concat:
		return concatShape(dst, n.Attr.Axis, in)
	case graph.Slice:
		if err := checkRange(n.Attr, in[0].Shape()); err != nil {
			return nil, err
		}
		dst = append(dst, in[0].Shape()...)
		dst[n.Attr.Axis] = n.Attr.End - n.Attr.Start
		return dst, nil
	case graph.GatherRows, graph.Gather, graph.Bag, graph.GatherGrad, graph.BagGrad:
		return rowsShape(dst, n.Op, in)
	case graph.LogisticLoss, graph.SoftmaxLoss, graph.SquaredLoss:
		return dst, checkLabels(n.Op == graph.SoftmaxLoss, in)
	case graph.LogisticGrad, graph.SoftmaxLossGrad, graph.SquaredGrad:
		if err := checkLabels(n.Op == graph.SoftmaxLossGrad, in); err != nil {
			return nil, err
		}
		return append(dst, in[0].Shape()...), wantScalar("the gradient of the loss", in[2])
	case graph.Update, graph.UpdateRows:
		return append(dst, in[0].Shape()...), checkUpdateShapes(n, in)
	default:
		return gradShape(dst, n, in)
	}
}

// gradShape is ShapeOf for the gradients of element-wise and shape operators.
func gradShape(dst tensor.Shape, n *graph.Node, in []*tensor.Tensor) (tensor.Shape, error) {
	a, b := in[0].Shape(), in[1].Shape()
	switch n.Op {
	case graph.ReluGrad, graph.SigmoidGrad, graph.TanhGrad, graph.LogGrad, graph.SquareGrad, graph.SoftmaxGrad:
		if !a.Equal(b) {
			return nil, fmt.Errorf("the gradient is %v for a value of %v", b, a)
		}
		if n.Op == graph.SoftmaxGrad {
			return append(dst, a...), wantRank(in[0], 2)
		}
	case graph.Unbroadcast:
		if _, err := broadcastShape(dst, a, b); err != nil {
			return nil, err
		}
	case graph.FillLike:
		if err := wantScalar("the value", in[0]); err != nil {
			return nil, err
		}
	case graph.SpreadRows:
		if len(a) != 1 || len(b) != 2 || a[0] != b[0] {
			return nil, fmt.Errorf("cannot repeat %v over the last dim of %v", a, b)
		}
	case graph.ReshapeLike:
		if a.Elems() != b.Elems() {
			return nil, fmt.Errorf("cannot give %v the shape %v", a, b)
		}
	case graph.PadSlice:
		if err := checkRange(n.Attr, b); err != nil {
			return nil, err
		}
		for d := range b {
			if len(a) != len(b) || d != n.Attr.Axis && a[d] != b[d] || d == n.Attr.Axis && a[d] != n.Attr.End-n.Attr.Start {
				return nil, fmt.Errorf("the gradient is %v for the range [%d, %d) of dim %d of %v", a, n.Attr.Start, n.Attr.End, n.Attr.Axis, b)
			}
		}
	}
	return append(dst, b...), nil
}

func matMulShape(dst tensor.Shape, at graph.Attr, a, b tensor.Shape) (tensor.Shape, error) {
	if len(a) != 2 || len(b) != 2 {
		return nil, fmt.Errorf("cannot multiply %v by %v: want two dims each", a, b)
	}
	m, k, k2, n := a[0], a[1], b[0], b[1]
	if at.TransA {
		m, k = k, m
	}
	if at.TransB {
		k2, n = n, k2
	}
	if k != k2 {
		return nil, fmt.Errorf("cannot multiply %v by %v (transposed: %t, %t): the inner dims are %d and %d", a, b, at.TransA, at.TransB, k, k2)
	}
	return append(dst, m, n), nil
}

// broadcastShape checks that b can be repeated to the shape of a, which is the
// result: aligned at the last dim, every dim of b is that of a or 1.
func broadcastShape(dst, a, b tensor.Shape) (tensor.Shape, error) {
	ok := len(b) <= len(a)
	for i := range b {
		ok = ok && (b[i] == 1 || b[i] == a[len(a)-len(b)+i])
	}
	if !ok {
		return nil, fmt.Errorf("cannot broadcast %v to %v", b, a)
	}
	return append(dst, a...), nil
}

func reshapeShape(dst, want, a tensor.Shape) (tensor.Shape, error) {
	rest, hole := 1, -1
	for i, d := range want {
		if d == tensor.Dynamic {
			hole = i
			continue
		}
		rest *= d
	}
	n := a.Elems()
	dst = append(dst, want...)
	if hole >= 0 {
		dst[hole] = 0
		if rest > 0 {
			dst[hole] = n / rest
		}
	}
	if dst.Elems() != n {
		return nil, fmt.Errorf("cannot give %v the shape %v", a, want)
	}
	return dst, nil
}

func concatShape(dst tensor.Shape, axis int, in []*tensor.Tensor) (tensor.Shape, error) {
	first := in[0].Shape()
	if axis < 0 || axis >= len(first) {
		return nil, fmt.Errorf("dim %d is not one of %v", axis, first)
	}
	dst = append(dst, first...)
	for _, t := range in[1:] {
		s := t.Shape()
		for d := range first {
			if len(s) != len(first) || d != axis && s[d] != first[d] {
				return nil, fmt.Errorf("cannot join %v and %v on dim %d", first, s, axis)
			}
		}
		dst[axis] += s[axis]
	}
	return dst, nil
}

func checkRange(at graph.Attr, s tensor.Shape) error {
	if at.Axis < 0 || at.Axis >= len(s) {
		return fmt.Errorf("dim %d is not one of %v", at.Axis, s)
	}
	if at.Start < 0 || at.End < at.Start || at.End > s[at.Axis] {
		return fmt.Errorf("the range [%d, %d) is not within dim %d of %v", at.Start, at.End, at.Axis, s)
	}
	return nil
}

// rowsShape covers the operators that read or make rows by index.
func rowsShape(dst tensor.Shape, op graph.Op, in []*tensor.Tensor) (tensor.Shape, error) {
	if err := wantRank(in[0], 2); err != nil {
		return nil, err
	}
	if err := wantRank(in[1], 1); err != nil {
		return nil, err
	}
	rows, entries := in[0].Shape(), in[1].Elems()
	switch op {
	case graph.GatherRows, graph.Gather:
		return append(dst, entries, rows[1]), nil
	case graph.GatherGrad:
		if like := in[2].Shape(); rows[0] != entries || len(like) != 2 || like[1] != rows[1] {
			return nil, fmt.Errorf("the gradient is %v for %d entries of rows %v", rows, entries, like)
		}
		return append(dst, in[2].Shape()...), nil
	}
	offsets, weights := in[2].Shape(), in[3].Shape()
	if len(offsets) != 1 || offsets[0] < 1 || len(weights) != 1 || weights[0] != entries {
		return nil, fmt.Errorf("offsets are %v and weights %v for %d entries", offsets, weights, entries)
	}
	if op == graph.Bag {
		return append(dst, offsets[0]-1, rows[1]), nil
	}
	if like := in[4].Shape(); rows[0] != offsets[0]-1 || len(like) != 2 || like[1] != rows[1] {
		return nil, fmt.Errorf("the gradient is %v for %d bags of rows %v", rows, offsets[0]-1, like)
	}
	return append(dst, in[4].Shape()...), nil
}

// checkLabels compares the predictions of a loss with its labels.
func checkLabels(classes bool, in []*tensor.Tensor) error {
	z, y := in[0].Shape(), in[1].Shape()
	ok := len(y) == 1 && len(z) >= 1 && z[0] == y[0]
	if classes {
		ok = ok && len(z) == 2
	} else {
		ok = ok && (len(z) == 1 || len(z) == 2 && z[1] == 1)
	}
	if !ok {
		return fmt.Errorf("predictions are %v for labels %v", z, y)
	}
	return nil
}

func checkUpdateShapes(n *graph.Node, in []*tensor.Tensor) error {
	v, grad, total, slots := in[0].Shape(), in[1], in[2], in[3:]
	if n.Op == graph.UpdateRows {
		if err := wantRank(in[0], 2); err != nil {
			return err
		}
		if err := wantRank(in[1], 1); err != nil {
			return err
		}
		grad, total, slots = in[2], in[3], in[4:]
		if g := grad.Shape(); len(g) != 2 || g[0] != in[1].Elems() || g[1] != v[1] {
			return fmt.Errorf("the gradient is %v for %d rows of %v", g, in[1].Elems(), v)
		}
	} else if !grad.Shape().Equal(v) {
		return fmt.Errorf("the gradient is %v for a variable of %v", grad.Shape(), v)
	}
	for i, s := range slots {
		if !s.Shape().Equal(v) {
			return fmt.Errorf("slot %d is %v for a variable of %v", i, s.Shape(), v)
		}
	}
	return wantScalar("the total", total)
}

func wantRank(t *tensor.Tensor, rank int) error {
	if len(t.Shape()) != rank {
		return fmt.Errorf("got %v, want %d dims", t.Shape(), rank)
	}
	return nil
}

func wantScalar(what string, t *tensor.Tensor) error {
	if t.Elems() != 1 {
		return fmt.Errorf("%s is %v, want a scalar", what, t.Shape())
	}
	return nil
}
