package computetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// opCase is one operator with one setting. in makes its inputs for a number of
// rows, which may be 0.
type opCase struct {
	name string
	op   graph.Op
	attr graph.Attr
	in   func(g gen, rows int) []*tensor.Tensor
	tol  tolerance
}

type tensors = []*tensor.Tensor

// sizes are the rows a case runs on, in this order, with one program: sizes
// shrink and grow again, and include none, one and more than a block of native.
func sizes() []int { return []int{7, 1, 0, 33, 2, 130, 5} }

func allCases() []opCase {
	cases := matMulCases()
	cases = append(cases, broadcastCases()...)
	cases = append(cases, elementCases()...)
	cases = append(cases, moveCases()...)
	cases = append(cases, reduceCases()...)
	cases = append(cases, rowCases()...)
	cases = append(cases, lossCases()...)
	for _, more := range []func() []opCase{
		batchedCases, choiceCases, axisCases, orderCases, curveCases, dropoutCases, meanBagCases, layerCases,
	} {
		cases = append(cases, more()...)
	}
	return cases
}

func matMulCases() []opCase {
	var cases []opCase
	add := func(name string, ta, tb bool, dims func(rows int) (m, k, n int)) {
		cases = append(cases, opCase{
			name: fmt.Sprintf("%s/%t/%t", name, ta, tb), op: graph.MatMul, attr: graph.Attr{TransA: ta, TransB: tb},
			in: func(g gen, rows int) tensors {
				m, k, n := dims(rows)
				a, b := []int{m, k}, []int{k, n}
				if ta {
					a = []int{k, m}
				}
				if tb {
					b = []int{n, k}
				}
				return tensors{g.floats(a...), g.floats(b...)}
			},
			tol: sums(func(r *result) int {
				k := r.in[0].Shape()[1]
				if ta {
					k = r.in[0].Shape()[0]
				}
				return k
			}),
		})
	}
	for _, ta := range []bool{false, true} {
		for _, tb := range []bool{false, true} {
			add("rows", ta, tb, func(rows int) (int, int, int) { return rows, rows/2 + 3, 2*rows + 1 })
			add("inner", ta, tb, func(rows int) (int, int, int) { return 3, rows, 5 })
			add("thin", ta, tb, func(rows int) (int, int, int) { return rows, 19, 1 })
			// More than one block of native in the inner and the outer dim; once,
			// since ref takes its time.
			add("blocks", ta, tb, func(rows int) (int, int, int) {
				if rows != 2 {
					return rows % 4, 9, 7
				}
				return rows, 1030, 1027
			})
		}
	}
	return cases
}

func broadcastCases() []opCase {
	type form struct {
		name string
		a, b func(rows int) []int
	}
	shape := func(s ...int) func(int) []int { // -1 stands for the rows
		return func(rows int) []int {
			out := []int{}
			for _, d := range s {
				if d < 0 {
					d = rows
				}
				out = append(out, d)
			}
			return out
		}
	}
	forms := []form{
		{"same", shape(-1, 5), shape(-1, 5)},
		{"row", shape(-1, 5), shape(5)},
		{"row2", shape(-1, 5), shape(1, 5)},
		{"column", shape(-1, 5), shape(-1, 1)},
		{"scalar", shape(-1, 5), shape()},
		{"one", shape(-1), shape(1)},
		{"scalars", shape(), shape()},
		{"middle", shape(2, -1, 3), shape(2, 1, 3)},
		{"outer", shape(2, -1, 3), shape(-1, 1)},
		{"ends", shape(2, -1, 3, 2), shape(-1, 1, 2)},
		{"ones", shape(1, -1, 1), shape(1, 1)},
	}
	var cases []opCase
	for _, f := range forms {
		in := func(g gen, rows int) tensors { return tensors{g.floats(f.a(rows)...), g.floats(f.b(rows)...)} }
		for _, op := range []graph.Op{graph.Add, graph.Sub, graph.Mul} {
			cases = append(cases, opCase{name: f.name, op: op, in: in, tol: ulps(1)})
		}
		cases = append(cases, opCase{name: f.name, op: graph.Unbroadcast, in: in, tol: sums(elems(0))})
	}
	return cases
}

