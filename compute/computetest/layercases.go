package computetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// layerCases are normalisations, convolutions, attention and interactions.
func layerCases() []opCase {
	cases := normCases()
	cases = append(cases, imageCases()...)
	cases = append(cases, attentionCases()...)
	return append(cases, interactionCases()...)
}

func normCases() []opCase {
	var cases []opCase
	for _, size := range []int{2, 11, 64} {
		name := fmt.Sprint(size)
		x := func(g gen, rows int) *tensor.Tensor {
			if size == 11 {
				return g.normal(2, rows, size)
			}
			return g.normal(rows, size)
		}
		attr := graph.Attr{Eps: 1e-2}
		// 1/sqrt(variance + eps) is at most 10, and multiplies what rounding of the
		// mean costs.
		spread := func(in []*tensor.Tensor) float64 { return 10 * (1 + maxAbs(in[0])) }
		cases = append(cases,
			opCase{
				name: name, op: graph.LayerNorm, attr: attr,
				in:  func(g gen, rows int) tensors { return tensors{x(g, rows), g.normal(size), g.normal(size)} },
				tol: of(4, func(in []*tensor.Tensor) float64 { return maxAbs(in[1])*spread(in) + maxAbs(in[2]) }),
			},
			opCase{
				name: name, op: graph.RMSNorm, attr: attr,
				in:  func(g gen, rows int) tensors { return tensors{x(g, rows), g.normal(size)} },
				tol: of(4, func(in []*tensor.Tensor) float64 { return maxAbs(in[1]) * spread(in) }),
			},
		)
		for _, layer := range []bool{true, false} {
			ofX, ofGain := graph.RMSNormGrad, graph.RMSNormGainGrad
			if layer {
				ofX, ofGain = graph.LayerNormGrad, graph.LayerNormGainGrad
			}
			cases = append(cases,
				opCase{
					name: name, op: ofX, attr: attr,
					in: func(g gen, rows int) tensors {
						v := x(g, rows)
						return tensors{v, g.normal(size), g.normal(v.Shape()...)}
					},
					tol: of(8, func(in []*tensor.Tensor) float64 {
						s := spread(in)
						return maxAbs(in[1]) * maxAbs(in[2]) * s * s
					}),
				},
				opCase{
					name: name, op: ofGain, attr: attr,
					in: func(g gen, rows int) tensors {
						v := x(g, rows)
						return tensors{v, g.normal(v.Shape()...)}
					},
					tol: of(4, func(in []*tensor.Tensor) float64 {
						return spread(in) * maxAbs(in[1]) * float64(in[0].Elems()/size)
					}),
				},
			)
		}
	}
	return cases
}

func imageCases() []opCase {
	var cases []opCase
	for _, c := range []struct{ h, w, channels, out, kh, kw, stride, pad int }{
		{5, 7, 2, 3, 3, 2, 1, 0},
		{6, 5, 1, 9, 3, 3, 2, 1},
		{4, 4, 3, 2, 1, 1, 1, 0},
		{3, 9, 2, 4, 5, 5, 3, 2},
		{8, 8, 3, 17, 3, 3, 1, 1},
	} {
		name := fmt.Sprint(c)
		attr := graph.Attr{Stride: c.stride, Pad: c.pad}
		h, w := (c.h+2*c.pad-c.kh)/c.stride+1, (c.w+2*c.pad-c.kw)/c.stride+1
		x := func(g gen, rows int) *tensor.Tensor { return g.floats(rows%13, c.channels, c.h, c.w) }
		kernel := func(g gen) *tensor.Tensor { return g.floats(c.out, c.channels, c.kh, c.kw) }
		dy := func(g gen, rows int) *tensor.Tensor { return g.floats(rows%13, c.out, h, w) }
		cases = append(cases,
			opCase{name: name, op: graph.Conv2D, attr: attr, tol: sums(elems(1)), in: func(g gen, rows int) tensors {
				return tensors{x(g, rows), kernel(g)}
			}},
			opCase{name: name, op: graph.Conv2DGradX, attr: attr, tol: sums(elems(1)), in: func(g gen, rows int) tensors {
				return tensors{dy(g, rows), kernel(g), x(g, rows)}
			}},
			opCase{name: name, op: graph.Conv2DGradW, attr: attr, tol: sums(elems(0)), in: func(g gen, rows int) tensors {
				return tensors{dy(g, rows), x(g, rows), kernel(g)}
			}},
		)
	}
	for _, c := range []struct{ h, w, window, stride int }{{4, 6, 2, 2}, {5, 7, 3, 1}, {7, 5, 2, 3}, {3, 3, 3, 3}} {
		name := fmt.Sprint(c)
		attr := graph.Attr{Window: c.window, Stride: c.stride}
		x := func(g gen, rows int) *tensor.Tensor { return g.floats(rows, 3, c.h, c.w) }
		dy := func(g gen, rows int) *tensor.Tensor {
			return g.floats(rows, 3, (c.h-c.window)/c.stride+1, (c.w-c.window)/c.stride+1)
		}
		forward := func(g gen, rows int) tensors { return tensors{x(g, rows)} }
		backward := func(g gen, rows int) tensors { return tensors{dy(g, rows), x(g, rows)} }
		n := c.window * c.window
		cases = append(cases,
			opCase{name: name, op: graph.MaxPool2D, attr: attr, in: forward, tol: exact},
			opCase{name: name, op: graph.AvgPool2D, attr: attr, in: forward, tol: sums(func(*result) int { return n })},
			opCase{name: name, op: graph.AvgPool2DGrad, attr: attr, in: backward, tol: sums(func(*result) int { return n })},
			opCase{name: name, op: graph.MaxPool2DGrad, attr: attr, in: backward, tol: of(float64(n), func(in []*tensor.Tensor) float64 {
				return float64(n) * maxAbs(in[0])
			})},
		)
	}
	return cases
}

