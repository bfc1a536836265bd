package computetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

type node = graph.Node

// formula says that two ways to compute something from x [? 12] agree.
type formula struct {
	name string
	both func(g *graph.Graph, x *node) (a, b *node)
}

func formulas() []formula {
	half := func(g *graph.Graph, x *node) *node { return g.Scale(x, .5) }
	return []formula{
		{"softmax", func(g *graph.Graph, x *node) (a, b *node) {
			e := g.Exp(x)
			return g.Softmax(x), g.Div(e, g.SumAxis(e, 1, true))
		}},
		{"layernorm", func(g *graph.Graph, x *node) (a, b *node) {
			gain, bias := g.Const(1.5, 12), g.Const(-.5, 12)
			d := g.Sub(x, g.MeanAxis(x, -1, true))
			n := g.Mul(d, g.Rsqrt(g.Add(g.MeanAxis(g.Square(d), -1, true), g.Const(.01))))
			return g.LayerNorm(x, gain, bias, .01), g.Add(g.Mul(n, gain), bias)
		}},
		{"rmsnorm", func(g *graph.Graph, x *node) (a, b *node) {
			n := g.Div(x, g.Sqrt(g.Add(g.MeanAxis(g.Square(x), -1, true), g.Const(.01))))
			return g.RMSNorm(x, g.Const(2, 12), .01), g.Scale(n, 2)
		}},
		{"silu", func(g *graph.Graph, x *node) (a, b *node) { return g.Silu(x), g.Mul(x, g.Sigmoid(x)) }},
		{"softplus", func(g *graph.Graph, x *node) (a, b *node) {
			return g.Softplus(x), g.Log(g.Add(g.Const(1), g.Exp(x)))
		}},
		{"maximum", func(g *graph.Graph, x *node) (a, b *node) { return g.Maximum(x, g.Const(0)), g.Relu(x) }},
		{"max", func(g *graph.Graph, x *node) (a, b *node) {
			all := g.Split(x, 1, 4, 4, 4)
			return g.MaxAxis(g.Reshape(x, -1, 3, 4), 1, false), g.Maximum(all[0], g.Maximum(all[1], all[2]))
		}},
		{"fm", func(g *graph.Graph, x *node) (a, b *node) {
			f := g.Reshape(x, -1, 4, 3)
			return g.FMInteraction(f), g.SumAxis(g.DotInteraction(f), 1, false)
		}},
		{"fm/formula", func(g *graph.Graph, x *node) (a, b *node) {
			f := g.Reshape(x, -1, 4, 3)
			sum, square := g.SumAxis(f, 1, false), g.SumAxis(g.Square(f), 1, false)
			return g.FMInteraction(f), g.SumRows(half(g, g.Sub(g.Square(sum), square)))
		}},
		{"batched", func(g *graph.Graph, x *node) (a, b *node) {
			m, w := g.Reshape(x, -1, 3, 4), g.Frozen("w", graph.Init{}, 4, 2)
			return g.MatMul(m, w), g.Reshape(g.MatMul(g.Reshape(x, -1, 4), w), -1, 3, 2)
		}},
		{"transposed", func(g *graph.Graph, x *node) (a, b *node) {
			m := g.Reshape(x, -1, 3, 4)
			return g.MatMulT(m, m, true, false), g.MatMul(g.Transpose(m, 0, 2, 1), m)
		}},
		{"conv/one", func(g *graph.Graph, x *node) (a, b *node) {
			w := g.Frozen("w", graph.Init{}, 5, 3)
			flat := g.Reshape(x, -1, 3, 4)
			by := g.Reshape(g.MatMulT(g.Transpose(flat, 0, 2, 1), w, false, true), -1, 4, 5)
			return g.Reshape(g.Conv2D(g.Reshape(x, -1, 3, 2, 2), g.Reshape(w, 5, 3, 1, 1), 1, 0), -1, 5, 4), g.Transpose(by, 0, 2, 1)
		}},
		{"conv/mean", func(g *graph.Graph, x *node) (a, b *node) {
			m := g.Reshape(x, -1, 1, 3, 4)
			return g.Conv2D(m, g.Const(.25, 1, 1, 2, 2), 2, 0), g.AvgPool2D(m, 2, 0)
		}},
		{"attention", func(g *graph.Graph, x *node) (a, b *node) {
			q := g.Reshape(x, -1, 4, 3)
			k, v := g.Scale(q, .7), g.Square(q)
			head := func(x *node) *node { return g.Reshape(x, -1, 4, 1, 3) }
			at := g.ConcatAxis(0, g.Const(0, 1), g.Const(1, 1), g.Const(2, 1), g.Const(3, 1))
			later := g.Less(g.Reshape(at, 4, 1), at)
			scores := g.Scale(g.MatMulT(q, k, false, true), 1/math.Sqrt(3))
			return g.Reshape(g.CausalAttention(head(q), head(k), head(v)), -1, 4, 3), g.MatMul(g.Softmax(g.Where(later, g.Const(-1e30), scores)), v)
		}},
	}
}

// agree computes both ways. Values are near 1, and so are most results.
func agree(t *testing.T, b compute.Backend, d tensor.DType) {
	for _, f := range formulas() {
		t.Run(f.name, func(t *testing.T) {
			g := graph.New(d)
			x := g.Input("x", 12)
			one, other := f.both(g, x)
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			seg := &graph.Segment{Name: f.name, Out: []*node{one, other}}
			var in tensors
			for _, n := range g.Nodes() {
				if !n.IsSource() {
					seg.Nodes = append(seg.Nodes, n)
					continue
				}
				v := zeros()
				if n != x {
					v = newGen(3).normal(n.Shape...)
				}
				seg.In, in = append(seg.In, n), append(in, convert(v, d))
			}
			p, out := compile(t, b, seg), outputs(seg)
			for _, rows := range []int{5, 1, 0, 9} {
				t.Run(fmt.Sprint(rows), func(t *testing.T) {
					in[0] = convert(newGen(uint64(rows)).normal(rows, 12), d)
					if err := p.Run(0, in, out); err != nil {
						t.Fatal(err)
					}
					want := convert(out[1], tensor.F64)
					compare(t, out[0], want, func(i int) float64 { return 200 * (1 + math.Abs(want.F64()[i])) })
				})
			}
		})
	}
}
