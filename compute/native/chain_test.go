package native_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// TestProductReadBehindAKeptLink is of links that read the product after one
// whose result is delivered: that one's memory must not be the product's.
func TestProductReadBehindAKeptLink(t *testing.T) {
	for _, columns := range []int{1, 7, 40} {
		g := graph.New(tensor.F32)
		z := g.MatMul(g.Input("x", 5), g.Variable("w", graph.Init{}, 5, columns))
		gate := g.Sigmoid(z)
		y := g.Mul(z, gate)
		p, in, out := whole(t, g, nil, gate, y)
		if err := p.Run(0, in, out); err != nil {
			t.Fatal(err)
		}
		for i, got := range out[1].F32() {
			z := 0.0
			for l := range 5 {
				z += float64(in[0].F32()[i/columns*5+l]) * float64(in[1].F32()[l*columns+i%columns])
			}
			if want := z / (1 + math.Exp(-z)); math.Abs(float64(got)-want) > 1e-6 {
				t.Fatalf("%d columns: element %d is %v, want %v", columns, i, got, want)
			}
		}
	}
}

// TestChainsAsRefComputes is of chains that random graphs seldom have.
func TestChainsAsRefComputes(t *testing.T) {
	for name, build := range map[string]func(g *graph.Graph, x *graph.Node) *graph.Node{
		"operands that repeat differently": func(g *graph.Graph, x *graph.Node) *graph.Node {
			w := g.Variable("w", graph.Init{}, 3, 2)
			return g.Tanh(g.Where(g.Less(g.Variable("c", graph.Init{}, 2), g.Const(.5)), g.Reshape(x, -1, 3, 2), w))
		},
		"behind a product over no rows": func(g *graph.Graph, x *graph.Node) *graph.Node {
			return g.Sigmoid(g.Add(g.MatMulT(x, x, true, false), g.Variable("w", graph.Init{}, 6)))
		},
		"behind products of a batch": func(g *graph.Graph, x *graph.Node) *graph.Node {
			m := g.Reshape(x, -1, 3, 2)
			return g.Sigmoid(g.Add(g.MatMulT(m, m, false, true), g.Variable("w", graph.Init{}, 3, 3)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph.New(tensor.F32)
			seg := segmentTo(g, build(g, g.Input("x", 6)))
			p, judge := program(t, native.New(), seg), program(t, ref.New(), seg)
			for _, rows := range []int{5, 0, 1, 9} {
				in, got, want := inputsOf(seg, [2]int{rows}), empty(seg), empty(seg)
				if err := judge.Run(0, in, want); err != nil {
					t.Fatal(err)
				}
				if err := p.Run(0, in, got); err != nil {
					t.Fatal(err)
				}
				near(t, seg, got, want, 0x1p-23, name)
			}
		})
	}
}

// segmentTo is all nodes of a graph, of which one is delivered.
func segmentTo(g *graph.Graph, out *graph.Node) *graph.Segment {
	seg := &graph.Segment{Name: "seg", Out: []*graph.Node{out}}
	for _, n := range g.Nodes() {
		if n.IsSource() {
			seg.In = append(seg.In, n)
		} else {
			seg.Nodes = append(seg.Nodes, n)
		}
	}
	return seg
}

// TestBatchesThatDiffer is of two inputs whose batches are no longer equal when
// the program runs, as their shapes promised: one row is repeated, as ref does,
// or there is an error that names a node; never other numbers.
func TestBatchesThatDiffer(t *testing.T) {
	for name, build := range map[string]func(g *graph.Graph, x, y *graph.Node) *graph.Node{
		"in place":        func(g *graph.Graph, x, y *graph.Node) *graph.Node { return g.Add(g.Softmax(x), g.Softmax(y)) },
		"second in place": func(g *graph.Graph, x, y *graph.Node) *graph.Node { return g.Sub(g.Softmax(y), g.Softmax(x)) },
		"chain":           func(g *graph.Graph, x, y *graph.Node) *graph.Node { return g.Tanh(g.Add(g.Softmax(x), g.Softmax(y))) },
		"view": func(g *graph.Graph, x, y *graph.Node) *graph.Node {
			return g.Softmax(g.Mul(g.Reshape(g.Softmax(x), -1, 2, 3), g.Reshape(g.Softmax(y), -1, 2, 3)))
		},
		"link": func(g *graph.Graph, x, y *graph.Node) *graph.Node { return g.Add(g.Relu(x), g.Softmax(y)) },
		"square": func(g *graph.Graph, x, y *graph.Node) *graph.Node {
			return g.Scale(g.Add(g.Transpose(g.MatMulT(y, x, false, true)), g.MatMulT(x, x, false, true)), .125)
		},
		"behind": func(g *graph.Graph, x, y *graph.Node) *graph.Node {
			return g.Sub(g.MatMul(x, g.Variable("w", graph.Init{}, 6, 6)), y)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph.New(tensor.F32)
			last := build(g, g.Input("x", 6), g.Input("y", 6))
			last = g.Softmax(last) // so that what comes before is no output
			seg := segmentTo(g, last)
			p, judge := program(t, native.New(), seg), program(t, ref.New(), seg)
			for _, rows := range [][2]int{{9, 9}, {1, 5}, {5, 1}, {1, 1}, {1, 8}, {4, 4}} {
				in, got, want := inputsOf(seg, rows), empty(seg), empty(seg)
				if err := judge.Run(0, in, want); err != nil {
					t.Fatal(err)
				}
				switch err := p.Run(0, in, got); {
				case err == nil:
					near(t, seg, got, want, 0x1p-23, "rows differ")
				case rows[0] == rows[1]:
					t.Fatal(err)
				case !strings.Contains(err.Error(), "must be equal"):
					t.Errorf("%v rows: the error is %v", rows, err)
				}
			}
		})
	}
}

// inputsOf fills inputs x and y, of other batches each, and variables.
func inputsOf(seg *graph.Segment, rows [2]int) (in []*tensor.Tensor) {
	for i, n := range seg.In {
		shape := n.Shape.Clone()
		if shape[0] == tensor.Dynamic {
			shape[0] = rows[i]
		}
		t := tensor.New(n.DType, shape...)
		for k := range t.F32() {
			t.F32()[k] = float32((k*k+3*i)%11) / 7
		}
		in = append(in, t)
	}
	return in
}
