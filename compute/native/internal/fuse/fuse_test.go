package fuse

import (
	"strings"
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// link is what a backend would report: some operators, of operands that are
// whole or repeat.
func link(n *graph.Node) bool {
	switch n.Op {
	case graph.Add, graph.Mul, graph.Tanh, graph.Relu, graph.Scale, graph.TanhGrad:
	default:
		return false
	}
	for _, x := range n.In {
		if !x.Shape.Equal(n.Shape) && !Repeats(x.Shape, n.Shape) {
			return false
		}
	}
	return true
}

// chains writes the groups of a segment, one a line: names, a kept one with a
// star, and behind a bar what the result may be written over.
func chains(g *graph.Graph, out ...*graph.Node) string {
	seg := &graph.Segment{Name: "seg", Out: out}
	for _, n := range g.Nodes() {
		if n.IsSource() {
			seg.In = append(seg.In, n)
		} else {
			seg.Nodes = append(seg.Nodes, n)
		}
	}
	var lines []string
	for _, c := range Groups(seg, link) {
		var words []string
		for i, n := range c.Nodes {
			name := n.Name
			if c.Kept[i] {
				name += "*"
			}
			words = append(words, name)
		}
		if len(c.InPlace) > 0 {
			words = append(words, "|")
		}
		for _, n := range c.InPlace {
			words = append(words, n.Name)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, "\n")
}

// TestChains says which nodes become one group, what of them is kept and what
// may be overwritten.
func TestChains(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(g *graph.Graph, x, w *graph.Node) []*graph.Node
		want  string
	}{
		{"one alone is no group", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			return nodes(g.Named("a", g.Tanh(x)))
		}, ""},
		{"two", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			return nodes(g.Named("b", g.Tanh(g.Named("a", g.Relu(x)))))
		}, "a b* | x"},
		{"an output in the middle is kept", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			a := g.Named("a", g.Relu(x))
			return nodes(a, g.Named("b", g.Tanh(a)))
		}, "a* b* | x"},
		{"read later is kept", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			a := g.Named("a", g.Relu(x))
			b := g.Named("b", g.Tanh(a))
			return nodes(g.Sum(b), g.Sum(a))
		}, "a* b* | x"},
		{"read twice within", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			a := g.Named("a", g.Relu(x))
			return nodes(g.Named("c", g.Mul(a, g.Named("b", g.Tanh(a)))))
		}, "a b c* | x"},
		{"a reader in between ends it", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			a := g.Named("a", g.Relu(x))
			b := g.Named("b", g.Tanh(a))
			s := g.Sum(a)
			return nodes(s, g.Named("c", g.Tanh(b)))
		}, "a* b* | x"},
		{"the first reader is no link", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			a := g.Named("a", g.Relu(x))
			return nodes(g.Sum(a), g.Named("b", g.Tanh(a)))
		}, ""},
		{"a sum of the chain joins later", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			a := g.Named("a", g.Relu(x))
			b := g.Named("b", g.Tanh(a))
			return nodes(g.Named("c", g.Add(b, g.Sum(b))))
		}, "a b* | x"},
		{"two chains meet", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			a := g.Named("a", g.Relu(x))
			b := g.Named("b", g.Tanh(x))
			return nodes(g.Named("d", g.Tanh(g.Named("c", g.Add(a, b)))))
		}, "a c d* | x b"},
		{"another shape ends it", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			one := g.Named("a", g.Relu(g.Variable("bias", graph.Init{}, 6)))
			return nodes(g.Named("b", g.Add(x, one)))
		}, ""},
		{"what repeats is not overwritten", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			return nodes(g.Named("b", g.Relu(g.Named("a", g.Add(g.Variable("bias", graph.Init{}, 6), x)))))
		}, "a b* | x"},
		{"one element a row is no link", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			one := g.SumAxis(x, 1, true)
			return nodes(g.Named("b", g.Relu(g.Named("a", g.Add(x, one)))))
		}, ""},
		{"behind a product nothing is overwritten", func(g *graph.Graph, x, w *graph.Node) []*graph.Node {
			p := g.Named("p", g.MatMul(x, w))
			return nodes(g.Named("b", g.Add(p, g.Tanh(x))))
		}, "p b*"},
		{"a product that is read later is kept", func(g *graph.Graph, x, w *graph.Node) []*graph.Node {
			p := g.Named("p", g.MatMul(x, w))
			b := g.Named("b", g.Tanh(p))
			return nodes(g.Named("c", g.Apply(graph.TanhGrad, graph.Attr{}, b, p)), g.Sum(p))
		}, "p* b c*"},
		{"a product is not a link", func(g *graph.Graph, x, w *graph.Node) []*graph.Node {
			a := g.Named("a", g.Relu(x))
			return nodes(g.Named("b", g.Tanh(g.Named("p", g.MatMul(a, w)))))
		}, "p b*"},
		{"eight at most", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			for i := range 10 {
				x = g.Named(string(rune('a'+i)), g.Tanh(x))
			}
			return nodes(x)
		}, "a b c d e f g h* | x\ni j* | h"},
		{"a view ends it", func(g *graph.Graph, x, _ *graph.Node) []*graph.Node {
			a := g.Named("a", g.Relu(x))
			v := g.Reshape(a, tensor.Dynamic, 2, 3)
			return nodes(g.Named("c", g.Tanh(g.Named("b", g.Relu(v)))))
		}, "b c* | reshape.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := graph.New(tensor.F32)
			out := c.build(g, g.Input("x", 6), g.Variable("w", graph.Init{}, 6, 6))
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			if got := chains(g, out...); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func nodes(n ...*graph.Node) []*graph.Node { return n }

// TestRepeats says which shapes are repeated whole.
func TestRepeats(t *testing.T) {
	const d = tensor.Dynamic
	for _, c := range []struct {
		x, shape tensor.Shape
		want     bool
	}{
		{tensor.Shape{}, tensor.Shape{d, 6}, true},
		{tensor.Shape{1}, tensor.Shape{d, 6}, true},
		{tensor.Shape{1, 1}, tensor.Shape{d, 6}, true},
		{tensor.Shape{6}, tensor.Shape{d, 6}, true},
		{tensor.Shape{1, 6}, tensor.Shape{d, 6}, true},
		{tensor.Shape{2, 6}, tensor.Shape{d, 2, 6}, true},
		{tensor.Shape{1, 2, 6}, tensor.Shape{d, 2, 6}, true},
		{tensor.Shape{2, 1}, tensor.Shape{d, 2, 6}, false},
		{tensor.Shape{d, 1}, tensor.Shape{d, 6}, false},
		{tensor.Shape{d, 6}, tensor.Shape{3, d, 6}, false},
		{tensor.Shape{2, 1, 6}, tensor.Shape{2, 3, 6}, false},
		{tensor.Shape{5}, tensor.Shape{d, 6}, false},
	} {
		if got := Repeats(c.x, c.shape); got != c.want {
			t.Errorf("%v to %v: %t, want %t", c.x, c.shape, got, c.want)
		}
	}
}
