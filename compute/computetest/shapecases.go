package computetest

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// batchedCases are products of more than two dims.
func batchedCases() []opCase {
	var cases []opCase
	for _, shared := range []bool{false, true} {
		for _, t := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			cases = append(cases, opCase{
				name: fmt.Sprintf("batched/shared=%t/%t/%t", shared, t[0], t[1]), op: graph.MatMul,
				attr: graph.Attr{TransA: t[0], TransB: t[1]},
				in: func(g gen, rows int) tensors {
					a, b := []int{2, rows, 5, 7}, []int{2, rows, 7, 3}
					if t[0] {
						a = []int{2, rows, 7, 5}
					}
					if t[1] {
						b = []int{2, rows, 3, 7}
					}
					if shared {
						b = b[2:]
					}
					return tensors{g.floats(a...), g.floats(b...)}
				},
				tol: sums(func(*result) int { return 7 }),
			})
		}
	}
	return append(cases, opCase{
		name: "batched/rows", op: graph.MatMul, tol: sums(func(*result) int { return 4 }),
		in: func(g gen, rows int) tensors { return tensors{g.floats(3, rows, 4), g.floats(3, 4, rows)} },
	})
}

// choiceCases are Div, comparisons and choices, broadcast both ways.
func choiceCases() []opCase {
	var cases []opCase
	for name, f := range map[string]func(rows int) (a, b []int){
		"same":  func(rows int) (a, b []int) { return []int{rows, 5}, []int{rows, 5} },
		"row":   func(rows int) (a, b []int) { return []int{rows, 5}, []int{5} },
		"first": func(rows int) (a, b []int) { return []int{5}, []int{rows, 5} },
		"both":  func(rows int) (a, b []int) { return []int{rows, 1}, []int{5} },
		"inner": func(rows int) (a, b []int) { return []int{rows, 1, 3}, []int{rows, 4, 1} },
		"outer": func(rows int) (a, b []int) { return []int{}, []int{2, rows, 1} },
	} {
		in := func(g gen, rows int) tensors {
			a, b := f(rows)
			return tensors{g.floats(a...), g.floats(b...)}
		}
		for _, op := range []graph.Op{graph.Add, graph.Sub, graph.Mul, graph.Div, graph.Maximum, graph.Minimum, graph.Less, graph.LessEqual, graph.Equal} {
			c := opCase{name: "ways/" + name, op: op, in: in, tol: ulps(1)}
			if op != graph.Add && op != graph.Sub && op != graph.Mul && op != graph.Div {
				c.tol = exact
			}
			cases = append(cases, c)
		}
		cases = append(cases, opCase{name: name, op: graph.Where, tol: exact, in: func(g gen, rows int) tensors {
			a, b := f(rows)
			return tensors{g.floats(b...), g.floats(a...), g.floats(b...)}
		}}, opCase{name: name + "/condition", op: graph.Where, tol: exact, in: func(g gen, rows int) tensors {
			a, b := f(rows)
			return tensors{g.floats(a...), g.floats(b...), g.floats()}
		}})
	}
	wild := func(g gen, rows int) tensors { return tensors{g.wild(rows, 9), g.wild(rows, 9)} }
	for _, op := range []graph.Op{graph.Div, graph.Maximum, graph.Minimum, graph.Less, graph.LessEqual, graph.Equal} {
		cases = append(cases, opCase{name: "wild", op: op, in: wild, tol: ulps(1)})
	}
	return cases
}

func axisCases() []opCase {
	var cases []opCase
	none := func(*result) int { return 0 }
	for axis := range 3 {
		for _, keep := range []bool{false, true} {
			name := fmt.Sprintf("axis%d/%t", axis, keep)
			attr := graph.Attr{Axis: axis, KeepDims: keep}
			one := func(g gen, rows int) tensors { return tensors{g.floats(3, rows, 4)} }
			two := func(g gen, rows int) tensors {
				s := []int{3, rows, 4}
				dy := append(append([]int{}, s[:axis]...), s[axis+1:]...)
				if keep {
					dy = append([]int{}, s...)
					dy[axis] = 1
				}
				return tensors{g.floats(dy...), g.floats(s...)}
			}
			cases = append(cases,
				opCase{name: name, op: graph.SumAxis, attr: attr, in: one, tol: sums(none)},
				opCase{name: name, op: graph.Mean, attr: attr, in: one, tol: sums(none)},
				opCase{name: name, op: graph.Max, attr: attr, in: one, tol: exact},
				opCase{name: name, op: graph.ArgMax, attr: attr, in: one, tol: exact},
				opCase{name: name, op: graph.SpreadAxis, attr: attr, in: two, tol: exact},
				opCase{name: name, op: graph.MeanGrad, attr: attr, in: two, tol: ulps(2)},
				opCase{name: name, op: graph.MaxGrad, attr: attr, in: two, tol: exact},
			)
		}
	}
	wild := func(g gen, rows int) tensors { return tensors{g.wild(rows, 6)} }
	for _, op := range []graph.Op{graph.Max, graph.ArgMax} {
		cases = append(cases, opCase{name: "wild", op: op, attr: graph.Attr{Axis: 1}, in: wild, tol: exact})
	}
	row := func(shape func(rows int) []int) func(g gen, rows int) tensors {
		return func(g gen, rows int) tensors { return tensors{g.floats(shape(rows)...)} }
	}
	softmax := func(_ gen, _ int) tolerance {
		return of(4, func(in []*tensor.Tensor) float64 { return 1 + 2*maxAbs(in[0]) })
	}(gen{}, 0)
	return append(cases,
		opCase{name: "dims3", op: graph.Softmax, tol: softmax, in: row(func(rows int) []int { return []int{2, rows, 5} })},
		opCase{name: "vector", op: graph.Softmax, tol: softmax, in: row(func(int) []int { return []int{6} })},
		opCase{
			name: "dims3", op: graph.SoftmaxGrad, tol: of(3, func(in []*tensor.Tensor) float64 { return 6 * maxAbs(in[1]) }),
			in: func(g gen, rows int) tensors { return tensors{g.unit(2, rows, 5), g.floats(2, rows, 5)} },
		},
	)
}

