package native_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/compute/ref"
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

// segmentOf makes a segment of one operator on inputs of wholly dynamic shape.
func segmentOf(c opBench, d tensor.DType) (seg *graph.Segment, in []*tensor.Tensor) {
	n := &graph.Node{ID: len(c.in), Name: "n", Op: c.op, DType: d, Attr: c.attr}
	if c.op == graph.ArgMax {
		n.DType = tensor.I64
	}
	for i, shape := range c.in {
		src := &graph.Node{ID: i, Name: fmt.Sprint("in", i), Op: graph.Input, DType: d}
		if c.op == graph.Dropout && i == 1 {
			src.DType = tensor.I64
		}
		for range shape {
			src.Shape = append(src.Shape, tensor.Dynamic)
		}
		n.In, in = append(n.In, src), append(in, tensor.New(src.DType, shape...))
	}
	return &graph.Segment{Nodes: []*graph.Node{n}, In: n.In, Out: []*graph.Node{n}}, in
}

// randomCases are operators that move and choose, at sizes that blocks and
// vectors cut, with paddings wider than images, strides and windows.
func randomCases(r *rand.Rand) []opBench {
	n := func(most int) int { return 1 + r.IntN(most) }
	pick := func(sizes ...int) int { return sizes[r.IntN(len(sizes))] }
	batch, chans, high, wide, filters := n(3), n(3), n(9), n(20), n(3)
	image := []int{batch, chans, high, wide}
	pad, stride := r.IntN(3), n(3)
	kh, kw := 1+r.IntN(min(5, high+2*pad)), 1+r.IntN(min(5, wide+2*pad))
	conv := graph.Attr{Stride: stride, Pad: pad}
	weights, result := []int{filters, chans, kh, kw}, []int{batch, filters, (high+2*pad-kh)/stride + 1, (wide+2*pad-kw)/stride + 1}
	window := 1 + r.IntN(min(4, high, wide))
	pool := graph.Attr{Window: window, Stride: stride}
	pooled := []int{batch, chans, (high-window)/stride + 1, (wide-window)/stride + 1}
	x := []int{n(2), pick(1, 3, 17, 70), pick(1, 2, 9), pick(1, 5, 8, 1100)}
	axis := graph.Attr{Axis: r.IntN(4), KeepDims: true}
	along := append([]int{}, x...)
	along[axis.Axis] = 1
	return []opBench{
		{"", graph.Conv2D, conv, [][]int{image, weights}},
		{"", graph.Conv2DGradX, conv, [][]int{result, weights, image}},
		{"", graph.Conv2DGradW, conv, [][]int{result, image, weights}},
		{"", graph.MaxPool2D, pool, [][]int{image}},
		{"", graph.AvgPool2D, pool, [][]int{image}},
		{"", graph.MaxPool2DGrad, pool, [][]int{pooled, image}},
		{"", graph.AvgPool2DGrad, pool, [][]int{pooled, image}},
		{"", graph.Max, axis, [][]int{x}},
		{"", graph.ArgMax, axis, [][]int{x}},
		{"", graph.MaxGrad, axis, [][]int{along, x}},
		{"", graph.Transpose, graph.Attr{Perm: r.Perm(4)}, [][]int{x}},
		{"", graph.Dropout, graph.Attr{Rate: .4, Seed: 5}, [][]int{x, {x[0]}}},
	}
}

// TestRandomShapesAreWhatRefComputes compares with ref, on whole numbers and NaN,
// so that sums are exact and equals meet, with and without the assembly.
func TestRandomShapesAreWhatRefComputes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	backends := []compute.Backend{ref.New(), native.New(native.Threads(2)), native.New(native.Fallback())}
	for trial := range 60 {
		for _, c := range randomCases(r) {
			d := []tensor.DType{tensor.F32, tensor.F64}[trial%2]
			seg, in := segmentOf(c, d)
			randomise(r, in)
			choice := c.op == graph.Max || c.op == graph.ArgMax || c.op == graph.MaxPool2D || c.op == graph.Transpose
			for _, x := range in {
				for i := range x.Elems() {
					v := float64(r.IntN(9) - 4)
					if choice && r.IntN(60) == 0 {
						v = math.NaN()
					}
					switch x.DType() {
					case tensor.F32:
						x.F32()[i] = float32(v)
					case tensor.F64:
						x.F64()[i] = v
					case tensor.I32, tensor.I64, tensor.BF16, tensor.F16, tensor.Invalid:
					}
				}
			}
			var want []float64
			for k, b := range backends {
				p, err := b.Compile(seg)
				if err != nil {
					t.Fatal(err)
				}
				out := []*tensor.Tensor{tensor.New(seg.Out[0].DType, 0)}
				if err := p.Run(3, in, out); err != nil {
					t.Fatal(err)
				}
				got := numbers(out[0])
				if k == 0 {
					want = got
				}
				for i, v := range got {
					if w := want[i]; !(math.Abs(v-w) <= 1e-6*math.Abs(w)) && (v == v || w == w) {
						t.Fatalf("%v %s %+v of %v, backend %d: element %d is %v, want %v", d, c.op, c.attr, c.in, k, i, v, w)
					}
				}
			}
		}
	}
}

// TestNumbersOfElementsAreExact refuses to number more elements of a column than
// float32 can, and only those. The tensors are empty.
func TestNumbersOfElementsAreExact(t *testing.T) {
	for _, c := range []struct {
		d     tensor.DType
		shape []int
		ok    bool
	}{
		{tensor.F32, []int{0, 1 << 24, 2}, true},
		{tensor.F32, []int{0, 1<<24 + 1, 2}, false},
		{tensor.F32, []int{0, 1<<24 + 1, 1}, true},
		{tensor.F64, []int{0, 1<<24 + 1, 2}, true},
	} {
		seg, in := segmentOf(opBench{"", graph.ArgMax, graph.Attr{Axis: 1}, [][]int{c.shape}}, c.d)
		p, err := native.New().Compile(seg)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Run(0, in, []*tensor.Tensor{tensor.New(tensor.I64, 0)}); (err == nil) != c.ok {
			t.Errorf("%v %v: error is %v", c.d, c.shape, err)
		} else if err != nil && !strings.Contains(err.Error(), "transpose") {
			t.Errorf("the error does not say what to do: %v", err)
		}
	}
}

func numbers(x *tensor.Tensor) []float64 {
	out := make([]float64, x.Elems())
	for i := range out {
		switch x.DType() {
		case tensor.F32:
			out[i] = float64(x.F32()[i])
		case tensor.F64:
			out[i] = x.F64()[i]
		case tensor.I32, tensor.I64, tensor.BF16, tensor.F16, tensor.Invalid:
			out[i] = float64(x.I64()[i])
		}
	}
	return out
}

// BenchmarkOps times operators, in nanoseconds an element of the largest input.
func BenchmarkOps(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
		for _, c := range opBenches() {
			b.Run(fmt.Sprintf("%v/%s/%s", d, c.op, c.name), func(b *testing.B) {
				seg, in := segmentOf(c, d)
				randomise(rand.New(rand.NewPCG(1, 2)), in)
				size := 0
				for _, x := range in {
					size = max(size, x.Elems())
				}
				switch c.op {
				case graph.LogisticLoss, graph.LogisticGrad, graph.SoftmaxLoss, graph.SoftmaxLossGrad:
					clear(in[1].Bytes())
				default:
				}
				p, err := native.New().Compile(seg)
				if err != nil {
					b.Fatal(err)
				}
				out := []*tensor.Tensor{tensor.New(seg.Out[0].DType, 0)}
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