func elementCases() []opCase {
	one := func(op graph.Op, tol tolerance) opCase {
		return opCase{op: op, in: func(g gen, rows int) tensors { return tensors{g.wild(rows, 9)} }, tol: tol}
	}
	two := func(op graph.Op, value func(g gen, shape ...int) *tensor.Tensor, tol tolerance) opCase {
		return opCase{op: op, tol: tol, in: func(g gen, rows int) tensors {
			return tensors{value(g, rows, 3), g.floats(rows, 3)}
		}}
	}
	scale := one(graph.Scale, ulps(1))
	scale.attr.Alpha = -2.5
	log := one(graph.Log, ulps(1))
	log.in = func(g gen, rows int) tensors { return tensors{g.positive(rows, 4)} }
	return []opCase{
		scale, log,
		one(graph.Relu, exact), one(graph.Sigmoid, ulps(2)), one(graph.Tanh, ulps(2)),
		one(graph.Exp, ulps(1)), one(graph.Square, ulps(1)),
		two(graph.ReluGrad, gen.floats, exact),
		two(graph.SigmoidGrad, gen.unit, ulps(3)),
		// 1 - y² loses digits near |y| = 1: relative to the 1.
		two(graph.TanhGrad, gen.unit, of(2, func(in []*tensor.Tensor) float64 { return maxAbs(in[1]) })),
		two(graph.LogGrad, gen.positive, ulps(1)),
		two(graph.SquareGrad, gen.floats, ulps(2)),
	}
}

func moveCases() []opCase {
	two := func(g gen, rows int) tensors { return tensors{g.floats(rows, 6), g.floats(rows, 3, 2)} }
	return []opCase{
		{
			op: graph.Const, attr: graph.Attr{Value: 0.5, Shape: tensor.Shape{2, 3}}, tol: exact,
			in: func(gen, int) tensors { return nil },
		},
		{op: graph.FillLike, tol: exact, in: func(g gen, rows int) tensors { return tensors{g.floats(), g.floats(rows, 3)} }},
		{op: graph.SpreadRows, tol: exact, in: func(g gen, rows int) tensors { return tensors{g.floats(rows), g.floats(rows, 3)} }},
		{op: graph.ReshapeLike, tol: exact, in: two},
		{
			name: "inferred", op: graph.Reshape, attr: graph.Attr{Shape: tensor.Shape{3, tensor.Dynamic, 2}}, tol: exact,
			in: func(g gen, rows int) tensors { return tensors{g.floats(rows, 6)} },
		},
		{
			name: "static", op: graph.Reshape, attr: graph.Attr{Shape: tensor.Shape{6}}, tol: exact,
			in: func(g gen, _ int) tensors { return tensors{g.floats(2, 3)} },
		},
		{op: graph.Concat, attr: graph.Attr{Axis: 1}, tol: exact, in: func(g gen, rows int) tensors {
			return tensors{g.floats(rows, 3), g.floats(rows, 1), g.floats(rows, 4)}
		}},
		{
			name: "alone", op: graph.Concat, attr: graph.Attr{Axis: 1}, tol: exact,
			in: func(g gen, rows int) tensors { return tensors{g.floats(rows, 3)} },
		},
		{
			op: graph.Slice, attr: graph.Attr{Axis: 1, Start: 2, End: 5}, tol: exact,
			in: func(g gen, rows int) tensors { return tensors{g.floats(rows, 7)} },
		},
		{
			op: graph.PadSlice, attr: graph.Attr{Axis: 1, Start: 2, End: 5}, tol: exact,
			in: func(g gen, rows int) tensors { return tensors{g.floats(rows, 3), g.floats(rows, 7)} },
		},
	}
}

