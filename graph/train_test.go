package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/flops"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

var sgd = optim.Rule{Kind: optim.SGD, LR: .1}

// twoLayers is the smallest model with a hidden layer.
func twoLayers() (*graph.Graph, graph.Model) {
	g := graph.New(tensor.F32)
	x, y := g.Input("x", 4), g.Input("label", 0)
	w1, b1 := g.Variable("w1", graph.Init{}, 4, 3), g.Variable("b1", graph.Init{}, 3)
	w2, b2 := g.Variable("w2", graph.Init{}, 3, 1), g.Variable("b2", graph.Init{}, 1)
	h := g.Relu(g.Add(g.MatMul(x, w1), b1))
	z := g.Reshape(g.Add(g.MatMul(h, w2), b2), tensor.Dynamic)
	return g, graph.Model{Task: graph.Binary, Loss: g.LogisticLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}
}

// sparse reads two tables through one list of keys.
func sparse() (*graph.Graph, graph.Model) {
	g := graph.New(tensor.F64)
	x, y := g.Ragged("x"), g.Input("label", 0)
	wide, embed := g.Table("wide", graph.Init{}, 100, 1), g.Table("embed", graph.Init{Kind: graph.Normal, Scale: .1}, 100, 2)
	rows := g.GatherRows(embed, x.Keys())
	bag := g.Bag(rows, x.Pos(), x.Offsets(), x.Weights())
	again := g.Bag(g.GatherRows(embed, x.Keys()), x.Pos(), x.Offsets(), x.Weights())
	line := g.Bag(g.GatherRows(wide, x.Keys()), x.Pos(), x.Offsets(), x.Weights())
	z := g.Add(g.SumRows(g.Mul(bag, again)), g.Reshape(line, tensor.Dynamic))
	return g, graph.Model{Task: graph.Binary, Loss: g.LogisticLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}
}

func names(nodes []*graph.Node) string {
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		parts[i] = n.Name
	}
	return strings.Join(parts, " ")
}

// inOut lists the segments, each as name: inputs -> outputs.
func inOut(s *graph.Step) []string {
	var all []string
	for _, seg := range s.Segments {
		all = append(all, seg.Name+": "+names(seg.In)+" -> "+names(seg.Out))
	}
	return all
}

func train(t *testing.T, build func() (*graph.Graph, graph.Model), rule optim.Rule) *graph.Step {
	t.Helper()
	g, m := build()
	s, err := graph.Train(g, m, rule)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTrainCutsAfterEachGradient fixes the segments of a small model: each
// forward segment ends with one gradient, last layer first, and delivers
// besides only what later ones read.
func TestTrainCutsAfterEachGradient(t *testing.T) {
	s := train(t, twoLayers, optim.Rule{Kind: optim.Momentum, LR: .1})
	want := []string{
		"forward/b2: x label w1 b1 w2 b2 -> relu.8 logisticloss.12 count.13 logisticgrad.15 b2/grad",
		"forward/w2: relu.8 logisticgrad.15 -> w2/grad",
		"forward/b1: b1 w2 relu.8 logisticgrad.15 -> relugrad.20 b1/grad",
		"forward/w1: x relugrad.20 -> w1/grad",
		"update/b2: b2 b2/grad total b2/velocity -> b2 b2/velocity",
		"update/w2: w2 w2/grad total w2/velocity -> w2 w2/velocity",
		"update/b1: b1 b1/grad total b1/velocity -> b1 b1/velocity",
		"update/w1: w1 w1/grad total w1/velocity -> w1 w1/velocity",
		"eval: x label w1 b1 w2 b2 -> logisticloss.12 count.13 reshape.11",
	}
	if diff := cmp.Diff(want, inOut(s)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3}, s.Forward); diff != "" {
		t.Error(diff)
	}
}

