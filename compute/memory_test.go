package compute_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// machine computes the few operators of these tests on float64, in place where it
// may, and groups element by element: what differs from plain reckoning is the
// work of Build.
func machine(fuse func(seg *graph.Segment) []compute.Group) compute.Options {
	return compute.Options{
		Reuse: true, Fuse: fuse,
		InPlace: func(n *graph.Node) []int { return []int{0, 1}[:len(n.In)] },
		Kernel: func(n *graph.Node) (compute.Kernel, error) {
			k := elements(compute.Group{Nodes: []*graph.Node{n}, Kept: []bool{true}})
			return func(c *compute.Call) error { return k([]*compute.Call{c}) }, nil
		},
		Fused: func(g compute.Group) (compute.GroupKernel, error) { return elements(g), nil },
	}
}

// elements computes a group as a kernel of chains does: what is not kept is handed
// on and not written.
func elements(g compute.Group) compute.GroupKernel {
	return func(calls []*compute.Call) error {
		for i := range calls[0].Out.Elems() {
			at := map[*graph.Node]float64{}
			for j, c := range calls {
				var in [2]float64
				for k, n := range c.Node.In {
					v, ok := at[n]
					if !ok {
						x := c.In[k].F64()
						v = x[i%len(x)]
					}
					in[k] = v
				}
				v := in[0]
				switch c.Node.Op {
				case graph.Add:
					v += in[1]
				case graph.Mul:
					v *= in[1]
				case graph.Scale:
					v *= c.Node.Attr.Alpha
				}
				at[g.Nodes[j]] = v
				if g.Kept[j] {
					c.Out.F64()[i] = v
				}
			}
		}
		return nil
	}
}

// group makes a group of named nodes; those with a star are kept, and those
// behind a bar may be overwritten.
func group(g *graph.Graph, text string) func(*graph.Segment) []compute.Group {
	return func(*graph.Segment) []compute.Group {
		var all compute.Group
		names, over, _ := strings.Cut(text, "|")
		for name := range strings.FieldsSeq(names) {
			n, kept := strings.CutSuffix(name, "*")
			all.Nodes, all.Kept = append(all.Nodes, g.ByName(n)), append(all.Kept, kept)
		}
		for name := range strings.FieldsSeq(over) {
			all.InPlace = append(all.InPlace, g.ByName(name))
		}
		return []compute.Group{all}
	}
}

