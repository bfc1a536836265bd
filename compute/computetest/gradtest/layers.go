package gradtest

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// layer is a differentiable operator applied to a batch h [B width], with
// variables of its own where it takes more than one value.
type layer struct {
	name  string
	width int
	apply func(g *graph.Graph, h *graph.Node) *graph.Node
}

type node = graph.Node

// layers are all differentiable operators that work on a batch. What is not
// smooth is met in one point with probability 0.
func layers() []layer {
	v := func(g *graph.Graph, shape ...int) *node { return g.Variable("d", graph.Init{}, shape...) }
	all := []layer{
		{"scale", 4, func(g *graph.Graph, h *node) *node { return g.Scale(h, -1.5) }},
		{"relu", 4, (*graph.Graph).Relu},
		{"sigmoid", 4, (*graph.Graph).Sigmoid},
		{"tanh", 4, (*graph.Graph).Tanh},
		{"exp", 4, (*graph.Graph).Exp},
		{"square", 4, (*graph.Graph).Square},
		{"softmax", 4, (*graph.Graph).Softmax},
		{"log", 4, func(g *graph.Graph, h *node) *node { return g.Log(g.Exp(h)) }},
		{"log/square", 4, func(g *graph.Graph, h *node) *node { return g.Log(g.Square(h)) }},
		{"sum", 4, (*graph.Graph).Sum},
		{"sumrows", 4, (*graph.Graph).SumRows},
		{"reshape", 4, func(g *graph.Graph, h *node) *node { return g.Reshape(h, -1, 2) }},
		{"reshape/dynamic", 6, func(g *graph.Graph, h *node) *node {
			// Two dims of what is reshaped are dynamic, so the way back takes its shape.
			return g.Reshape(g.MatMulT(h, h, false, true), -1)
		}},
		{"slice/columns", 4, func(g *graph.Graph, h *node) *node { return g.Slice(h, 1, 3) }},
		{"reused", 4, func(g *graph.Graph, h *node) *node { return g.Add(g.Mul(h, g.Tanh(h)), g.Sub(g.Square(h), h)) }},
		{"sqrt", 5, func(g *graph.Graph, h *node) *node { return g.Sqrt(g.Add(g.Square(h), g.Const(.5))) }},
		{"rsqrt", 5, func(g *graph.Graph, h *node) *node { return g.Rsqrt(g.Add(g.Square(h), g.Const(.5))) }},
		{"leakyrelu", 5, func(g *graph.Graph, h *node) *node { return g.LeakyRelu(h, .1) }},
		{"gelu", 7, (*graph.Graph).Gelu},
		{"silu", 7, (*graph.Graph).Silu},
		{"softplus", 7, (*graph.Graph).Softplus},
		{"neg", 3, (*graph.Graph).Neg},
		{"div", 3, func(g *graph.Graph, h *node) *node { return g.Div(h, g.Add(g.Square(v(g, 3)), g.Const(.5))) }},
		{"div/first", 3, func(g *graph.Graph, h *node) *node { return g.Div(v(g), g.Exp(h)) }},
		{"maximum", 3, func(g *graph.Graph, h *node) *node { return g.Maximum(h, v(g, 3)) }},
		{"minimum", 3, func(g *graph.Graph, h *node) *node { return g.Minimum(v(g, 2, 1, 1), h) }},
		{"where", 3, func(g *graph.Graph, h *node) *node { return g.Where(g.Less(h, g.Const(.1)), v(g, 3), g.Square(h)) }},
	}
	return slices.Concat(all, shapeLayers(), imageLayers(), productLayers())
}

