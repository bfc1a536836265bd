package native_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// opBench is one operator on inputs of these shapes.
type opBench struct {
	name string
	op   graph.Op
	attr graph.Attr
	in   [][]int
}

func opBenches() []opBench {
	flat, scalar := []int{64, 512}, []int{}
	image := []int{8, 16, 28, 28}
	half := []int{8, 16, 14, 14}
	axis := graph.Attr{Axis: 1}
	all := []opBench{
		{"", graph.Log, graph.Attr{}, [][]int{flat}},
		{"", graph.Softplus, graph.Attr{}, [][]int{flat}},
		{"", graph.LogisticLoss, graph.Attr{}, [][]int{{32768}, {32768}}},
		{"", graph.LogisticGrad, graph.Attr{}, [][]int{{32768}, {32768}, scalar}},
		{"", graph.SquaredLoss, graph.Attr{}, [][]int{{32768}, {32768}}},
		{"", graph.SquaredGrad, graph.Attr{}, [][]int{{32768}, {32768}, scalar}},
		{"10", graph.SoftmaxLoss, graph.Attr{}, [][]int{{4096, 10}, {4096}}},
		{"10", graph.SoftmaxLossGrad, graph.Attr{}, [][]int{{4096, 10}, {4096}, scalar}},
		{"last", graph.Max, axis, [][]int{flat}},
		{"last", graph.ArgMax, axis, [][]int{flat}},
		{"middle", graph.Max, axis, [][]int{{4, 64, 128}}},
		{"middle", graph.ArgMax, axis, [][]int{{4, 64, 128}}},
		{"last", graph.MaxGrad, axis, [][]int{{64}, flat}},
		{"middle", graph.MaxGrad, axis, [][]int{{4, 128}, {4, 64, 128}}},
		{"2x2", graph.MaxPool2D, graph.Attr{Window: 2, Stride: 2}, [][]int{image}},
		{"2x2", graph.AvgPool2D, graph.Attr{Window: 2, Stride: 2}, [][]int{image}},
		{"3x3", graph.MaxPool2D, graph.Attr{Window: 3, Stride: 1}, [][]int{image}},
		{"2x2", graph.MaxPool2DGrad, graph.Attr{Window: 2, Stride: 2}, [][]int{half, image}},
		{"2x2", graph.AvgPool2DGrad, graph.Attr{Window: 2, Stride: 2}, [][]int{half, image}},
		{"3x3", graph.Conv2D, graph.Attr{Stride: 1, Pad: 1}, [][]int{image, {2, 16, 3, 3}}},
		{"3x3", graph.Conv2DGradX, graph.Attr{Stride: 1, Pad: 1}, [][]int{{8, 2, 28, 28}, {2, 16, 3, 3}, image}},
		{"3x3s2", graph.Conv2D, graph.Attr{Stride: 2, Pad: 1}, [][]int{image, {2, 16, 3, 3}}},
		{"3x3s2", graph.Conv2DGradX, graph.Attr{Stride: 2, Pad: 1}, [][]int{{8, 2, 14, 14}, {2, 16, 3, 3}, image}},
		{"same", graph.Where, graph.Attr{}, [][]int{flat, flat, flat}},
		{"0.3", graph.Dropout, graph.Attr{Rate: .3, Seed: 3}, [][]int{flat, {64}}},
		{"2d", graph.Transpose, graph.Attr{Perm: []int{1, 0}}, [][]int{{256, 128}}},
		{"4d", graph.Transpose, graph.Attr{Perm: []int{0, 2, 3, 1}}, [][]int{{8, 64, 8, 8}}},
	}
	for _, op := range []graph.Op{graph.Add, graph.Sub, graph.Mul, graph.Div, graph.Maximum, graph.Minimum, graph.Less, graph.Equal} {
		all = append(all, opBench{"same", op, graph.Attr{}, [][]int{flat, flat}},
			opBench{"scalar", op, graph.Attr{}, [][]int{flat, scalar}}, opBench{"left", op, graph.Attr{}, [][]int{scalar, flat}})
	}
	for _, op := range []graph.Op{graph.Sqrt, graph.Relu, graph.Square, graph.Sum} {
		all = append(all, opBench{"", op, graph.Attr{}, [][]int{flat}})
	}
	return all
}

// BenchmarkOps times operators, in nanoseconds an element of the largest input.
func BenchmarkOps(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
		for _, c := range opBenches() {
			b.Run(fmt.Sprintf("%v/%s/%s", d, c.op, c.name), func(b *testing.B) {
				n := &graph.Node{ID: len(c.in), Name: "n", Op: c.op, DType: d, Attr: c.attr}
				if c.op == graph.ArgMax {
					n.DType = tensor.I64
				}
				seg, r := &graph.Segment{Nodes: []*graph.Node{n}, Out: []*graph.Node{n}}, rand.New(rand.NewPCG(1, 2))
				var in []*tensor.Tensor
				size := 0
				for i, shape := range c.in {
					src := &graph.Node{ID: i, Name: fmt.Sprint("in", i), Op: graph.Input, DType: d}
					if c.op == graph.Dropout && i == 1 {
						src.DType = tensor.I64
					}
					t := tensor.New(src.DType, shape...)
					for range t.Shape() {
						src.Shape = append(src.Shape, tensor.Dynamic)
					}
					n.In, in, size = append(n.In, src), append(in, t), max(size, t.Elems())
				}
				randomise(r, in)
				if loss := c.op; loss == graph.LogisticLoss || loss == graph.LogisticGrad || loss == graph.SoftmaxLoss || loss == graph.SoftmaxLossGrad {
					clear(in[1].Bytes())
				}
				seg.In = n.In
				p, err := native.New().Compile(seg)
				if err != nil {
					b.Fatal(err)
				}
				out := []*tensor.Tensor{tensor.New(n.DType, 0)}
				for b.Loop() {
					if err := p.Run(0, in, out); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/elem")
			})
		}
	}
}
