// Package gradtest compares the gradients of every differentiable operator with
// central differences, in float64.
package gradtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/tensor"
)

// lossCase builds a scalar from variables and inputs. Values for the inputs
// come by name.
type lossCase struct {
	name  string
	build func(g *graph.Graph) *graph.Node
}

// weigh makes a scalar that depends on every element of n differently: the sum
// of a curved function of n, times fixed weights where n has them.
func weigh(g *graph.Graph, n *graph.Node) *graph.Node {
	if len(n.Shape) == 0 {
		return g.Sum(g.Square(n))
	}
	s := n.Shape.Clone()
	if !s.Static() {
		return g.Sum(g.Mul(g.Square(n), g.Sigmoid(n)))
	}
	return g.Sum(g.Mul(g.Tanh(n), g.Frozen("weights", graph.Init{}, s...)))
}

func gradientCases() []lossCase {
	v := func(g *graph.Graph, name string, shape ...int) *graph.Node {
		return g.Variable(name, graph.Init{}, shape...)
	}
	two := func(name string, f func(g *graph.Graph, a, b *graph.Node) *graph.Node, a, b []int) lossCase {
		return lossCase{name, func(g *graph.Graph) *graph.Node { return weigh(g, f(g, v(g, "a", a...), v(g, "b", b...))) }}
	}
	s := func(d ...int) []int { return d }
	cases := []lossCase{
		two("matmul", (*graph.Graph).MatMul, s(3, 4), s(4, 2)),
		two("matmul/ta", matMulT(true, false), s(4, 3), s(4, 2)),
		two("matmul/tb", matMulT(false, true), s(3, 4), s(2, 4)),
		two("matmul/tatb", matMulT(true, true), s(4, 3), s(2, 4)),
		two("concat", func(g *graph.Graph, a, b *graph.Node) *graph.Node { return g.Concat(a, b, a) }, s(3, 4), s(3, 2)),
		{"logisticloss", func(g *graph.Graph) *graph.Node {
			return g.LogisticLoss(g.MatMul(g.Input("in", 3), v(g, "w", 3, 1)), g.Input("unit", 0))
		}},
		{"squaredloss", func(g *graph.Graph) *graph.Node {
			return g.SquaredLoss(g.SumRows(g.MatMul(g.Input("in", 3), v(g, "w", 3, 2))), g.Input("unit", 0))
		}},
		{"softmaxloss", func(g *graph.Graph) *graph.Node {
			return g.Scale(g.SoftmaxLoss(g.MatMul(g.Input("in", 3), v(g, "w", 3, 4)), g.Input("class", 0)), 0.7)
		}},
		{"weighted/logistic", func(g *graph.Graph) *graph.Node { return model.Logistic(g, weighted("unit")).Loss }},
		{"weighted/linear", func(g *graph.Graph) *graph.Node { return model.Linear(g, weighted("unit")).Loss }},
		{"weighted/softmax", func(g *graph.Graph) *graph.Node { return model.Softmax(g, weighted("class")).Loss }},
		{"gather", func(g *graph.Graph) *graph.Node {
			x := g.Ragged("x")
			return weigh(g, g.Gather(v(g, "w", 6, 2), x.Pos()))
		}},
		{"bag", func(g *graph.Graph) *graph.Node {
			x := g.Ragged("x")
			return weigh(g, g.Bag(v(g, "w", 6, 2), x.IDs(), x.Offsets(), x.Weights()))
		}},
		{"table", func(g *graph.Graph) *graph.Node {
			x := g.Ragged("x")
			rows := g.GatherRows(g.Table("w", graph.Init{}, 9, 2), x.Keys())
			return weigh(g, g.Add(g.Bag(rows, x.Pos(), x.Offsets(), x.Weights()), v(g, "b", 2)))
		}},
	}
	for name, f := range map[string]func(g *graph.Graph, a, b *graph.Node) *graph.Node{
		"add": (*graph.Graph).Add, "sub": (*graph.Graph).Sub, "mul": (*graph.Graph).Mul,
	} {
		cases = append(cases, two(name+"/same", f, s(3, 4), s(3, 4)), two(name+"/row", f, s(3, 4), s(4)),
			two(name+"/column", f, s(3, 4), s(3, 1)), two(name+"/scalar", f, s(3, 4), s()))
	}
	return cases
}

// weighted is a linear model whose rows have weights, against labels of a kind.
func weighted(label string) model.Config {
	return model.Config{Inputs: []model.Column{{Name: "in", Dim: 3}}, Label: label, Weight: "weight", Classes: 4, Float: tensor.F64}
}

func matMulT(ta, tb bool) func(g *graph.Graph, a, b *graph.Node) *graph.Node {
	return func(g *graph.Graph, a, b *graph.Node) *graph.Node { return g.MatMulT(a, b, ta, tb) }
}

