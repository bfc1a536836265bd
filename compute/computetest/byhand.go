package computetest

import (
	"math"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// byHand is an operator on values whose result was worked out on paper or, for
// functions, taken from tables.
type byHand struct {
	name string
	op   graph.Op
	attr graph.Attr
	in   tensors
	want *tensor.Tensor
}

func shaped(s []int, v ...float64) *tensor.Tensor { return tensor.From(v, s...) }

func byHandCases() []byHand {
	s := func(d ...int) []int { return d }
	curve := func(op graph.Op, alpha float64, x, want []float64) byHand {
		return byHand{"", op, graph.Attr{Alpha: alpha}, tensors{values(x...)}, values(want...)}
	}
	image := shaped(s(1, 1, 3, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9)
	kernel := shaped(s(1, 1, 2, 2), 1, 0, 0, -2)
	axis1 := graph.Attr{Axis: 1}
	e := math.E
	return []byHand{
		curve(graph.Gelu, 0, []float64{1, -2, 0}, []float64{0.8413447460685429, -0.04550026389635842, 0}),
		curve(graph.Silu, 0, []float64{1, -3, 0}, []float64{0.7310585786300049, -0.14227761953270035, 0}),
		curve(graph.Softplus, 0, []float64{0, -20, 30}, []float64{0.6931471805599453, 2.061153620314381e-09, 30.000000000000094}),
		curve(graph.LeakyRelu, .5, []float64{3, -3}, []float64{3, -1.5}),
		curve(graph.Sqrt, 0, []float64{9, 0, .25}, []float64{3, 0, .5}),
		curve(graph.Rsqrt, 0, []float64{4, .25}, []float64{.5, 2}),
		{"", graph.Div, graph.Attr{}, tensors{values(1, 3), shaped(s(2, 1), 2, 4)}, shaped(s(2, 2), .5, 1.5, .25, .75)},
		{"", graph.Minimum, graph.Attr{}, tensors{values(1, 3), values(2)}, values(1, 2)},
		{"", graph.LessEqual, graph.Attr{}, tensors{values(1, 2, 3), values(2)}, values(1, 1, 0)},
		{"", graph.Less, graph.Attr{}, tensors{values(1, 2, 3), values(2)}, values(1, 0, 0)},
		{"", graph.Equal, graph.Attr{}, tensors{values(1, 2, 3), values(2)}, values(0, 1, 0)},
		{"", graph.Where, graph.Attr{}, tensors{values(0, 2, -1), values(7, 8, 9), values(5)}, values(5, 8, 9)},
		{"", graph.ArgMax, axis1, tensors{shaped(s(2, 3), 1, 5, 5, 9, 2, 9)}, ints(1, 0)},
		{"nan", graph.ArgMax, axis1, tensors{shaped(s(1, 3), 1, math.NaN(), 5)}, ints(1)},
		{"", graph.Max, axis1, tensors{shaped(s(2, 3), 1, 5, 5, -9, -2, -9)}, values(5, -2)},
		{"", graph.MaxGrad, axis1, tensors{values(3, 4), shaped(s(2, 3), 1, 5, 5, 9, 2, 9)}, shaped(s(2, 3), 0, 3, 0, 4, 0, 0)},
		{"first", graph.Mean, graph.Attr{Axis: 0}, tensors{shaped(s(2, 2), 1, 2, 3, 6)}, values(2, 4)},
		{"nothing", graph.Mean, graph.Attr{Axis: 0}, tensors{zeros(0, 2)}, values(0, 0)},
		{"nothing", graph.Max, graph.Attr{Axis: 0}, tensors{zeros(0, 1)}, values(math.Inf(-1))},
		{"middle", graph.SumAxis, graph.Attr{Axis: 1, KeepDims: true}, tensors{shaped(s(1, 2, 2), 1, 2, 3, 6)}, shaped(s(1, 1, 2), 4, 8)},
		{"", graph.Transpose, graph.Attr{Perm: []int{2, 0, 1}}, tensors{shaped(s(1, 2, 3), 1, 2, 3, 4, 5, 6)}, shaped(s(3, 1, 2), 1, 4, 2, 5, 3, 6)},
		{"batched", graph.MatMul, graph.Attr{TransB: true}, tensors{shaped(s(2, 1, 2), 1, 2, 3, 4), shaped(s(2, 1, 2), 5, 6, 7, 8)}, shaped(s(2, 1, 1), 17, 53)},
		{"shared", graph.MatMul, graph.Attr{TransA: true}, tensors{shaped(s(2, 2, 1), 1, 2, 3, 4), shaped(s(2, 1), 5, 6)}, shaped(s(2, 1, 1), 17, 39)},
		{"", graph.LayerNorm, graph.Attr{Eps: 1}, tensors{values(1, 2, 1+2*math.Sqrt(3)), values(1, 1, 1), values(0, 0, 0)}, nil},
		{"", graph.RMSNorm, graph.Attr{Eps: 1}, tensors{values(4, math.Sqrt(14)), values(1, 2)}, values(1, math.Sqrt(14)/2)},
		{"", graph.Conv2D, graph.Attr{Stride: 1}, tensors{image, kernel}, shaped(s(1, 1, 2, 2), -9, -10, -12, -13)},
		{"pad", graph.Conv2D, graph.Attr{Stride: 3, Pad: 1}, tensors{image, kernel}, shaped(s(1, 1, 2, 2), -2, 0, 0, 9)},
		{"", graph.MaxPool2D, graph.Attr{Window: 2, Stride: 1}, tensors{image}, shaped(s(1, 1, 2, 2), 5, 6, 8, 9)},
		{"", graph.AvgPool2D, graph.Attr{Window: 2, Stride: 1}, tensors{image}, shaped(s(1, 1, 2, 2), 3, 4, 6, 7)},
		{"", graph.MaxPool2DGrad, graph.Attr{Window: 2, Stride: 1}, tensors{shaped(s(1, 1, 2, 2), 1, 2, 3, 4), zeros(1, 1, 3, 3)}, shaped(s(1, 1, 3, 3), 1, 2, 0, 3, 4, 0, 0, 0, 0)},
		// The second position weighs the two by 1 and e.
		{"", graph.CausalAttention, graph.Attr{Alpha: .5}, tensors{shaped(s(1, 2, 1, 1), 9, 2), shaped(s(1, 2, 1, 1), 0, 1), shaped(s(1, 2, 1, 1), 3, 5)}, shaped(s(1, 2, 1, 1), 3, (3+5*e)/(1+e))},
		// Of two heads the second has keys of 0, which weigh all alike.
		{"heads", graph.CausalAttention, graph.Attr{Alpha: .5}, tensors{shaped(s(1, 2, 2, 1), 9, 9, 2, 2), shaped(s(1, 2, 2, 1), 0, 0, 1, 0), shaped(s(1, 2, 2, 1), 3, 3, 5, 5)}, shaped(s(1, 2, 2, 1), 3, 3, (3+5*e)/(1+e), 4)},
		{"", graph.FMInteraction, graph.Attr{}, tensors{shaped(s(1, 3, 2), 1, 2, 3, 4, 5, 6)}, values(11 + 17 + 39)},
		{"", graph.DotInteraction, graph.Attr{}, tensors{shaped(s(1, 3, 2), 1, 2, 3, 4, 5, 6)}, shaped(s(1, 3), 11, 17, 39)},
		{"mean", graph.Bag, graph.Attr{Mean: true}, tensors{shaped(s(2, 1), 1, 10), ints(0, 1, 1), ints(0, 0, 3), values(1, 2, 3)}, shaped(s(2, 1), 0, 17)},
		{"", graph.Float, graph.Attr{}, tensors{ints(-3, 1<<20)}, values(-3, 1<<20)},
	}
}

// computedByHand compares with what was worked out without a program.
func computedByHand(t *testing.T, b compute.Backend, d tensor.DType) {
	for _, c := range byHandCases() {
		t.Run(string(c.op)+"/"+c.name, func(t *testing.T) {
			if c.want == nil { // layernorm: the mean is m, the variance v
				x := c.in[0].F64()
				m := (x[0] + x[1] + x[2]) / 3
				v := ((x[0]-m)*(x[0]-m) + (x[1]-m)*(x[1]-m) + (x[2]-m)*(x[2]-m)) / 3
				n := math.Sqrt(v + 1)
				c.want = values((x[0]-m)/n, (x[1]-m)/n, (x[2]-m)/n)
			}
			seg := segmentOf(c.op, c.attr, d, c.in)
			out := tensors{dirty(seg.Out[0].DType)}
			if err := compile(t, b, seg).Run(0, convertAll(c.in, d), out); err != nil {
				t.Fatal(err)
			}
			compare(t, out[0], c.want, func(i int) float64 { return 4 * (.1 + math.Abs(c.want.F64()[i])) })
		})
	}
}
