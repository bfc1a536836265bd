package native_test

import (
	"fmt"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// whole compiles all nodes of a graph as one segment.
func whole(b testing.TB, g *graph.Graph, options []native.Option, out ...*graph.Node) (p compute.Program, in, res []*tensor.Tensor) {
	b.Helper()
	return wholeOf(b, g, options, 128, out...)
}

// wholeOf is whole for a batch of that many rows; rows of ragged inputs have 128
// entries.
func wholeOf(b testing.TB, g *graph.Graph, options []native.Option, rows int, out ...*graph.Node) (p compute.Program, in, res []*tensor.Tensor) {
	b.Helper()
	seg := &graph.Segment{Name: "bench", Out: out}
	for _, n := range g.Nodes() {
		if !n.IsSource() {
			seg.Nodes = append(seg.Nodes, n)
			continue
		}
		seg.In = append(seg.In, n)
		shape := n.Shape.Clone()
		for i, d := range shape {
			if d == tensor.Dynamic {
				shape[i] = rows
				if n.DType == tensor.I64 {
					shape[i] *= 128
				}
			}
		}
		t := tensor.New(n.DType, shape...)
		if n.DType == tensor.F32 && n.Name != "y" {
			for i := range t.F32() {
				t.F32()[i] = float32(i%17-8) / 64
			}
		}
		in = append(in, t)
	}
	for _, n := range out {
		res = append(res, tensor.New(n.DType, 0))
	}
	p, err := native.New(options...).Compile(seg)
	if err != nil {
		b.Fatal(err)
	}
	return p, in, res
}

func benchmark(b *testing.B, flops float64, p compute.Program, in, out []*tensor.Tensor) {
	b.Helper()
	for b.Loop() {
		if err := p.Run(0, in, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkMatMul(b *testing.B) {
	for _, c := range []struct {
		m, k, n int
		ta, tb  bool
	}{
		{128, 784, 512, false, false},
		{128, 512, 512, false, true},
		{784, 128, 512, true, false},
		{512, 128, 512, true, true},
		{128, 512, 10, false, false},
		{1024, 1024, 1024, false, false},
		{128, 784, 1, false, false},
		{1, 784, 512, false, false},
	} {
		b.Run(fmt.Sprintf("%dx%dx%d/%t/%t", c.m, c.k, c.n, c.ta, c.tb), func(b *testing.B) {
			g := graph.New(tensor.F32)
			s, t := []int{c.m, c.k}, []int{c.k, c.n}
			if c.ta {
				s = []int{c.k, c.m}
			}
			if c.tb {
				t = []int{c.n, c.k}
			}
			out := g.MatMulT(g.Variable("a", graph.Init{}, s...), g.Variable("b", graph.Init{}, t...), c.ta, c.tb)
			p, in, res := whole(b, g, nil, out)
			benchmark(b, 2*float64(c.m*c.k*c.n), p, in, res)
		})
	}
}

// BenchmarkMLP is one forward and backward pass of 784-512-512-10, batch 128.
func BenchmarkMLP(b *testing.B) {
	g := graph.New(tensor.F32)
	x, y := g.Input("x", 784), g.Input("y", 0)
	layer := func(x *graph.Node, name string, k, n int) *graph.Node {
		return g.Add(g.MatMul(x, g.Variable("w"+name, graph.Init{}, k, n)), g.Variable("b"+name, graph.Init{}, n))
	}
	h := g.Relu(layer(g.Relu(layer(x, "1", 784, 512)), "2", 512, 512))
	loss := g.SoftmaxLoss(layer(h, "3", 512, 10), y)
	grads, err := graph.Differentiate(g, loss)
	if err != nil {
		b.Fatal(err)
	}
	out := []*graph.Node{loss}
	for _, gr := range grads {
		out = append(out, gr.Grad)
	}
	p, in, res := whole(b, g, nil, out...)
	// Forward once, backward twice, but for the gradient of x.
	benchmark(b, 2*128*(2*784*512+3*512*512+3*512*10), p, in, res)
}

func BenchmarkElementwise(b *testing.B) {
	for _, op := range []graph.Op{graph.Relu, graph.Sigmoid, graph.Tanh, graph.Exp, graph.Gelu, graph.Softmax, graph.Sum} {
		b.Run(string(op), func(b *testing.B) {
			g := graph.New(tensor.F32)
			p, in, res := whole(b, g, nil, g.Apply(op, graph.Attr{}, g.Input("x", 512)))
			benchmark(b, 128*512, p, in, res)
		})
	}
}