// TestTrainTables proves that both readers of the embedding meet in one
// gradient, that step and evaluation share the gather, and that slots say how
// they start.
func TestTrainTables(t *testing.T) {
	s := train(t, sparse, optim.Rule{Kind: optim.Adagrad, LR: .1, InitialAccumulator: .5})
	want := []string{
		"gather/wide: wide x.keys -> wide/rows",
		"gather/embed: embed x.keys -> embed/rows",
		"forward/wide: label embed/rows x.pos x.offsets x.weights wide/rows -> logisticloss.16 count.17 mul.22 mul.23 wide/grad",
		"forward/embed: embed/rows x.pos x.offsets x.weights mul.22 mul.23 -> embed/grad",
		"update/wide: wide x.keys wide/grad total wide/accumulator -> wide wide/accumulator",
		"update/embed: embed x.keys embed/grad total embed/accumulator -> embed embed/accumulator",
		"eval: label embed/rows x.pos x.offsets x.weights wide/rows -> logisticloss.16 count.17 add.15",
	}
	if diff := cmp.Diff(want, inOut(s)); diff != "" {
		t.Error(diff)
	}
	for _, p := range s.Params {
		if !p.IsTable() || p.Keys.Name != "x.keys" || p.EvalGather != p.Gather || s.Segments[p.Gather].Out[0] != p.Rows {
			t.Errorf("%s: %+v", p.Var.Name, p)
		}
		slot := p.Slots[0]
		if slot.Attr.Value != .5 || slot.Attr.Init != (graph.Init{Kind: graph.Constant, Scale: .5}) || !slot.Shape.Equal(p.Var.Shape) {
			t.Errorf("%v", slot)
		}
	}
}

// TestGradientIsNobodyElses proves that a parameter's gradient is a node of its
// own, even where mathematics gives the same value to two parameters and to
// the nodes before them: a plan sums gradients in place.
func TestGradientIsNobodyElses(t *testing.T) {
	s := train(t, func() (*graph.Graph, graph.Model) {
		g := graph.New(tensor.F32)
		x, y := g.Input("x", 2), g.Input("label", 0)
		a, b := g.Variable("a", graph.Init{}, 3, 2), g.Variable("b", graph.Init{}, 3, 2)
		c, d := g.Variable("c", graph.Init{}, 3, 2), g.Variable("d", graph.Init{}, 3, 2)
		w := g.Add(g.Add(g.Sub(g.Add(g.Square(a), b), g.Scale(b, 2)), c), d)
		z := g.SumRows(g.MatMulT(x, g.Add(w, a), false, true))
		return g, graph.Model{Task: graph.Regression, Loss: g.SquaredLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}
	}, sgd)
	for _, p := range s.Params {
		if !p.Grad.Shape.Equal(p.Var.Shape) {
			t.Errorf("gradient of %s is %v", p.Var.Name, p.Grad)
		}
	}
}

// TestTrainPrunes proves that what nothing reads is in no segment, and that a
// constant is made where it is read rather than passed on.
func TestTrainPrunes(t *testing.T) {
	s := train(t, func() (*graph.Graph, graph.Model) {
		g := graph.New(tensor.F32)
		x, y := g.Input("x", 4), g.Input("label", 0)
		g.Named("unused", g.Exp(g.Input("other", 3)))
		h := g.Mul(g.MatMul(x, g.Variable("w1", graph.Init{}, 4, 3)), g.Named("half", g.Const(.5)))
		z := g.Reshape(g.MatMul(h, g.Variable("w2", graph.Init{}, 3, 1)), dyn)
		p := g.Named("probability", g.Sigmoid(z))
		return g, graph.Model{Task: graph.Binary, Loss: g.LogisticLoss(z, y), Weight: g.Count(y), Predict: p, Label: y}
	}, sgd)
	in := func(seg graph.Segment, name string) bool {
		return slices.ContainsFunc(slices.Concat(seg.In, seg.Nodes, seg.Out), func(n *graph.Node) bool { return n.Name == name })
	}
	half := ""
	for i, seg := range s.Segments {
		if in(seg, "unused") || in(seg, "other") {
			t.Errorf("%s has what nothing reads", seg.Name)
		}
		if in(seg, "probability") != (i == s.Eval) {
			t.Errorf("%s: prediction is of the evaluation only", seg.Name)
		}
		if in(seg, "half") {
			half += seg.Name + " "
		}
		if slices.ContainsFunc(slices.Concat(seg.In, seg.Out), func(n *graph.Node) bool { return n.Op == graph.Const }) {
			t.Errorf("%s takes or delivers a constant", seg.Name)
		}
	}
	if diff := cmp.Diff("forward/w2 forward/w1 eval ", half); diff != "" {
		t.Error(diff)
	}
}