// shapeLayers are those that repeat, move, cut, or reduce along an axis.
func shapeLayers() []layer {
	v := func(g *graph.Graph, name string, shape ...int) *node { return g.Variable(name, graph.Init{}, shape...) }
	return []layer{
		{"sub/both", 4, func(g *graph.Graph, h *node) *node { return g.Sub(g.SumAxis(h, -1, true), v(g, "d", 3)) }},
		{"add/first", 4, func(g *graph.Graph, h *node) *node { return g.Add(v(g, "d", 4), h) }},
		{"mul/outer", 6, func(g *graph.Graph, h *node) *node {
			return g.Mul(g.Reshape(h, -1, 3, 1, 2), v(g, "d", 5, 1))
		}},
		{"sumaxis", 6, func(g *graph.Graph, h *node) *node { return g.SumAxis(g.Reshape(h, -1, 3, 2), 1, false) }},
		{"sumaxis/rows", 3, func(g *graph.Graph, h *node) *node { return g.SumAxis(h, 0, true) }},
		{"mean", 6, func(g *graph.Graph, h *node) *node { return g.MeanAxis(g.Reshape(h, -1, 3, 2), 1, true) }},
		{"mean/all", 6, (*graph.Graph).Mean},
		{"max", 6, func(g *graph.Graph, h *node) *node { return g.MaxAxis(g.Reshape(h, -1, 3, 2), 1, false) }},
		{"max/last", 6, func(g *graph.Graph, h *node) *node { return g.MaxAxis(h, -1, true) }},
		{"transpose", 6, func(g *graph.Graph, h *node) *node { return g.Transpose(g.Reshape(h, -1, 3, 2), 2, 0, 1) }},
		{"slice", 6, func(g *graph.Graph, h *node) *node { return g.SliceAxis(g.Reshape(h, -1, 3, 2), 1, 1, 3) }},
		{"concat", 6, func(g *graph.Graph, h *node) *node {
			x := g.Reshape(h, -1, 3, 2)
			return g.ConcatAxis(-1, x, g.Square(x), x)
		}},
		{"split", 6, func(g *graph.Graph, h *node) *node {
			parts := g.Split(g.Tanh(h), -1, 2, 1, 3)
			return g.Mul(g.Mul(g.Concat(parts[0], parts[1]), parts[1]), parts[2])
		}},
		{"softmax/dims3", 6, func(g *graph.Graph, h *node) *node { return g.Softmax(g.Reshape(h, -1, 2, 3)) }},
		{"layernorm", 6, func(g *graph.Graph, h *node) *node {
			return g.LayerNorm(g.Reshape(h, -1, 2, 3), v(g, "gain", 3), v(g, "bias", 3), .1)
		}},
		{"rmsnorm", 5, func(g *graph.Graph, h *node) *node { return g.RMSNorm(h, v(g, "gain", 5), .1) }},
		{"dropout", 5, func(g *graph.Graph, h *node) *node { return g.Dropout(h, .4, 3) }},
		{"dropout/rows", 6, func(g *graph.Graph, h *node) *node { return g.Dropout(g.Reshape(h, -1, 2, 3), .5, 4) }},
	}
}

// imageLayers are those of images, of texts and of features that meet.
func imageLayers() []layer {
	v := func(g *graph.Graph, name string, shape ...int) *node { return g.Variable(name, graph.Init{}, shape...) }
	return []layer{
		{"conv2d", 24, func(g *graph.Graph, h *node) *node {
			return g.Conv2D(g.Reshape(h, -1, 2, 3, 4), v(g, "k", 3, 2, 2, 3), 1, 0)
		}},
		{"conv2d/stride/pad", 15, func(g *graph.Graph, h *node) *node {
			return g.Conv2D(g.Reshape(h, -1, 1, 5, 3), v(g, "k", 2, 1, 3, 3), 2, 2)
		}},
		{"maxpool2d", 40, func(g *graph.Graph, h *node) *node { return g.MaxPool2D(g.Reshape(h, -1, 2, 5, 4), 2, 0) }},
		{"maxpool2d/stride", 16, func(g *graph.Graph, h *node) *node { return g.MaxPool2D(g.Reshape(h, -1, 1, 4, 4), 3, 1) }},
		{"avgpool2d", 24, func(g *graph.Graph, h *node) *node { return g.AvgPool2D(g.Reshape(h, -1, 2, 3, 4), 2, 1) }},
		{"attention", 48, func(g *graph.Graph, h *node) *node {
			x := g.Split(g.Reshape(h, -1, 4, 2, 6), -1, 2, 2, 2)
			return g.CausalAttention(x[0], x[1], x[2])
		}},
		{"attention/same", 15, func(g *graph.Graph, h *node) *node {
			x := g.Reshape(h, -1, 5, 1, 3)
			return g.Apply(graph.CausalAttention, graph.Attr{Alpha: .3}, x, x, x)
		}},
		{"fm", 12, func(g *graph.Graph, h *node) *node { return g.FMInteraction(g.Reshape(h, -1, 4, 3)) }},
		{"dots", 12, func(g *graph.Graph, h *node) *node { return g.DotInteraction(g.Reshape(h, -1, 4, 3)) }},
		{"bag/mean", 4, func(g *graph.Graph, h *node) *node {
			x := g.Ragged("x")
			return g.Mul(g.SumAxis(h, 1, false), g.SumAxis(g.MeanBag(v(g, "rows", 6, 2), x.IDs(), x.Offsets(), x.Weights()), 1, false))
		}},
	}
}