// TestViewsAndGroups compares programs that share memory with ones in which every
// value has its own, run on batches that grow and shrink; inputs stay as they were.
func TestViewsAndGroups(t *testing.T) {
	type nodes = []*graph.Node
	type builder struct {
		g    *graph.Graph
		x, y *graph.Node
	}
	twice := func(b builder, name string, x *graph.Node) *graph.Node { return b.g.Named(name, b.g.Scale(x, 2)) }
	for _, c := range []struct {
		name  string
		build func(b builder) nodes
		group string
	}{
		{"a view of an input is not written over", func(b builder) nodes {
			return nodes{b.g.Scale(b.g.Scale(b.g.Reshape(b.x, -1, 2, 3), 2), 3), b.g.Scale(b.x, 5)}
		}, ""},
		{"a view of an output is not written over", func(b builder) nodes {
			a := twice(b, "a", b.x)
			v := b.g.Reshape(a, -1, 2, 3)
			return nodes{a, b.g.Scale(b.g.Scale(v, 3), 5)}
		}, ""},
		{"a view that is an output is a copy", func(b builder) nodes {
			a := twice(b, "a", b.x)
			v := b.g.Reshape(a, -1, 2, 3)
			return nodes{v, b.g.Scale(b.g.Scale(b.g.Scale(a, 3), 5), 7)}
		}, ""},
		{"a view of a view is read later", func(b builder) nodes {
			a := twice(b, "a", b.x)
			v := b.g.Reshape(b.g.Reshape(a, -1, 2, 3), -1, 3)
			late := b.g.Scale(b.g.Scale(a, 3), 5)
			return nodes{late, b.g.Scale(v, 7)}
		}, ""},
		{"a value whose view is read later", func(b builder) nodes {
			a := twice(b, "a", b.x)
			v := b.g.Reshape(a, -1, 3, 2)
			c := b.g.Add(a, b.y)
			d := b.g.Mul(c, b.x)
			return nodes{b.g.Scale(d, 3), b.g.Scale(v, 3)}
		}, ""},
		{"in place on a view", func(b builder) nodes {
			a := b.g.Add(b.x, b.y)
			v := b.g.Scale(b.g.Reshape(a, -1, 2, 3), 3)
			w := b.g.Scale(b.g.Reshape(v, -1, 6), 5)
			return nodes{b.g.Mul(w, b.x)}
		}, ""},
		{"both operands are views of one value", func(b builder) nodes {
			a := b.g.Add(b.x, b.y)
			return nodes{b.g.Scale(b.g.Mul(b.g.Reshape(a, -1, 2, 3), b.g.Reshape(a, -1, 2, 3)), 3)}
		}, ""},
		{"a shape that is given by another value", func(b builder) nodes {
			a := twice(b, "a", b.x)
			like := b.g.Apply(graph.ReshapeLike, graph.Attr{}, a, b.g.Reshape(b.y, -1, 3))
			return nodes{b.g.Scale(b.g.Scale(like, 3), 5), b.g.Scale(a, 7)}
		}, ""},
		{"a group hands on what is not kept", func(b builder) nodes {
			return nodes{b.g.Named("c", b.g.Add(twice(b, "b", twice(b, "a", b.x)), b.y))}
		}, "a b c* | x y"},
		{"a group does not write over what is read later", func(b builder) nodes {
			p := twice(b, "p", b.x)
			c := b.g.Named("c", b.g.Add(twice(b, "a", p), b.y))
			return nodes{b.g.Scale(c, 3), b.g.Scale(p, 3)}
		}, "a c* | p y"},
		{"a group writes over its input", func(b builder) nodes {
			p := twice(b, "p", b.x)
			c := b.g.Named("c", b.g.Mul(twice(b, "a", p), p))
			return nodes{b.g.Scale(c, 3)}
		}, "a c* | p"},
		{"a kept value of a group has memory of its own", func(b builder) nodes {
			p := twice(b, "p", b.x)
			a := twice(b, "a", p)
			c := b.g.Named("c", b.g.Mul(a, p))
			return nodes{b.g.Scale(c, 3), b.g.Scale(a, 3)}
		}, "a* c* | p"},
		{"a group reads what was computed in its midst", func(b builder) nodes {
			a := twice(b, "a", b.x)
			q := b.g.Scale(b.y, 3)
			c := b.g.Named("c", b.g.Mul(a, q))
			r := b.g.Scale(q, 5)
			return nodes{b.g.Scale(c, 3), r}
		}, "a c* | x q"},
		{"a view of a kept value of a group", func(b builder) nodes {
			a := twice(b, "a", b.x)
			c := b.g.Named("c", b.g.Mul(a, b.y))
			v := b.g.Reshape(a, -1, 2, 3)
			w := b.g.Scale(c, 3)
			return nodes{b.g.Scale(w, 3), b.g.Scale(v, 3), b.g.Scale(v, 5)}
		}, "a* c* | x y"},
		{"a group behind a view", func(b builder) nodes {
			p := twice(b, "p", b.x)
			v := b.g.Named("v", b.g.Reshape(p, -1, 2, 3))
			c := b.g.Named("c", b.g.Scale(twice(b, "a", v), 3))
			return nodes{b.g.Scale(c, 3), b.g.Scale(p, 3)}
		}, "a c* | v"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := graph.New(tensor.F64)
			b := builder{g, g.Input("x", 6), g.Input("y", 6)}
			seg := &graph.Segment{Name: "seg", In: nodes{b.x, b.y}, Out: c.build(b)}
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			seg.Nodes = g.Nodes()[2:]
			var fuse func(*graph.Segment) []compute.Group
			if c.group != "" {
				fuse = group(g, c.group)
			}
			fast := machine(fuse)
			slow := compute.Options{Kernel: fast.Kernel}
			p, q := build(t, seg, fast), build(t, seg, slow)
			for _, rows := range []int{2, 0, 5, 1, 3} {
				in := []*tensor.Tensor{counted(rows, 1), counted(rows, 100)}
				got, want := results(seg), results(seg)
				for range 2 {
					run(t, p, in, got)
				}
				if !slices.Equal(in[0].F64(), counted(rows, 1).F64()) || !slices.Equal(in[1].F64(), counted(rows, 100).F64()) {
					t.Fatalf("%d rows: an input was changed", rows)
				}
				run(t, q, in, want)
				for i := range got {
					if !got[i].Shape().Equal(want[i].Shape()) || !slices.Equal(got[i].F64(), want[i].F64()) {
						t.Errorf("%d rows: output %d is %v %v, want %v %v", rows, i, got[i].Shape(), got[i].F64(), want[i].Shape(), want[i].F64())
					}
				}
			}
		})
	}
}

// TestViewsCostNothing proves that a view calls no kernel, and that a chain of
// in-place operators through views uses one tensor's memory.
func TestViewsCostNothing(t *testing.T) {
	g := graph.New(tensor.F64)
	x := g.Input("x", 6)
	a := g.Scale(x, 2)
	c := g.Scale(g.Reshape(g.Scale(g.Reshape(a, -1, 2, 3), 3), -1, 3), 5)
	out := g.Scale(c, 7)
	seg := &graph.Segment{Name: "seg", In: []*graph.Node{x}, Nodes: g.Nodes()[1:], Out: []*graph.Node{out}}
	o := machine(nil)
	kernel, memory, calls := o.Kernel, map[*float64]bool{}, 0
	o.Kernel = func(n *graph.Node) (compute.Kernel, error) {
		k, err := kernel(n)
		return func(c *compute.Call) error {
			calls++
			memory[&c.Out.F64()[0]] = true
			return k(c)
		}, err
	}
	run(t, build(t, seg, o), []*tensor.Tensor{counted(2, 1)}, results(seg))
	if calls != 4 || len(memory) != 2 {
		t.Errorf("%d calls and %d tensors, want 4 and 2: the result and one for all before", calls, len(memory))
	}
}

func build(t *testing.T, seg *graph.Segment, o compute.Options) compute.Program {
	t.Helper()
	p, err := compute.Build(seg, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t *testing.T, p compute.Program, in, out []*tensor.Tensor) {
	t.Helper()
	if err := p.Run(0, in, out); err != nil {
		t.Fatal(err)
	}
}

// counted is a tensor of rows of 6 that counts from a number.
func counted(rows, from int) *tensor.Tensor {
	t := tensor.New(tensor.F64, rows, 6)
	for i := range t.F64() {
		t.F64()[i] = float64(from + i)
	}
	return t
}

func results(seg *graph.Segment) (out []*tensor.Tensor) {
	for range seg.Out {
		out = append(out, tensor.New(tensor.F64, 0))
	}
	return out
}