func TestTrainFrozen(t *testing.T) {
	s := train(t, func() (*graph.Graph, graph.Model) {
		g := graph.New(tensor.F32)
		x, y := g.Input("x", 2), g.Input("label", 0)
		w := g.Mul(g.Variable("w", graph.Init{}, 2, 1), g.Frozen("mask", graph.Init{Kind: graph.Constant, Scale: 1}, 2, 1))
		z := g.Reshape(g.MatMul(x, w), -1)
		return g, graph.Model{Task: graph.Regression, Loss: g.SquaredLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}
	}, sgd)
	if len(s.Params) != 1 || s.Params[0].Var.Name != "w" {
		t.Errorf("trained: %v", s.Params)
	}
}

func TestTrainErrors(t *testing.T) {
	type edit func(g *graph.Graph, m *graph.Model, r *optim.Rule)
	for name, c := range map[string]struct {
		edit edit
		want []string
	}{
		"no loss":         {func(_ *graph.Graph, m *graph.Model, _ *optim.Rule) { m.Loss = nil }, []string{"loss"}},
		"loss of a batch": {func(_ *graph.Graph, m *graph.Model, _ *optim.Rule) { m.Loss = m.Predict }, []string{"loss", "[?]", "[]"}},
		"foreign loss": {func(_ *graph.Graph, m *graph.Model, _ *optim.Rule) {
			_, o := twoLayers()
			m.Loss = o.Loss
		}, []string{"loss"}},
		"predict is a source": {func(_ *graph.Graph, m *graph.Model, _ *optim.Rule) { m.Predict = m.Label }, []string{"predict", "label"}},
		"classes":             {func(_ *graph.Graph, m *graph.Model, _ *optim.Rule) { m.Task = graph.Multiclass }, []string{"predict", "classes"}},
		"task":                {func(_ *graph.Graph, m *graph.Model, _ *optim.Rule) { m.Task = "binery" }, []string{"binery", "binary"}},
		"weight":              {func(_ *graph.Graph, m *graph.Model, _ *optim.Rule) { m.Weight = m.Loss }, []string{"weight"}},
		"rule":                {func(_ *graph.Graph, _ *graph.Model, r *optim.Rule) { r.LR = -1 }, []string{"lr"}},
		"rule and batch":      {func(_ *graph.Graph, _ *graph.Model, r *optim.Rule) { r.ScaleWith = 3 }, []string{"scale_with"}},
		"variable without effect": {func(g *graph.Graph, _ *graph.Model, _ *optim.Rule) {
			g.Variable("idle", graph.Init{}, 3)
		}, []string{"idle", "does not depend"}},
		"table without effect": {func(g *graph.Graph, _ *graph.Model, _ *optim.Rule) {
			g.GatherRows(g.Table("idle", graph.Init{}, 3, 2), g.Ragged("r").Keys())
		}, []string{"idle", "does not depend"}},
		"only counted": {func(g *graph.Graph, m *graph.Model, _ *optim.Rule) {
			m.Loss = g.Add(m.Loss, g.Count(g.Variable("idle", graph.Init{}, 3)))
		}, []string{"idle", "does not depend"}},
		"gradient of a label": {func(g *graph.Graph, m *graph.Model, _ *optim.Rule) {
			m.Loss = g.LogisticLoss(m.Predict, g.Sigmoid(m.Predict))
		}, []string{"input 1", "logisticloss"}},
		"gradient of a gradient": {func(g *graph.Graph, m *graph.Model, _ *optim.Rule) {
			m.Loss = g.Add(m.Loss, g.Sum(g.Apply(graph.ReluGrad, graph.Attr{}, m.Predict, m.Predict)))
		}, []string{"relugrad", "no gradient"}},
		"sticky": {func(g *graph.Graph, _ *graph.Model, _ *optim.Rule) { g.Input("label", 7) }, []string{"label"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := twoLayers()
			r := sgd
			c.edit(g, &m, &r)
			s, err := graph.Train(g, m, r)
			wantError(t, err, c.want...)
			if s != nil {
				t.Error("a step beside the error")
			}
		})
	}
	g, m := twoLayers()
	if _, err := graph.Train(g, m, sgd); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.Train(g, m, sgd); err == nil {
		t.Error("a graph was trained twice")
	}
}

