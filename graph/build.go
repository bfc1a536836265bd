package graph

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/graph/internal/line"
	"github.com/gangline/gangline/graph/shape"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// MaxElems bounds the elements of a value, dynamic dims not counted, so that no
// size computed from a shape overflows.
const MaxElems = shape.MaxElems

// MaxNodes bounds the nodes of a graph.
const MaxNodes = 1 << 16

// New returns an empty graph whose float values are of type float, F32 or F64; or,
// for BF16 or F16, one of mixed precision: see mixed.go.
//
// Its methods append nodes and return them. They never panic on bad input:
// the first mistake is kept for Err, and every later method does nothing and
// returns a node that stands for "no value". A model function so reads like
// mathematics and checks Err once, at its end.
func New(float tensor.DType) *Graph {
	g := &Graph{
		Float: float, LossScale: optim.DefaultLossScale(), ops: specs(),
		byName: map[string]*Node{}, rows: map[*Node]*Node{}, casts: map[*Node]*Node{},
	}
	switch {
	case float.IsHalf():
		g.Float, g.Low = tensor.F32, float
	case !float.IsFloat():
		g.fail("float type %v: want f32, f64, bf16 or f16", float)
	}
	return g
}

// Err returns the first mistake made in building the graph, or nil.
func (g *Graph) Err() error {
	if g.err == nil {
		return nil
	}
	return fmt.Errorf("graph: %w", g.err)
}

// Nodes returns all nodes in topological order. The caller must not change the list.
func (g *Graph) Nodes() []*Node { return g.nodes }

// ByName returns the node of that name, or nil.
func (g *Graph) ByName(name string) *Node { return g.byName[name] }

// IsSource reports whether a plan provides the node's value, rather than a
// segment that computes it: Input, Variable, Table, SlotVar, Total.
func (n *Node) IsSource() bool {
	return n.Op == Input || n.Op == Variable || n.Op == Table || n.Op == SlotVar || n.Op == Total
}

// fail keeps the first mistake and returns the node that stands for no value.
func (g *Graph) fail(format string, args ...any) *Node {
	if g.err == nil {
		g.err = fmt.Errorf(format, args...)
	}
	return &Node{ID: -1}
}

// owns reports whether n is a node of this graph.
func (g *Graph) owns(n *Node) bool {
	return n != nil && n.ID >= 0 && n.ID < len(g.nodes) && g.nodes[n.ID] == n
}

// Apply appends a node of any operator, under a name made of the operator and
// the node's ID. Forward operators have methods of their own; Apply is for
// gradients and for code that goes over all operators.
func (g *Graph) Apply(op Op, attr Attr, in ...*Node) *Node { return g.add("", op, attr, in...) }

// add appends a node after checking everything that can be known of it.
// An empty name asks for one. Settings that the operator does not read are
// dropped, so that equal nodes have equal settings.
func (g *Graph) add(name string, op Op, attr Attr, in ...*Node) *Node {
	if g.err != nil {
		return &Node{ID: -1}
	}
	in = g.autocast(op, in)
	n := &Node{ID: len(g.nodes), Name: name, Op: op, In: slices.Clone(in), DType: g.resultType(op, in)}
	if err := g.nameNode(n, attr); err != nil {
		return g.fail("%w", err)
	}
	for i, x := range in {
		if !g.owns(x) {
			return g.fail("node %q: %s: input %d is not a node of this graph", n.Name, op, i)
		}
	}
	sp := g.ops[op]
	n.Attr = canonical(op, attr)
	err := sp.checkInputs(g, in)
	if err == nil {
		n.Shape, err = sp.infer(op, in, &n.Attr)
	}
	if err == nil {
		err = shape.CheckSize(n.Shape)
	}
	if err == nil {
		err = checkAttr(&n.Attr)
	}
	if err == nil {
		err = g.checkReads(n)
	}
	if err != nil {
		return g.fail("node %q: %s: %w", n.Name, describe(op, in), err)
	}
	if op == Input && n.Attr.Part.isIndex() {
		n.DType = tensor.I64
	}
	g.nodes = append(g.nodes, n)
	g.byName[n.Name] = n
	return n
}

