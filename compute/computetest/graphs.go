package computetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// dim of every value in a random graph.
const graphDim = 6

// graphs compares random segments of many nodes with ref in float64: any of
// their values may be an output or be read late, which is what sharing memory
// between values gets wrong. One program runs on several sizes.
func graphs(t *testing.T, b compute.Backend, d tensor.DType) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := newGen(seed)
			segs := map[tensor.DType]*graph.Segment{}
			for _, dt := range []tensor.DType{d, tensor.F64} {
				segs[dt] = randomSegment(newGen(seed), dt)
			}
			fast, slow := compile(t, b, segs[d]), compile(t, ref.New(), segs[tensor.F64])
			outFast, outSlow := outputs(segs[d]), outputs(segs[tensor.F64])
			for _, rows := range []int{5, 0, 23, 1} {
				in := tensors{g.unit(rows, graphDim), g.unit(graphDim, graphDim), g.unit(graphDim)}
				inFast := convertAll(in, d)
				if err := slow.Run(0, in, outSlow); err != nil {
					t.Fatal(err)
				}
				if err := fast.Run(0, inFast, outFast); err != nil {
					t.Fatal(err)
				}
				for i := range outSlow {
					want := outSlow[i].F64()
					// Every operator shrinks or keeps errors up to a small factor.
					compare(t, outFast[i], outSlow[i], func(k int) float64 { return 500 * (1 + math.Abs(want[k])) })
				}
				allocFree(t, func() error { return fast.Run(0, inFast, outFast) })
			}
		})
	}
}

// randomSegment builds 5 to 30 nodes that all have [B graphDim] values in
// [-1, 1] or so, and delivers about a quarter of them and the last.
func randomSegment(g gen, d tensor.DType) *graph.Segment {
	b := graph.New(d)
	x := b.Input("x", graphDim)
	w := b.Variable("w", graph.Init{}, graphDim, graphDim)
	bias := b.Variable("bias", graph.Init{}, graphDim)
	seg := &graph.Segment{Name: fmt.Sprint("random", d), In: []*graph.Node{x, w, bias}}
	values := []*graph.Node{x}
	pick := func() *graph.Node {
		if g.IntN(2) == 0 {
			return values[len(values)-1]
		}
		return values[g.IntN(len(values))]
	}
	for range 5 + g.IntN(26) {
		values = append(values, randomNode(g, b, pick, w, bias))
	}
	for _, n := range b.Nodes() {
		if !n.IsSource() {
			seg.Nodes = append(seg.Nodes, n)
		}
	}
	for _, n := range values[1:] {
		if g.IntN(4) == 0 || n == values[len(values)-1] {
			seg.Out = append(seg.Out, n)
		}
	}
	return seg
}

func randomNode(g gen, b *graph.Graph, pick func() *graph.Node, w, bias *graph.Node) *graph.Node {
	switch g.IntN(24) {
	case 0:
		return b.Tanh(pick())
	case 1:
		return b.Sigmoid(pick())
	case 2:
		return b.Scale(b.Relu(pick()), 0.5)
	case 3:
		return b.Tanh(b.Add(b.MatMul(pick(), w), bias))
	case 4:
		return b.Sigmoid(b.MatMulT(pick(), w, false, true))
	case 5:
		return b.Softmax(pick())
	case 6:
		return b.Scale(b.Sub(pick(), pick()), 0.5)
	case 7:
		return b.Mul(b.Tanh(pick()), b.Tanh(pick()))
	case 8:
		x := pick()
		return b.Tanh(b.Mul(x, b.Reshape(b.SumRows(pick()), tensor.Dynamic, 1)))
	case 9:
		return b.Concat(b.Slice(pick(), 0, 2), b.Slice(pick(), 2, graphDim))
	case 10:
		return b.Reshape(b.Reshape(pick(), tensor.Dynamic, 2), tensor.Dynamic, graphDim)
	case 11:
		return b.Apply(graph.TanhGrad, graph.Attr{}, b.Tanh(pick()), b.Tanh(pick()))
	case 12:
		x := pick()
		return b.Tanh(b.Apply(graph.SoftmaxGrad, graph.Attr{}, b.Softmax(x), x))
	}
	if n := randomLayer(g, b, pick, bias); n != nil {
		return n
	}
	x := b.Tanh(pick())
	return b.Scale(b.Add(x, x), 0.5)
}

// randomLayer is nil in some cases.
func randomLayer(g gen, b *graph.Graph, pick func() *graph.Node, bias *graph.Node) *graph.Node {
	switch g.IntN(11) {
	case 0:
		return b.Scale(b.Gelu(pick()), 0.5)
	case 1:
		return b.Tanh(b.Sub(b.MeanAxis(pick(), 1, true), pick()))
	case 2:
		return b.Maximum(pick(), pick())
	case 3:
		x, y := pick(), pick()
		return b.Where(b.Less(x, y), x, y)
	case 4:
		x := b.Reshape(pick(), tensor.Dynamic, 2, 3)
		return b.Reshape(b.Tanh(b.Transpose(x, 0, 2, 1)), tensor.Dynamic, graphDim)
	case 5:
		return b.Tanh(b.LayerNorm(b.Reshape(pick(), tensor.Dynamic, graphDim), bias, bias, 1))
	case 6:
		return b.Tanh(b.Add(bias, b.MaxAxis(pick(), 1, true)))
	case 7:
		x := b.Tanh(b.Reshape(pick(), tensor.Dynamic, 1, 2, 3))
		return b.Reshape(b.CausalAttention(x, x, x), tensor.Dynamic, graphDim)
	case 8:
		return b.Softplus(b.Silu(b.Scale(pick(), 0.5)))
	case 9:
		x := b.Reshape(b.Tanh(pick()), tensor.Dynamic, 3, 2)
		return b.Tanh(b.Add(b.Reshape(b.FMInteraction(x), tensor.Dynamic, 1), bias))
	}
	return nil
}

func outputs(seg *graph.Segment) tensors {
	var out tensors
	for _, n := range seg.Out {
		out = append(out, dirty(n.DType))
	}
	return out
}
