package ref_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// sketch is a model family in a few lines: x [? dim], or ids of width a row.
type sketch struct {
	dim, ids, classes int
	logits            func(g *graph.Graph) *graph.Node
}

func weights(g *graph.Graph, name string, shape ...int) *graph.Node {
	return g.Variable(name, graph.Init{Kind: graph.Normal, Scale: .3, Seed: 1}, shape...)
}

// fields are the vectors of 4 ids a row, [? 4 dim].
func fields(g *graph.Graph, name string, dim int) *graph.Node {
	c := g.Ragged("c")
	rows := g.GatherRows(g.Table(name, graph.Init{Kind: graph.Normal, Scale: .3, Seed: 2}, 9, dim), c.Keys())
	return g.Reshape(g.Gather(rows, c.Pos()), tensor.Dynamic, 4, dim)
}

func dense(g *graph.Graph, name string, x *graph.Node, in, out int) *graph.Node {
	return g.Add(g.MatMul(x, weights(g, name, in, out)), g.Variable(name+".bias", graph.Init{}, out))
}

func sketches() map[string]sketch {
	return map[string]sketch{
		"fm": {ids: 4, logits: func(g *graph.Graph) *graph.Node {
			return g.Add(g.FMInteraction(fields(g, "v", 3)), g.SumAxis(g.Reshape(fields(g, "w", 1), -1, 4), 1, false))
		}},
		"deepfm": {ids: 4, logits: func(g *graph.Graph) *graph.Node {
			v := fields(g, "v", 3)
			deep := dense(g, "out", g.Relu(dense(g, "hidden", g.Reshape(v, -1, 12), 12, 8)), 8, 1)
			return g.Add(g.FMInteraction(v), g.Reshape(deep, -1))
		}},
		"dlrm": {dim: 6, ids: 4, logits: func(g *graph.Graph) *graph.Node {
			bottom := g.Relu(dense(g, "bottom", g.Input("x", 6), 6, 3))
			all := g.ConcatAxis(1, g.Reshape(bottom, -1, 1, 3), fields(g, "v", 3))
			return g.Reshape(dense(g, "top", g.Concat(bottom, g.DotInteraction(all)), 13, 1), -1)
		}},
		"cnn": {dim: 64, classes: 3, logits: func(g *graph.Graph) *graph.Node {
			x := g.Reshape(g.Input("x", 64), -1, 1, 8, 8)
			h := g.Relu(g.Add(g.Conv2D(x, weights(g, "k", 4, 1, 3, 3), 1, 1), g.Variable("kb", graph.Init{}, 4, 1, 1)))
			h = g.AvgPool2D(g.MaxPool2D(h, 2, 0), 2, 0)
			return dense(g, "out", g.Dropout(g.Reshape(h, -1, 16), .1, 3), 16, 3)
		}},
		"gpt": {ids: 5, classes: 9, logits: func(g *graph.Graph) *graph.Node {
			const s, d, heads = 5, 8, 2
			ones := graph.Init{Kind: graph.Constant, Scale: 1}
			gain := func(name string) *graph.Node { return g.Variable(name, ones, d) }
			bias := func(name string) *graph.Node { return g.Variable(name, graph.Init{}, d) }
			x := g.Reshape(g.Gather(weights(g, "tokens", 9, d), g.Ragged("c").IDs()), -1, s, d)
			x = g.Add(x, weights(g, "positions", s, d))
			n := g.LayerNorm(x, gain("g1"), bias("b1"), 1e-5)
			head := func(name string) *graph.Node {
				return g.Reshape(g.MatMul(n, weights(g, name, d, d)), -1, s, heads, d/heads)
			}
			a := g.Reshape(g.CausalAttention(head("q"), head("k"), head("v")), -1, s, d)
			x = g.Add(x, g.MatMul(a, weights(g, "proj", d, d)))
			n = g.LayerNorm(x, gain("g2"), bias("b2"), 1e-5)
			x = g.Add(x, g.MatMul(g.Gelu(g.MatMul(n, weights(g, "up", d, 2*d))), weights(g, "down", 2*d, d)))
			x = g.Reshape(g.LayerNorm(x, gain("g3"), bias("b3"), 1e-5), -1, d)
			return g.MatMulT(x, weights(g, "head", 9, d), false, true)
		}},
	}
}