// wantError fails unless err is there and names everything in words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error does not say %q: %v", w, err)
		}
	}
}

// TestSegmentCheck breaks each guarantee once.
func TestSegmentCheck(t *testing.T) {
	for name, c := range map[string]struct {
		seg  int
		edit func(s *graph.Segment)
		want string
	}{
		"order":        {0, func(s *graph.Segment) { s.Nodes[0], s.Nodes[1] = s.Nodes[1], s.Nodes[0] }, "(1)"},
		"missing":      {0, func(s *graph.Segment) { s.In = s.In[1:] }, "(2)"},
		"twice in":     {0, func(s *graph.Segment) { s.In = append(s.In, s.In[0]) }, "twice"},
		"source":       {0, func(s *graph.Segment) { s.Nodes = slices.Insert(s.Nodes, 0, s.In[0]) }, "(3)"},
		"not made":     {1, func(s *graph.Segment) { s.Out = s.In[:1] }, "(4)"},
		"twice out":    {1, func(s *graph.Segment) { s.Out = append(s.Out, s.Out[0]) }, "(4)"},
		"not in place": {4, func(s *graph.Segment) { s.Out[0] = s.In[1] }, "(4)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := train(t, twoLayers, sgd)
			c.edit(&s.Segments[c.seg])
			wantError(t, s.Segments[c.seg].Check(), c.want)
			wantError(t, s.Check(), c.want)
		})
	}
}

// TestStepCheck breaks what holds the segments together.
func TestStepCheck(t *testing.T) {
	for name, edit := range map[string]func(s *graph.Step){
		"order":          func(s *graph.Step) { s.Forward[0], s.Forward[1] = s.Forward[1], s.Forward[0] },
		"twice":          func(s *graph.Step) { s.Forward = append(s.Forward, s.Forward[0]) },
		"shared":         func(s *graph.Step) { s.Params[0].Grad = s.Params[1].Grad },
		"other update":   func(s *graph.Step) { s.Params[0].Update = s.Params[1].Update },
		"eval of a step": func(s *graph.Step) { s.Eval = s.Forward[1] },
		"read again":     func(s *graph.Step) { s.Graph.Relu(s.Params[0].Grad) },
		"no gradient":    func(s *graph.Step) { s.Segments[s.Forward[3]].Out = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := train(t, twoLayers, sgd)
			edit(s)
			wantError(t, s.Check())
		})
	}
}

func TestFLOPs(t *testing.T) {
	s := train(t, twoLayers, sgd)
	// x·w1 [4 3], h·w2 [3 1] forward; then the same again for w2, h, and w1.
	matmuls := map[int]int64{1: 2 * 3, 3: 2 * 4 * 3}
	for i, want := range matmuls {
		if got := flops.Of(s.Segments[i]); got != want {
			t.Errorf("%s: %d FLOPs, want %d", s.Segments[i].Name, got, want)
		}
	}
	if got, least := flops.Of(s.Segments[s.Eval]), int64(2*4*3+2*3); got < least || got > 3*least {
		t.Errorf("eval: %d FLOPs, want a little over %d", got, least)
	}
	g := graph.New(tensor.F32)
	n := 1 << 30
	y := g.MatMul(g.Variable("a", graph.Init{}, 1, n), g.Variable("b", graph.Init{}, n, 1))
	seg := graph.Segment{Nodes: slices.Repeat([]*graph.Node{y}, 3)}
	if got := flops.Of(seg); got != 6<<30 {
		t.Errorf("%d FLOPs", got)
	}
}

