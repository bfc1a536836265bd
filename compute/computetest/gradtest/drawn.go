package gradtest

import (
	"math/rand/v2"

	"github.com/gangline/gangline/graph"
)

// drawnCases are operators on variables of random shape, most dims odd and some
// of them 1.
func drawnCases(seed uint64) []lossCase {
	r := random(seed)
	var cases []lossCase
	add := func(name string, f func(g *graph.Graph, x []*node) *node, shapes ...[]int) {
		cases = append(cases, lossCase{name, func(g *graph.Graph) *node {
			var x []*node
			for i, s := range shapes {
				x = append(x, g.Variable(string(rune('a'+i)), graph.Init{}, s...))
			}
			return weigh(g, f(g, x))
		}})
	}
	drawnBinary(r, add)
	drawnAxes(r, add)
	drawnLayers(r, add)
	return cases
}

// adder takes a case: an operator on variables of these shapes.
type adder func(name string, f func(g *graph.Graph, x []*node) *node, shapes ...[]int)

// dim draws from 1, 2, 3, 5 and 7.
func dim(r *rand.Rand) int { return []int{1, 2, 3, 3, 5, 7}[r.IntN(6)] }

// drawn is a random shape of 1 to 4 dims.
func drawn(r *rand.Rand) []int {
	s := make([]int, 1+r.IntN(4))
	for i := range s {
		s[i] = dim(r)
		if i > 1 {
			s[i] = min(s[i], 3)
		}
	}
	return s
}

// drawnBinary is products of any orientation, and element-by-element operators
// whose second operand has dims missing or 1; either comes first.
func drawnBinary(r *rand.Rand, add adder) {
	m, k, n, ta, tb := dim(r), dim(r), dim(r), r.IntN(2) == 0, r.IntN(2) == 0
	a, b := []int{m, k}, []int{k, n}
	if ta {
		a = []int{k, m}
	}
	if tb {
		b = []int{n, k}
	}
	add("matmul", func(g *graph.Graph, x []*node) *node { return g.MatMulT(x[0], x[1], ta, tb) }, a, b)
	long := drawn(r)
	short := append([]int{}, long[r.IntN(len(long)+1):]...)
	for i := range short {
		if r.IntN(3) == 0 {
			short[i] = 1
		}
	}
	swap := r.IntN(2)
	both := func(name string, f func(g *graph.Graph, a, b *node) *node) {
		add(name, func(g *graph.Graph, x []*node) *node { return f(g, x[swap], x[1-swap]) }, long, short)
	}
	both("add", (*graph.Graph).Add)
	both("sub", (*graph.Graph).Sub)
	both("mul", (*graph.Graph).Mul)
	both("maximum", (*graph.Graph).Maximum)
	both("minimum", (*graph.Graph).Minimum)
	both("div", func(g *graph.Graph, a, b *node) *node { return g.Div(a, g.Add(g.Square(b), g.Const(.5))) })
	both("where", func(g *graph.Graph, a, b *node) *node { return g.Where(g.Less(a, b), g.Tanh(b), g.Square(a)) })
}

// drawnAxes is operators over a random axis, and over all.
func drawnAxes(r *rand.Rand, add adder) {
	s := drawn(r)
	axis, keep, perm := r.IntN(len(s)), r.IntN(2) == 0, r.Perm(len(s))
	from := r.IntN(s[axis])
	to := from + 1 + r.IntN(s[axis]-from)
	other := append([]int{}, s...)
	other[axis] = dim(r)
	one := func(name string, f func(g *graph.Graph, x *node) *node) {
		add(name, func(g *graph.Graph, x []*node) *node { return f(g, x[0]) }, s)
	}
	one("sumaxis", func(g *graph.Graph, x *node) *node { return g.SumAxis(x, axis, keep) })
	one("mean", func(g *graph.Graph, x *node) *node { return g.MeanAxis(x, axis, keep) })
	one("max", func(g *graph.Graph, x *node) *node { return g.MaxAxis(x, axis, keep) })
	one("slice", func(g *graph.Graph, x *node) *node { return g.SliceAxis(x, axis, from, to) })
	one("transpose", func(g *graph.Graph, x *node) *node { return g.Transpose(x, perm...) })
	one("softmax", (*graph.Graph).Softmax)
	one("sum", (*graph.Graph).Sum)
	one("gelu", (*graph.Graph).Gelu)
	one("silu", (*graph.Graph).Silu)
	one("softplus", (*graph.Graph).Softplus)
	one("tanh", (*graph.Graph).Tanh)
	one("sigmoid", (*graph.Graph).Sigmoid)
	one("relu", (*graph.Graph).Relu)
	one("exp/sqrt/rsqrt", func(g *graph.Graph, x *node) *node { return g.Rsqrt(g.Add(g.Exp(x), g.Sqrt(g.Exp(x)))) })
	add("concat", func(g *graph.Graph, x []*node) *node { return g.ConcatAxis(axis, x[0], x[1], g.Square(x[0])) }, s, other)
	c := s[len(s)-1:]
	add("layernorm", func(g *graph.Graph, x []*node) *node { return g.LayerNorm(x[0], x[1], x[2], .1) }, s, c, c)
	add("rmsnorm", func(g *graph.Graph, x []*node) *node { return g.RMSNorm(x[0], x[1], .1) }, s, c)
}

// drawnLayers is images, attention, interactions and lookups.
func drawnLayers(r *rand.Rand, add adder) {
	batch, chans, high, wide := 1+r.IntN(2), 1+r.IntN(3), 1+r.IntN(5), 1+r.IntN(6)
	pad, stride := r.IntN(3), 1+r.IntN(3)
	kernel := []int{1 + r.IntN(3), chans, 1 + r.IntN(min(4, high+2*pad)), 1 + r.IntN(min(4, wide+2*pad))}
	window := 1 + r.IntN(min(high, wide))
	image := []int{batch, chans, high, wide}
	add("conv2d", func(g *graph.Graph, x []*node) *node { return g.Conv2D(x[0], x[1], stride, pad) }, image, kernel)
	add("maxpool2d", func(g *graph.Graph, x []*node) *node { return g.MaxPool2D(x[0], window, stride) }, image)
	add("avgpool2d", func(g *graph.Graph, x []*node) *node { return g.AvgPool2D(x[0], window, stride) }, image)
	heads := []int{1 + r.IntN(2), dim(r), 1 + r.IntN(3), dim(r)}
	add("attention", func(g *graph.Graph, x []*node) *node { return g.CausalAttention(x[0], x[1], x[2]) }, heads, heads, heads)
	fields := []int{dim(r), 2 + r.IntN(5), dim(r)}
	add("fm", func(g *graph.Graph, x []*node) *node { return g.FMInteraction(x[0]) }, fields)
	add("dots", func(g *graph.Graph, x []*node) *node { return g.DotInteraction(x[0]) }, fields)
	rows := []int{6, dim(r)}
	add("gather", func(g *graph.Graph, x []*node) *node { return g.Gather(x[0], g.Ragged("x").Pos()) }, rows)
	for name, bag := range map[string]func(g *graph.Graph, rows, ids, offsets, weights *node) *node{
		"bag": (*graph.Graph).Bag, "bag/mean": (*graph.Graph).MeanBag,
	} {
		add(name, func(g *graph.Graph, x []*node) *node {
			e := g.Ragged("x")
			return bag(g, x[0], e.IDs(), e.Offsets(), e.Weights())
		}, rows)
	}
}