// TestModelFamilies proves that the operators make up the model families: the
// loss of each falls within a few steps on ten fixed examples.
func TestModelFamilies(t *testing.T) {
	for name, k := range sketches() {
		t.Run(name, func(t *testing.T) {
			g := graph.New(tensor.F32)
			z, y := k.logits(g), g.Input("y", 0)
			m := graph.Model{Task: graph.Binary, Weight: g.Count(y), Predict: z, Label: y}
			if k.classes > 0 {
				m.Task, m.Loss = graph.Multiclass, g.SoftmaxLoss(z, y)
			} else {
				m.Loss = g.LogisticLoss(z, y)
			}
			s, err := graph.Train(g, m, optim.Rule{Kind: optim.Adam, LR: .03})
			if err != nil {
				t.Fatal(err)
			}
			run := runner(t, s, examples(k, name == "gpt"))
			first, last := run(0), 0.0
			for step := range int64(60) {
				last = run(step + 1)
			}
			if !(last < first*.6) {
				t.Errorf("the loss went from %v to %v", first, last)
			}
		})
	}
}

// examples are values for the inputs that a sketch may read.
func examples(k sketch, perID bool) map[string]*tensor.Tensor {
	const rows = 10
	r := rand.New(rand.NewPCG(3, 4))
	n := rows
	if perID {
		n *= k.ids
	}
	x, y := tensor.New(tensor.F32, rows, k.dim), tensor.New(tensor.F32, n)
	for i := range x.F32() {
		x.F32()[i] = float32(r.NormFloat64())
	}
	for i := range y.F32() {
		y.F32()[i] = float32(r.IntN(max(2, k.classes)))
	}
	ids, keys, index := tensor.New(tensor.I64, rows*k.ids), tensor.New(tensor.I64, 9), tensor.New(tensor.I64, rows)
	for i := range ids.I64() {
		ids.I64()[i] = int64(r.IntN(9))
		if perID {
			y.F32()[i] = float32((ids.I64()[i]*2 + 1) % 9) // the next token
		}
	}
	for i := range keys.I64() {
		keys.I64()[i] = int64(i)
	}
	for i := range index.I64() {
		index.I64()[i] = int64(i)
	}
	return map[string]*tensor.Tensor{"x": x, "y": y, "c.ids": ids, "c.pos": ids, "c.keys": keys, "batch.index": index}
}

// runner returns a function that does one step and returns its loss.
func runner(t *testing.T, s *graph.Step, vals map[string]*tensor.Tensor) func(step int64) float64 {
	value := func(n *graph.Node) *tensor.Tensor {
		v := vals[n.Name]
		if v == nil {
			v = tensor.New(n.DType, 0)
			if n.Op == graph.Variable || n.Op == graph.Table || n.Op == graph.SlotVar || n.Op == graph.Total {
				v.Resize(n.Shape...)
				graph.Fill(n.Attr.Init, n.Name, 0, v.F32())
			}
			vals[n.Name] = v
		}
		return v
	}
	var order []int
	for _, p := range s.Params {
		if p.IsTable() {
			order = append(order, p.Gather)
		}
	}
	order = append(order, s.Forward...)
	for _, p := range s.Params {
		order = append(order, p.Update)
	}
	var steps []func(step int64) error
	for _, i := range append(order, s.Eval) {
		seg := &s.Segments[i]
		p, err := ref.New().Compile(seg)
		if err != nil {
			t.Fatal(err)
		}
		var in, out []*tensor.Tensor
		for _, n := range seg.In {
			in = append(in, value(n))
		}
		for _, n := range seg.Out {
			out = append(out, value(n))
		}
		steps = append(steps, func(step int64) error { return p.Run(step, in, out) })
	}
	return func(step int64) float64 {
		vals[s.Total.Name].SetScalar(10)
		for _, run := range steps {
			if err := run(step); err != nil {
				t.Fatal(err)
			}
		}
		return vals[s.Model.Loss.Name].Scalar() // of the evaluation, the last to run
	}
}
