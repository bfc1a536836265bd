package native_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/computetest"
	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// randomise fills the inputs of a segment: floats at random, whole numbers in
// [0, 4) but for offsets, ascending.
func randomise(r *rand.Rand, in []*tensor.Tensor) {
	for _, t := range in {
		switch t.DType() {
		case tensor.F32:
			for i := range t.F32() {
				t.F32()[i] = float32(r.NormFloat64())
			}
		case tensor.F64:
			for i := range t.F64() {
				t.F64()[i] = r.NormFloat64()
			}
		case tensor.I64, tensor.I32, tensor.BF16, tensor.F16, tensor.Invalid:
			for i := range t.I64() {
				t.I64()[i] = r.Int64N(4)
			}
		}
	}
}

// deepGraph has a part for every family of kernels, with sizes that threads cut.
func deepGraph(d tensor.DType) (*graph.Graph, []*graph.Node) {
	g := graph.New(d)
	x := g.Input("x", 96)
	w := g.Variable("w", graph.Init{}, 96, 192)
	bias := g.Variable("bias", graph.Init{}, 192)
	gain := g.Variable("gain", graph.Init{}, 192)
	h := g.LayerNorm(g.Gelu(g.Add(g.MatMul(x, w), bias)), gain, bias, 1e-5)
	heads := g.Reshape(h, -1, 16, 4, 48)
	h = g.Reshape(g.CausalAttention(heads, heads, g.Scale(heads, .5)), -1, 192)
	h = g.Reshape(g.Transpose(g.Reshape(h, -1, 16, 12), 0, 2, 1), -1, 192)
	image := g.Reshape(g.RMSNorm(h, gain, 1e-5), -1, 3, 8, 8)
	image = g.MaxPool2D(g.Relu(g.Conv2D(image, g.Variable("filters", graph.Init{}, 8, 3, 3, 3), 1, 1)), 2, 2)
	flat := g.Reshape(image, -1, 8, 16)
	all := g.Concat(g.DotInteraction(flat), g.Reshape(g.FMInteraction(flat), -1, 1))
	z := g.MatMul(g.Tanh(all), g.Variable("out", graph.Init{}, 29, 33))
	loss := g.Add(g.Sum(g.Softmax(g.Silu(z))), g.Sum(g.Square(g.Sigmoid(z))))
	grads, err := graph.Differentiate(g, loss)
	if err != nil {
		panic(err)
	}
	out := []*graph.Node{loss, z}
	for _, gr := range grads {
		out = append(out, gr.Grad)
	}
	return g, out
}

// TestThreadsDoNotChangeBits runs one graph with every number of threads, and
// with portable Go.
func TestThreadsDoNotChangeBits(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
		for _, base := range [][]native.Option{nil, {native.Fallback()}} {
			g, out := deepGraph(d)
			var want []string
			for _, n := range []int{1, 2, 3, 4, 8} {
				p, in, res := whole(t, g, append([]native.Option{native.Threads(n)}, base...), out...)
				randomise(rand.New(rand.NewPCG(3, 4)), in)
				for range 3 {
					if err := p.Run(0, in, res); err != nil {
						t.Fatal(err)
					}
				}
				for i, r := range res {
					got := string(r.Bytes())
					if n == 1 {
						want = append(want, got)
					} else if got != want[i] {
						t.Errorf("%v fallback=%t: %q differs between 1 and %d threads", d, base != nil, out[i].Name, n)
					}
				}
			}
		}
	}
}

// TestThreadsDoNotChangeBitsOfAnyOperator runs every operator and rule alone with
// several numbers of threads.
func TestThreadsDoNotChangeBitsOfAnyOperator(t *testing.T) {
	for name, base := range map[string][]native.Option{"fast": nil, "fallback": {native.Fallback()}} {
		t.Run(name, func(t *testing.T) {
			var all []compute.Backend
			for _, n := range []int{1, 3} {
				all = append(all, native.New(append([]native.Option{native.Threads(n)}, base...)...))
			}
			computetest.RunSame(t, []tensor.DType{tensor.F32, tensor.F64}, all...)
		})
	}
}

// TestThreadsAllocateNothing holds for programs with threads as well.
func TestThreadsAllocateNothing(t *testing.T) {
	g, out := deepGraph(tensor.F32)
	p, in, res := whole(t, g, []native.Option{native.Threads(3)}, out...)
	randomise(rand.New(rand.NewPCG(3, 4)), in)
	run := func() {
		if err := p.Run(0, in, res); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n >= 1 {
		t.Errorf("a warm run allocates %v times", n)
	}
}

func BenchmarkThreads(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := graph.New(tensor.F32)
			out := g.MatMul(g.Variable("a", graph.Init{}, 1024, 1024), g.Variable("b", graph.Init{}, 1024, 1024))
			p, in, res := whole(b, g, []native.Option{native.Threads(n)}, out)
			benchmark(b, 2<<30, p, in, res)
		})
	}
}

// TestDeepGraphIsWhatRefComputes compares all families of kernels and their
// gradients at sizes that blocks and vectors cut.
func TestDeepGraphIsWhatRefComputes(t *testing.T) {
	g, out := deepGraph(tensor.F64)
	p, in, res := whole(t, g, []native.Option{native.Threads(2)}, out...)
	seg := &graph.Segment{Name: "ref", Out: out}
	for _, n := range g.Nodes() {
		if n.IsSource() {
			seg.In = append(seg.In, n)
		} else {
			seg.Nodes = append(seg.Nodes, n)
		}
	}
	judge, err := ref.New().Compile(seg)
	if err != nil {
		t.Fatal(err)
	}
	randomise(rand.New(rand.NewPCG(5, 6)), in)
	var want []*tensor.Tensor
	for range res {
		want = append(want, tensor.New(tensor.F64, 0))
	}
	if err := errors.Join(p.Run(0, in, res), judge.Run(0, in, want)); err != nil {
		t.Fatal(err)
	}
	for i, r := range res {
		size := 0.0
		for _, v := range want[i].F64() {
			size = max(size, math.Abs(v))
		}
		for e, v := range want[i].F64() {
			if d := math.Abs(r.F64()[e] - v); !(d <= 1e-11*size) {
				t.Fatalf("%q: element %d is %v, want %v", out[i].Name, e, r.F64()[e], v)
			}
		}
	}
}