// Run compares what Differentiate emits, computed by the backend, with
// central differences of the loss, computed by the backend too: on fixed shapes,
// on random ones, and on batches of several rows, one and none.
func Run(t *testing.T, b compute.Backend) {
	t.Helper()
	for _, c := range append(gradientCases(), layerCases()...) {
		for _, rows := range []int{5, 1, 0} {
			t.Run(fmt.Sprintf("%s/%d", c.name, rows), func(t *testing.T) { gradientsOf(t, b, c, rows) })
		}
	}
	for seed := range uint64(24) {
		for _, c := range drawnCases(seed) {
			t.Run(fmt.Sprintf("%s/drawn/%d", c.name, seed), func(t *testing.T) { gradientsOf(t, b, c, int(seed%6)) })
		}
	}
	for seed := range uint64(16) {
		t.Run(fmt.Sprintf("composed/%d", seed), func(t *testing.T) {
			gradientsOf(t, b, composed(seed), 1+int(seed%4))
		})
	}
}

// layerCases are the layers as losses.
func layerCases() []lossCase {
	var cases []lossCase
	for _, l := range layers() {
		cases = append(cases, lossCase{l.name, func(g *graph.Graph) *graph.Node { return weigh(g, l.apply(g, l.batchOf(g))) }})
	}
	return cases
}

func gradientsOf(t *testing.T, b compute.Backend, c lossCase, rows int) {
	g := graph.New(tensor.F64)
	loss := c.build(g)
	grads, err := graph.Differentiate(g, loss)
	if err != nil {
		t.Fatal(err)
	}
	seg := &graph.Segment{Name: c.name, Out: []*graph.Node{loss}}
	for _, gr := range grads {
		seg.Out = append(seg.Out, gr.Grad)
	}
	vals := map[*graph.Node]*tensor.Tensor{}
	var in []*tensor.Tensor
	for _, n := range g.Nodes() {
		if !n.IsSource() {
			seg.Nodes = append(seg.Nodes, n)
			continue
		}
		vals[n] = gradientInput(n, rows)
		seg.In, in = append(seg.In, n), append(in, vals[n])
	}
	p, err := b.Compile(seg)
	if err != nil {
		t.Fatal(err)
	}
	out := outputs(seg)
	run := func(out []*tensor.Tensor) float64 {
		if err := p.Run(0, in, out); err != nil {
			t.Fatal(err)
		}
		return out[0].Scalar()
	}
	run(out)
	other := outputs(seg)
	for k, gr := range grads {
		at := func(i int) int { return i }
		if gr.Rows != nil {
			dim := gr.Of.Shape[1]
			keys := vals[gr.Rows.In[1]].I64()
			at = func(i int) int { return int(keys[i/dim])*dim + i%dim }
		}
		differences(t, gr.Of.Name, vals[gr.Of].F64(), out[k+1].F64(), at, func() float64 { return run(other) })
	}
}

// differences compares grad[i] with the slope of loss in p[at(i)]. The step
// balances the cubic error of the formula with rounding.
func differences(t *testing.T, name string, p, grad []float64, at func(int) int, loss func() float64) {
	t.Helper()
	const h = 1e-5
	for i, got := range grad {
		x := &p[at(i)]
		old := *x
		*x = old + h
		up := loss()
		*x = old - h
		down := loss()
		*x = old
		want := (up - down) / (2 * h)
		if d := math.Abs(got - want); !(d <= 1e-7*(1+math.Abs(want)+math.Abs(up))) {
			t.Errorf("gradient of %s[%d] is %v, differences say %v", name, at(i), got, want)
		}
	}
}

// gradientInput makes the values of a source: up to 5 rows, up to 8 entries, 6
// keys of 9.
func gradientInput(n *graph.Node, rows int) *tensor.Tensor {
	r := random(uint64(n.ID) + 1)
	offsets := []int64{0, 2, 2, 5, 7, 8}[:rows+1]
	entries := int(offsets[rows])
	switch n.Attr.Part {
	case graph.Offsets:
		return ints(offsets...)
	case graph.IDs, graph.Pos:
		return ints([]int64{0, 3, 3, 5, 1, 0, 2, 3}[:entries]...)
	case graph.Keys:
		return ints(0, 1, 4, 5, 7, 8)
	case graph.Weights:
		return fill(tensor.Shape{entries}, r.NormFloat64)
	case graph.Index:
		return ints([]int64{4, 9, 1, 0, 7}[:rows]...)
	case graph.Dense: // by its name
	}
	switch n.Name {
	case "unit", "weight":
		return fill(tensor.Shape{rows}, r.Float64)
	case "class":
		return fill(tensor.Shape{rows}, func() float64 { return float64(r.IntN(4)) })
	case "in":
		return fill(tensor.Shape{rows, 3}, r.NormFloat64)
	}
	return fill(n.Shape, r.NormFloat64)
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }

func fill(s tensor.Shape, f func() float64) *tensor.Tensor {
	t := tensor.New(tensor.F64, s...)
	for i := range t.F64() {
		t.F64()[i] = f()
	}
	return t
}

func ints(v ...int64) *tensor.Tensor { return tensor.From(v, len(v)) }

func outputs(seg *graph.Segment) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, n := range seg.Out {
		out = append(out, tensor.New(n.DType, 0))
	}
	return out
}