func orderCases() []opCase {
	var cases []opCase
	for _, perm := range [][]int{{1, 0}, {0, 1}, {2, 0, 1}, {0, 2, 1}, {0, 2, 1, 3}, {3, 1, 2, 0}} {
		cases = append(cases, opCase{
			name: fmt.Sprint(perm), op: graph.Transpose, attr: graph.Attr{Perm: perm}, tol: exact,
			in: func(g gen, rows int) tensors { return tensors{g.floats([]int{rows, 5, 3, 4}[:len(perm)]...)} },
		})
	}
	for axis := range 3 {
		name := fmt.Sprintf("axis%d", axis)
		shape := func(rows, n int) []int {
			s := []int{rows, rows, rows}
			s[axis] = n
			s[(axis+1)%3] = 2
			return s
		}
		cut := graph.Attr{Axis: axis, Start: 1, End: 4}
		cases = append(cases,
			opCase{name: name, op: graph.Concat, attr: graph.Attr{Axis: axis}, tol: exact, in: func(g gen, rows int) tensors {
				return tensors{g.floats(shape(rows, 2)...), g.floats(shape(rows, rows)...), g.floats(shape(rows, 1)...)}
			}},
			opCase{name: name, op: graph.Slice, attr: cut, tol: exact, in: func(g gen, rows int) tensors {
				return tensors{g.floats(shape(rows, 6)...)}
			}},
			opCase{name: name, op: graph.PadSlice, attr: cut, tol: exact, in: func(g gen, rows int) tensors {
				return tensors{g.floats(shape(rows, 3)...), g.floats(shape(rows, 6)...)}
			}},
		)
	}
	return append(cases, opCase{op: graph.Float, tol: exact, in: func(g gen, rows int) tensors { return tensors{g.ids(rows, 1000)} }})
}

// curveCases are element-wise functions and their gradients.
func curveCases() []opCase {
	one := func(op graph.Op, alpha float64, value func(g gen, shape ...int) *tensor.Tensor, tol tolerance) opCase {
		return opCase{op: op, attr: graph.Attr{Alpha: alpha}, tol: tol, in: func(g gen, rows int) tensors {
			return tensors{value(g, rows, 13)}
		}}
	}
	two := func(op graph.Op, alpha float64, tol tolerance) opCase {
		return opCase{op: op, attr: graph.Attr{Alpha: alpha}, tol: tol, in: func(g gen, rows int) tensors {
			return tensors{g.finite(rows, 7), g.floats(rows, 7)}
		}}
	}
	return []opCase{
		one(graph.Sqrt, 0, gen.wild, ulps(1)), one(graph.Rsqrt, 0, gen.wild, ulps(2)),
		one(graph.LeakyRelu, 0.25, gen.wild, ulps(1)), one(graph.LeakyRelu, -0.5, gen.floats, ulps(1)),
		// 1 + erf(x) loses digits far below 0: relative to x.
		one(graph.Gelu, 0, gen.finite, elementwiseOf(3, 0)),
		one(graph.Silu, 0, gen.finite, siluOf(4)), one(graph.Softplus, 0, gen.finite, ulps(4)),
		two(graph.LeakyReluGrad, 0.25, ulps(1)),
		two(graph.GeluGrad, 0, productOf(6)), two(graph.SiluGrad, 0, productOf(6)),
	}
}

func dropoutCases() []opCase {
	var cases []opCase
	for _, rate := range []float64{0.5, 0.3, 0.875} {
		for _, perRow := range []int{1, 2} {
			cases = append(cases, opCase{
				name: fmt.Sprintf("%v/%d", rate, perRow), op: graph.Dropout, tol: ulps(2),
				attr: graph.Attr{Rate: rate, Seed: 7},
				in: func(g gen, rows int) tensors {
					return tensors{g.floats(rows*perRow, 11, 3), g.ids(rows, 1<<20)}
				},
			})
		}
	}
	return cases
}

func meanBagCases() []opCase {
	attr := graph.Attr{Mean: true}
	return []opCase{
		{name: "mean", op: graph.Bag, attr: attr, tol: sums(elems(1)), in: func(g gen, rows int) tensors {
			ids, offsets, weights := g.ragged(rows, rows/2+1)
			return tensors{g.floats(rows/2+1, 5), ids, offsets, weights}
		}},
		{name: "mean", op: graph.BagGrad, attr: attr, tol: sums(elems(1)), in: func(g gen, rows int) tensors {
			ids, offsets, weights := g.ragged(rows, rows/2+1)
			return tensors{g.floats(rows, 5), ids, offsets, weights, g.floats(rows/2+1, 5)}
		}},
	}
}