// nameNode sees to it that n has a name that no other node has. An input's
// name follows from its column and part.
func (g *Graph) nameNode(n *Node, attr Attr) error {
	if _, ok := g.ops[n.Op]; !ok {
		return fmt.Errorf("node %q: unknown operator %q", n.Name, n.Op)
	}
	if n.Op == Input {
		want := inputName(attr.Column, attr.Part)
		if n.Name != "" && n.Name != want {
			return fmt.Errorf("node %q: an input of part %s of column %q is named %q", n.Name, attr.Part, attr.Column, want)
		}
		n.Name = want
	}
	if n.Name == "" {
		n.Name = string(n.Op) + "." + strconv.Itoa(n.ID)
		for g.byName[n.Name] != nil {
			n.Name += "_"
		}
	}
	if o := g.byName[n.Name]; o != nil {
		return fmt.Errorf("node %q: a %s %v: the name is taken by a %s %v", n.Name, n.Op, attr.Shape, o.Op, o.Shape)
	}
	if n.ID >= MaxNodes {
		return fmt.Errorf("node %q: more than %d nodes", n.Name, MaxNodes)
	}
	return nil
}

// describe writes an application of an operator with the shapes of its inputs.
func describe(op Op, in []*Node) string {
	parts := make([]string, len(in))
	for i, x := range in {
		parts[i] = x.Name + " " + x.Shape.String()
	}
	return string(op) + "(" + strings.Join(parts, ", ") + ")"
}

// checkAttr refuses numbers that are not finite and unknown distributions.
func checkAttr(a *Attr) error {
	for _, v := range []float64{a.Alpha, a.Value, a.Init.Scale, a.Eps, a.Rate} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v is not a finite number", v)
		}
	}
	switch a.Init.Kind {
	case "", Zeros, Uniform, Normal, Constant:
	default:
		return fmt.Errorf("unknown initial values %q: want %s, %s, %s or %s",
			a.Init.Kind, Zeros, Uniform, Normal, Constant)
	}
	if a.Init.Scale < 0 && a.Init.Kind != Constant {
		return fmt.Errorf("the scale %v of %s initial values is negative", a.Init.Scale, a.Init.Kind)
	}
	return nil
}

// checkReads refuses what only the whole graph shows: one column read as dense
// and as ragged, a table read through two lists of keys, a second total.
func (g *Graph) checkReads(n *Node) error {
	switch n.Op {
	case Input:
		other := []Part{Dense}
		if n.Attr.Part == Dense {
			other = []Part{Offsets, IDs, Weights, Keys, Pos}
		}
		for _, p := range other {
			if o := g.byName[inputName(n.Attr.Column, p)]; o != nil && o.Op == Input && o.Attr.Column == n.Attr.Column {
				return fmt.Errorf("column %q is read as %s by %q and as %s here", n.Attr.Column, p, o.Name, n.Attr.Part)
			}
		}
	case GatherRows:
		if o := g.rows[n.In[0]]; o != nil {
			return fmt.Errorf("table %q is read already, through keys %q: a table has one list of keys",
				o.In[0].Name, o.In[1].Name)
		}
		g.rows[n.In[0]] = n
	case Total:
		if g.total != nil {
			return fmt.Errorf("the graph has a total already, %q", g.total.Name)
		}
		g.total = n
	}
	return nil
}

// Named gives a computed node a name of the caller's and returns it.
func (g *Graph) Named(name string, n *Node) *Node {
	if g.err != nil {
		return n
	}
	if err := line.CheckName(name); err != nil {
		return g.fail("%w", err)
	}
	if !g.owns(n) || n.IsSource() {
		return g.fail("name %q: want a computed node of this graph", name)
	}
	if g.byName[name] != nil {
		return g.fail("name %q is taken by a %s", name, g.byName[name].Op)
	}
	g.rename(name, n)
	return n
}

func (g *Graph) rename(name string, n *Node) {
	delete(g.byName, n.Name)
	n.Name = name
	g.byName[name] = n
}
