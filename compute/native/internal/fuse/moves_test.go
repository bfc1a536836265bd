package fuse

import (
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// TestMoves says which copies are saved: the group's nodes, only the last kept.
func TestMoves(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(g *graph.Graph, rows, at, x *graph.Node) []*graph.Node
		want  string
	}{
		{"gathers join, in any shape of whole rows", func(g *graph.Graph, rows, at, x *graph.Node) []*graph.Node {
			a := g.Named("a", g.Reshape(g.Named("ga", g.Gather(rows, at)), tensor.Dynamic, 2, 4))
			b := g.Named("b", g.Gather(rows, at))
			return nodes(g.Named("c", g.ConcatAxis(1, g.Reshape(x, tensor.Dynamic, 1, 4), a)), g.Named("d", g.Concat(x, b)))
		}, "ga a c*\nb d*"},
		{"a gather that is read again stays", func(g *graph.Graph, rows, at, x *graph.Node) []*graph.Node {
			a := g.Gather(rows, at)
			return nodes(g.Concat(x, a), g.Sum(a))
		}, ""},
		{"one that is read twice as well", func(g *graph.Graph, rows, at, _ *graph.Node) []*graph.Node {
			a := g.Gather(rows, at)
			return nodes(g.Concat(a, a))
		}, ""},
		{"and one that is an output", func(g *graph.Graph, rows, at, x *graph.Node) []*graph.Node {
			a := g.Gather(rows, at)
			return nodes(g.Concat(x, a), a)
		}, ""},
		{"parts of rows do not join", func(g *graph.Graph, rows, at, x *graph.Node) []*graph.Node {
			return nodes(g.Concat(g.Reshape(g.Gather(rows, at), tensor.Dynamic, 2), x))
		}, ""},
		{"dot products join", func(g *graph.Graph, _, _, x *graph.Node) []*graph.Node {
			p := g.Named("p", g.DotInteraction(g.Named("v", g.Reshape(x, tensor.Dynamic, 2, 2))))
			return nodes(g.Named("c", g.Concat(x, p)))
		}, "p c*"},
		{"a gradient cuts rows", func(g *graph.Graph, rows, at, x *graph.Node) []*graph.Node {
			s := g.Named("s", g.Slice(g.Concat(x, x), 2, 6))
			return nodes(g.Named("d", g.Apply(graph.GatherGrad, graph.Attr{}, s, at, rows)))
		}, "s d*"},
		{"and dot products", func(g *graph.Graph, _, _, x *graph.Node) []*graph.Node {
			s := g.Named("s", g.Slice(x, 3, 4))
			return nodes(g.Named("d", g.Apply(graph.DotInteractionGrad, graph.Attr{}, g.Reshape(x, tensor.Dynamic, 2, 2), s)))
		}, "s d*"},
		{"a piece that is read again stays", func(g *graph.Graph, rows, at, x *graph.Node) []*graph.Node {
			s := g.Slice(g.Concat(x, x), 2, 6)
			return nodes(g.Apply(graph.GatherGrad, graph.Attr{}, s, at, rows), g.Sum(s))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := graph.New(tensor.F32)
			cat := g.Ragged("cat")
			rows := g.GatherRows(g.Table("embed", graph.Init{}, 9, 4), cat.Keys())
			out := c.build(g, rows, cat.Pos(), g.Input("x", 4))
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			if got := chains(g, out...); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