func reduceCases() []opCase {
	row := func(g gen, rows int) tensors { return tensors{g.floats(rows, 11)} }
	return []opCase{
		{op: graph.Sum, in: row, tol: sums(func(*result) int { return 0 })},
		{op: graph.SumRows, in: row, tol: sums(func(*result) int { return 0 })},
		{op: graph.Count, in: row, tol: exact},
		{name: "ids", op: graph.Count, tol: exact, in: func(g gen, rows int) tensors { return tensors{g.ids(rows, 9)} }},
		// The argument of the exponential has one rounding of max|z|.
		{op: graph.Softmax, in: row, tol: func(_ *testing.T, r *result) func(int) float64 {
			z, w := 2*maxAbs(r.in[0]), r.want.F64()
			return func(i int) float64 { return (4 + z) * math.Abs(w[i]) }
		}},
		{
			op: graph.SoftmaxGrad, tol: of(3, func(in []*tensor.Tensor) float64 { return 12 * maxAbs(in[1]) }),
			in: func(g gen, rows int) tensors { return tensors{g.unit(rows, 11), g.floats(rows, 11)} },
		},
	}
}

func rowCases() []opCase {
	var cases []opCase
	for _, dim := range []int{1, 5} {
		name := fmt.Sprintf("dim%d", dim)
		cases = append(cases,
			opCase{name: name, op: graph.GatherRows, tol: exact, in: func(g gen, rows int) tensors {
				return tensors{g.floats(rows, dim), g.keys(rows)}
			}},
			opCase{name: name, op: graph.Gather, tol: exact, in: func(g gen, rows int) tensors {
				return tensors{g.floats(9, dim), g.ids(rows, 9)}
			}},
			opCase{name: name, op: graph.GatherGrad, tol: sums(elems(1)), in: func(g gen, rows int) tensors {
				return tensors{g.floats(rows, dim), g.ids(rows, 9), g.floats(9, dim)}
			}},
			opCase{name: name, op: graph.Bag, tol: sums(elems(1)), in: func(g gen, rows int) tensors {
				ids, offsets, weights := g.ragged(rows, rows/2+1)
				return tensors{g.floats(rows/2+1, dim), ids, offsets, weights}
			}},
			opCase{name: name, op: graph.BagGrad, tol: sums(elems(1)), in: func(g gen, rows int) tensors {
				ids, offsets, weights := g.ragged(rows, rows/2+1)
				return tensors{g.floats(rows, dim), ids, offsets, weights, g.floats(rows/2+1, dim)}
			}},
		)
	}
	return cases
}

func lossCases() []opCase {
	var cases []opCase
	for _, column := range []bool{false, true} {
		point := func(rows int) []int {
			if column {
				return []int{rows, 1}
			}
			return []int{rows}
		}
		loss := func(g gen, rows int) tensors { return tensors{g.floats(point(rows)...), g.unit(rows)} }
		grad := func(g gen, rows int) tensors { return append(loss(g, rows), g.floats()) }
		name := fmt.Sprintf("column=%t", column)
		cases = append(cases,
			opCase{name: name, op: graph.LogisticLoss, in: loss, tol: of(2, func(in []*tensor.Tensor) float64 {
				return 2*sumAbs(in[0]) + float64(in[0].Elems())
			})},
			opCase{name: name, op: graph.SquaredLoss, in: loss, tol: ulps(2)},
			opCase{name: name, op: graph.LogisticGrad, in: grad, tol: of(2, func(in []*tensor.Tensor) float64 { return 2 * maxAbs(in[2]) })},
			opCase{name: name, op: graph.SquaredGrad, in: grad, tol: of(2, func(in []*tensor.Tensor) float64 {
				return (maxAbs(in[0]) + 1) * maxAbs(in[2])
			})},
		)
	}
	classes := func(g gen, rows int) tensors { return tensors{g.floats(rows, 10), g.classes(rows, 10)} }
	return append(cases,
		opCase{op: graph.SoftmaxLoss, in: classes, tol: of(2, func(in []*tensor.Tensor) float64 {
			return float64(in[1].Elems()) * (2*maxAbs(in[0]) + math.Log(10))
		})},
		opCase{
			op: graph.SoftmaxLossGrad, in: func(g gen, rows int) tensors { return append(classes(g, rows), g.floats()) },
			tol: of(2, func(in []*tensor.Tensor) float64 { return maxAbs(in[2]) * (2*maxAbs(in[0]) + 4) }),
		},
	)
}