// productLayers are batched products: transposed or not, shared or not.
func productLayers() []layer {
	var all []layer
	for i := range 8 {
		ta, tb, shared := i&1 == 1, i&2 == 2, i&4 == 4
		all = append(all, layer{"matmul/batched/" + string(rune('0'+i)), 12, func(g *graph.Graph, h *node) *node {
			a, dims := g.Reshape(h, -1, 3, 4), []int{4, 2}
			if ta {
				a, dims = g.Reshape(h, -1, 4, 3), []int{4, 2}
			}
			if tb {
				dims = []int{2, 4}
			}
			b := g.Variable("b", graph.Init{}, dims...)
			if !shared {
				b = g.Add(b, g.Reshape(g.Slice(h, 0, 8), append([]int{tensor.Dynamic}, dims...)...))
			}
			return g.MatMulT(a, b, ta, tb)
		}})
	}
	return all
}

// batchOf makes the batch that a layer is applied to: a product of an input and
// a variable, so that gradients pass through the layer.
func (l layer) batchOf(g *graph.Graph) *node {
	return g.MatMul(g.Input("in", 3), g.Variable("w", graph.Init{}, 3, l.width))
}

// composed chains the layers that keep [B 6] in an order that depends on the seed.
func composed(seed uint64) lossCase {
	return lossCase{"composed", func(g *graph.Graph) *node {
		r := random(seed)
		v := func(shape ...int) *node {
			return g.Variable(fmt.Sprint("v", len(g.Nodes())), graph.Init{}, shape...)
		}
		h := layer{width: 6}.batchOf(g)
		for range 6 {
			x := g.Reshape(h, -1, 2, 3)
			steps := []func() *node{
				func() *node { return g.LayerNorm(x, v(3), v(3), .1) },
				func() *node { return g.RMSNorm(h, v(6), .1) },
				func() *node { return g.MatMul(x, v(3, 3)) },
				func() *node { return g.MatMulT(g.MatMulT(x, x, false, true), x, false, false) },
				func() *node { return g.Transpose(g.Reshape(h, -1, 3, 2), 0, 2, 1) },
				func() *node { return g.Gelu(g.Add(h, v(6))) },
				func() *node { return g.Mul(g.Silu(h), g.MeanAxis(h, 1, true)) },
				func() *node {
					y := g.Reshape(h, -1, 1, 2, 3)
					return g.CausalAttention(y, g.Tanh(y), y)
				},
				func() *node { return g.Conv2D(g.Reshape(h, -1, 1, 2, 3), v(1, 1, 3, 3), 1, 1) },
				func() *node { return g.Dropout(h, .3, seed) },
				func() *node { return g.Add(h, g.Reshape(g.FMInteraction(x), -1, 1)) },
				func() *node { return g.Maximum(h, g.SumAxis(h, -1, true)) },
			}
			h = g.Reshape(steps[r.IntN(len(steps))](), -1, 6)
			h = g.Add(g.Tanh(h), g.Tanh(g.Reshape(x, -1, 6)))
		}
		return weigh(g, h)
	}}
}