func attentionCases() []opCase {
	var cases []opCase
	for _, c := range []struct {
		name  string
		alpha float64
		shape func(rows int) []int
	}{
		{"rows", 0, func(rows int) []int { return []int{rows, 3, 5, 4} }},
		{"positions", 0.25, func(rows int) []int { return []int{2, 1, rows, 7} }},
		{"one", 0, func(rows int) []int { return []int{1, rows, 1, 1} }},
		{"block", 0, func(rows int) []int { return []int{1, 2, rows, 32} }},
	} {
		attr := graph.Attr{Alpha: c.alpha}
		in := func(n int) func(g gen, rows int) tensors {
			return func(g gen, rows int) tensors {
				var all tensors
				for range n {
					all = append(all, g.normal(c.shape(rows)...))
				}
				return all
			}
		}
		// Scores, and so the logarithms of the weights, are off by roundings of the
		// terms they sum.
		scores := func(in []*tensor.Tensor) float64 {
			d := in[0].Shape()[3]
			return 4 + 2*compute.AttentionScale(c.alpha, d)*float64(d)*maxAbs(in[0])*maxAbs(in[1])
		}
		cases = append(cases,
			opCase{name: c.name, op: graph.CausalAttention, attr: attr, in: in(3), tol: of(2, func(in []*tensor.Tensor) float64 {
				return scores(in) * maxAbs(in[2])
			})},
			opCase{name: c.name, op: graph.CausalAttentionGrad, attr: attr, in: in(4), tol: of(2, func(in []*tensor.Tensor) float64 {
				d, s := float64(in[0].Shape()[3]), float64(in[0].Shape()[1])
				return scores(in) * maxAbs(in[3]) * s * (1 + d*maxAbs(in[2])*max(maxAbs(in[0]), maxAbs(in[1])))
			})},
		)
	}
	return cases
}

func interactionCases() []opCase {
	var cases []opCase
	for _, c := range []struct{ fields, dim int }{{2, 1}, {5, 3}, {27, 16}} {
		name := fmt.Sprint(c)
		x := func(g gen, rows int) *tensor.Tensor { return g.floats(rows, c.fields, c.dim) }
		f := float64(c.fields)
		cases = append(cases,
			opCase{
				name: name, op: graph.FMInteraction, in: func(g gen, rows int) tensors { return tensors{x(g, rows)} },
				// Rounding is relative to the square of the sum.
				tol: of(4, func(in []*tensor.Tensor) float64 { return float64(c.dim) * math.Pow(f*maxAbs(in[0]), 2) }),
			},
			opCase{
				name: name, op: graph.FMInteractionGrad, tol: of(4, func(in []*tensor.Tensor) float64 { return f * maxAbs(in[0]) * maxAbs(in[1]) }),
				in: func(g gen, rows int) tensors { return tensors{x(g, rows), g.floats(rows)} },
			},
			opCase{
				name: name, op: graph.DotInteraction, tol: sums(func(*result) int { return c.dim }),
				in: func(g gen, rows int) tensors { return tensors{x(g, rows)} },
			},
			opCase{
				name: name, op: graph.DotInteractionGrad, tol: sums(func(*result) int { return c.fields }),
				in: func(g gen, rows int) tensors {
					return tensors{x(g, rows), g.floats(rows, c.fields*(c.fields-1)/2)}
				},
			},
		)
	}
	return cases
}

// elementwiseOf allows n roundings of the result and of the inputs, element by
// element.
func elementwiseOf(n float64, inputs ...int) tolerance {
	return func(_ *testing.T, r *result) func(int) float64 {
		want := r.want.F64()
		return func(i int) float64 {
			m := math.Abs(want[i])
			for _, k := range inputs {
				m += math.Abs(r.in[k].F64()[i])
			}
			return n * m
		}
	}
}

// productOf allows n roundings of dy·(1+|x|), for inputs x and dy.
func productOf(n float64) tolerance {
	return func(_ *testing.T, r *result) func(int) float64 {
		x, dy := r.in[0].F64(), r.in[1].F64()
		return func(i int) float64 { return n * math.Abs(dy[i]) * (1 + min(9, math.Abs(x[i]))) }
	}
}

// siluOf allows n roundings of the result and, where sigmoid(x) is so small that
// an f32 has fewer digits for it, x roundings of that.
func siluOf(n float64) tolerance {
	return func(_ *testing.T, r *result) func(int) float64 {
		x, want := r.in[0].F64(), r.want.F64()
		return func(i int) float64 { return n*math.Abs(want[i]) + 2*math.Abs(x[i])*0x1p-126 }
	}
}