// TestTrainDropout proves that step and evaluation share the nodes, that only the
// segment of the evaluation is marked as one, that the gradient has the mask of
// the forward pass, and that two dropouts of one seed have different ones.
func TestTrainDropout(t *testing.T) {
	s := train(t, func() (*graph.Graph, graph.Model) {
		g := graph.New(tensor.F32)
		x, y := g.Input("x", 4), g.Input("label", 0)
		h := g.Dropout(g.MatMul(x, g.Variable("w", graph.Init{}, 4, 3)), .5, 7)
		z := g.SumRows(g.Dropout(g.Dropout(h, 0, 7), .25, 7))
		return g, graph.Model{Task: graph.Regression, Loss: g.SquaredLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}
	}, sgd)
	masks := map[uint64]int{}
	for _, n := range s.Graph.Nodes() {
		if n.Op == graph.Dropout {
			masks[n.Attr.Seed]++
			if n.In[1] != s.Graph.Index() {
				t.Errorf("%v does not read the index", n)
			}
		}
	}
	if len(masks) != 2 {
		t.Errorf("%d masks of two dropouts", len(masks))
	}
	for seed, n := range masks {
		if n != 2 {
			t.Errorf("mask %d is used %d times, want forward and backward", seed, n)
		}
	}
	for i, seg := range s.Segments {
		if seg.Eval != (i == s.Eval) {
			t.Errorf("segment %q: Eval is %t", seg.Name, seg.Eval)
		}
	}
}

// TestNoGradientOfChoices proves that the loss may depend on a parameter through
// what jumps, which then passes no gradient on, and that a condition may not ask
// for one.
func TestNoGradientOfChoices(t *testing.T) {
	g := graph.New(tensor.F32)
	w, v := g.Variable("w", graph.Init{}, 3), g.Variable("v", graph.Init{}, 3)
	loss := g.Sum(g.Mul(g.Less(w, v), g.Square(v)))
	_, err := graph.Differentiate(g, loss)
	wantError(t, err, "does not depend", "\"w\"")
	g = graph.New(tensor.F32)
	w, v = g.Variable("w", graph.Init{}, 3), g.Variable("v", graph.Init{}, 3)
	_, err = graph.Differentiate(g, g.Sum(g.Where(w, v, g.Const(0))))
	wantError(t, err, "where", "no gradient for input 0", "\"w\"")
}

// TestFLOPsOfLayers fixes the estimates of the operators that weigh.
func TestFLOPsOfLayers(t *testing.T) {
	g := graph.New(tensor.F32)
	img := g.Reshape(g.Input("img", 3*8*8), dyn, 3, 8, 8)
	q := g.Reshape(g.Input("q", 2*16*4), dyn, 2, 16, 4)
	for _, c := range []struct {
		n    *graph.Node
		want int64
	}{
		{g.Conv2D(img, g.Variable("k", graph.Init{}, 5, 3, 3, 3), 1, 0), 2 * 5 * 6 * 6 * 27},
		{g.MatMulT(q, q, false, true), 2 * 2 * 16 * 16 * 4},
		{g.MatMul(q, g.Variable("w", graph.Init{}, 4, 7)), 2 * 2 * 16 * 4 * 7},
		{g.CausalAttention(g.Transpose(q, 0, 2, 1, 3), g.Transpose(q, 0, 2, 1, 3), g.Transpose(q, 0, 2, 1, 3)), 2 * 2 * 16 * 16 * 4},
		{g.DotInteraction(g.Reshape(g.Input("f", 12), dyn, 4, 3)), 2 * 6 * 3},
		{g.Transpose(q), 0},
	} {
		if got := flops.Of(graph.Segment{Nodes: []*graph.Node{c.n}}); got != c.want {
			t.Errorf("%v: %d, want %d", c.n, got, c.want)
		}
	}
}
