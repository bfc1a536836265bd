package model_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/text"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

var (
	dense   = model.Column{Name: "x", Dim: 20}
	ragged  = model.Column{Name: "x", Dim: 1000, Ragged: true}
	num     = model.Column{Name: "num", Dim: 13}
	cat     = model.Column{Name: "cat", Dim: 5000, Ragged: true, PerRow: 26}
	pixels  = model.Column{Name: "x", Dim: 48}
	tokens  = model.Column{Name: "tokens", Dim: 65, Ragged: true, PerRow: 7}
	context = model.Column{Name: "context", Dim: 300, Ragged: true, PerRow: 2}
)

func config(kind string, inputs ...model.Column) model.Config {
	return model.Config{Kind: kind, Inputs: inputs, Seed: 1, Float: tensor.F32}
}

// with edits a copy.
func with(c model.Config, edit func(*model.Config)) model.Config {
	edit(&c)
	return c
}

func table(c *model.Config)    { c.Table = true }
func three(c *model.Config)    { c.Classes = 3 }
func hidden(c *model.Config)   { c.Hidden = []int{16, 8} }
func dim(c *model.Config)      { c.Dim = 4 }
func sixBits(c *model.Config)  { c.Float = tensor.F64 }
func weighted(c *model.Config) { c.Weight = "weight" }
func images(c *model.Config)   { c.Image, c.Filters = []int{2, 4, 6}, []int{3, 5} }
func small(c *model.Config)    { c.Dim, c.Layers, c.Heads = 6, 2, 3 }

// TestModels proves that every model trains with every rule: the step holds
// together, and it has these parameters.
func TestModels(t *testing.T) {
	for name, c := range map[string]struct {
		config model.Config
		task   graph.Task
		params string
	}{
		"logistic dense":  {config("logistic", dense), graph.Binary, "b[1] w[20 1]"},
		"logistic ragged": {config("logistic", ragged), graph.Binary, "b[1] w[1000 1]"},
		"logistic table":  {with(config("logistic", ragged), table), graph.Binary, "b[1] w[1000 1]rows"},
		"logistic both": {
			with(with(config("logistic", num, cat), table), sixBits), graph.Binary, "b[1] w.cat[5000 1]rows w.num[13 1]",
		},
		"logistic weighted": {with(config("logistic", dense), weighted), graph.Binary, "b[1] w[20 1]"},
		"softmax weighted":  {with(with(config("softmax", dense), three), weighted), graph.Multiclass, "b[3] w[20 3]"},
		"linear weighted":   {with(config("linear", ragged), weighted), graph.Regression, "b[1] w[1000 1]"},
		"softmax dense":     {with(config("softmax", dense), three), graph.Multiclass, "b[3] w[20 3]"},
		"softmax table":     {with(with(config("softmax", ragged), three), table), graph.Multiclass, "b[3] w[1000 3]rows"},
		"linear ragged":     {config("linear", ragged), graph.Regression, "b[1] w[1000 1]"},
		"mlp one logit":     {with(config("mlp", dense), hidden), graph.Binary, "b1[16] b2[8] b3[1] w1[20 16] w2[16 8] w3[8 1]"},
		"mlp classes":       {with(with(config("mlp", ragged), hidden), three), graph.Multiclass, "b1[16] b2[8] b3[3] w1[1000 16] w2[16 8] w3[8 3]"},
		"mlp two columns":   {with(config("mlp", dense, cat), func(c *model.Config) { c.Hidden = []int{5} }), graph.Binary, "b1[5] b2[1] w1.cat[5000 5] w1.x[20 5] w2[5 1]"},
		"ctr": {
			with(with(config("ctr", num, cat), hidden), dim), graph.Binary,
			"b1[16] b2[8] b3[1] embed[5000 4]rows linear[13 1] w1[117 16] w2[16 8] w3[8 1] wide[5000 1]rows",
		},
		"ctr without network": {with(config("ctr", cat), dim), graph.Binary, "b1[1] embed[5000 4]rows w1[104 1] wide[5000 1]rows"},
		"ctr two tables each": {
			with(config("ctr", cat, num, context), dim), graph.Binary,
			"b1[1] embed.cat[5000 4]rows embed.context[300 4]rows linear[13 1] w1[125 1] wide.cat[5000 1]rows wide.context[300 1]rows",
		},
		"cnn": {
			with(with(with(config("cnn", pixels), images), hidden), three), graph.Multiclass,
			"b1[16] b2[8] b3[3] conv1.b[3 1 1] conv1.w[3 2 3 3] conv2.b[5 1 1] conv2.w[5 3 3 3] w1[5 16] w2[16 8] w3[8 3]",
		},
		"cnn of a gray square": {
			with(config("cnn", model.Column{Name: "x", Dim: 784}), func(c *model.Config) { c.Filters = []int{4} }), graph.Binary,
			"b1[1] conv1.b[4 1 1] conv1.w[4 1 3 3] w1[784 1]",
		},
		"fm":      {with(config("fm", ragged), dim), graph.Binary, "b[1] embed[1000 4]rows w[1000 1]rows"},
		"fm both": {with(config("fm", num, cat), dim), graph.Binary, "b[1] embed.cat[5000 4]rows embed.num[13 4] w.cat[5000 1]rows w.num[13 1]"},
		"deepfm": {
			with(with(config("deepfm", num, cat), hidden), dim), graph.Binary,
			"b1[16] b2[8] b3[1] embed[5000 4]rows linear[13 1] w1[117 16] w2[16 8] w3[8 1] wide[5000 1]rows",
		},
		"dlrm": {
			with(with(with(config("dlrm", num, cat), hidden), dim), func(c *model.Config) { c.Bottom = []int{32} }), graph.Binary,
			"b1[16] b2[8] b3[1] bottom.b1[32] bottom.b2[4] bottom.w1[13 32] bottom.w2[32 4] embed[5000 4]rows w1[355 16] w2[16 8] w3[8 1]",
		},
		"gpt": {
			with(config("gpt", tokens), small), graph.Tokens,
			"block1.down.b[6] block1.down.w[24 6] block1.k.b[6] block1.k.w[6 6] block1.norm1.bias[6] block1.norm1.gain[6]" +
				" block1.norm2.bias[6] block1.norm2.gain[6] block1.o.b[6] block1.o.w[6 6] block1.q.b[6] block1.q.w[6 6]" +
				" block1.up.b[24] block1.up.w[6 24] block1.v.b[6] block1.v.w[6 6]" +
				" block2.down.b[6] block2.down.w[24 6] block2.k.b[6] block2.k.w[6 6] block2.norm1.bias[6] block2.norm1.gain[6]" +
				" block2.norm2.bias[6] block2.norm2.gain[6] block2.o.b[6] block2.o.w[6 6] block2.q.b[6] block2.q.w[6 6]" +
				" block2.up.b[24] block2.up.w[6 24] block2.v.b[6] block2.v.w[6 6]" +
				" embed[65 6] norm.bias[6] norm.gain[6] out.b[65] out.w[6 65] position[7 6]",
		},
	} {
		for _, rule := range []optim.Rule{{Kind: optim.SGD, LR: .1}, {Kind: optim.Momentum, LR: .1}, {Kind: optim.Adagrad, LR: .1}, {Kind: optim.Adam, LR: .1}} {
			t.Run(name+" "+string(rule.Kind), func(t *testing.T) {
				g, m, err := model.Build(c.config)
				if err != nil {
					t.Fatal(err)
				}
				s, err := graph.Train(g, m, rule)
				if err != nil {
					t.Fatal(err)
				}
				if m.Task != c.task || m.Label != labelOf(g, c.task) || g.Float != c.config.Float {
					t.Errorf("task %s, label %v, float %v", m.Task, m.Label, g.Float)
				}
				if diff := cmp.Diff(c.params, params(s)); diff != "" {
					t.Error(diff)
				}
				if back, err := text.Parse(text.Format(g)); err != nil || text.Format(back) != text.Format(g) {
					t.Errorf("the text form does not come back: %v", err)
				}
			})
		}
	}
}

// labelOf is the node that predictions are compared with.
func labelOf(g *graph.Graph, task graph.Task) *graph.Node {
	if task == graph.Tokens {
		return g.ByName("next")
	}
	return g.ByName("label")
}

// params lists the trained parameters by name, with "rows" behind tables.
func params(s *graph.Step) string {
	var all []string
	for _, p := range s.Params {
		text := p.Var.Name + p.Var.Shape.String()
		if p.IsTable() {
			text += "rows"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestMLPText shows the network as operators.
func TestMLPText(t *testing.T) {
	g, _, err := model.Build(with(config("mlp", dense), hidden))
	if err != nil {
		t.Fatal(err)
	}
	want := `graph f32
x = input column=x part=dense -> f32 [? 20]
w1 = variable init=uniform scale=0.408248290463863 seed=1 -> f32 [20 16]
matmul.2 = matmul x w1 -> f32 [? 16]
b1 = variable init=zeros -> f32 [16]
add.4 = add matmul.2 b1 -> f32 [? 16]
relu.5 = relu add.4 -> f32 [? 16]
w2 = variable init=uniform scale=0.5 seed=1 -> f32 [16 8]
matmul.7 = matmul relu.5 w2 -> f32 [? 8]
b2 = variable init=zeros -> f32 [8]
add.9 = add matmul.7 b2 -> f32 [? 8]
relu.10 = relu add.9 -> f32 [? 8]
w3 = variable init=uniform scale=0.816496580927726 seed=1 -> f32 [8 1]
matmul.12 = matmul relu.10 w3 -> f32 [? 1]
b3 = variable init=zeros -> f32 [1]
add.14 = add matmul.12 b3 -> f32 [? 1]
logit = reshape add.14 -> f32 [?]
label = input column=label part=dense -> f32 [?]
loss = logisticloss logit label -> f32 []
weight = count label -> f32 []
`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(text.Format(g), "\n")); diff != "" {
		t.Error(diff)
	}
}

// TestCTRSegments proves the order in which the gradients of the click model
// come, and that both tables are gathered by one list of keys.
func TestCTRSegments(t *testing.T) {
	g, m, err := model.Build(with(with(config("ctr", num, cat), hidden), dim))
	if err != nil {
		t.Fatal(err)
	}
	s, err := graph.Train(g, m, optim.Rule{Kind: optim.Adagrad, LR: .1})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, seg := range s.Segments {
		got = append(got, seg.Name)
	}
	want := strings.Fields("gather/wide gather/embed forward/linear forward/wide forward/b3 forward/w3 forward/b2 forward/w2" +
		" forward/b1 forward/w1 forward/embed update/linear update/wide update/b3 update/w3 update/b2 update/w2" +
		" update/b1 update/w1 update/embed eval")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, p := range s.Params {
		if p.IsTable() && p.Keys != g.ByName("cat.keys") {
			t.Errorf("%s is read by %v", p.Var.Name, p.Keys)
		}
	}
	if g.ByName("cat.ids") != nil {
		t.Error("the graph reads raw ids that no operator needs")
	}
	out := s.Segments[s.Eval].Out
	if len(out) != 3 || out[0].Name != "loss" || out[1].Name != "weight" || out[2].Name != "logit" {
		t.Errorf("evaluation delivers %v", out)
	}
}

// TestInits proves how parameters start.
func TestInits(t *testing.T) {
	g, _, err := model.Build(with(with(config("ctr", num, cat), hidden), dim))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]graph.Init{
		"wide": {Kind: graph.Zeros}, "linear": {Kind: graph.Zeros}, "b1": {Kind: graph.Zeros},
		"embed": {Kind: graph.Normal, Scale: .01, Seed: 1},
		"w2":    {Kind: graph.Uniform, Scale: math.Sqrt(6. / 24), Seed: 1},
		"w1":    {Kind: graph.Uniform, Scale: math.Sqrt(6. / (117 + 16)), Seed: 1},
	} {
		if diff := cmp.Diff(want, g.ByName(name).Attr.Init); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	// The first layer of a ragged column sees as many features as a row has entries.
	g, _, err = model.Build(with(config("mlp", num, cat), hidden))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.ByName("w1.cat").Attr.Init.Scale, math.Sqrt(6./(13+26+16)); got != want {
		t.Errorf("w1.cat starts within %v, want %v", got, want)
	}
}

func TestBuildErrors(t *testing.T) {
	for name, c := range map[string]struct {
		config model.Config
		want   []string
	}{
		"kind":            {config("logistik", dense), []string{"kind", `"logistik"`, `"logistic"`, "softmax"}},
		"no kind":         {config("", dense), []string{"kind"}},
		"no inputs":       {config("logistic"), []string{"inputs"}},
		"label as input":  {config("logistic", model.Column{Name: "label", Dim: 1}), []string{"inputs", "label"}},
		"twice":           {config("logistic", dense, dense), []string{`"x"`, "twice"}},
		"dim of a column": {config("logistic", model.Column{Name: "x"}), []string{`"x"`, "dim 0"}},
		"name":            {config("logistic", model.Column{Name: "an x", Dim: 2}), []string{"logistic", `"an x"`}},
		"name clash":      {config("logistic", model.Column{Name: "w", Dim: 2}), []string{`"w"`, "taken"}},
		"label name":      {with(config("logistic", dense), func(c *model.Config) { c.Label = "a/b" }), []string{"a/b"}},
		"float":           {with(config("logistic", dense), func(c *model.Config) { c.Float = tensor.I64 }), []string{"float", "i64"}},
		"useless hidden":  {with(config("logistic", dense), hidden), []string{"hidden", "logistic"}},
		"useless dim":     {with(with(config("mlp", dense), hidden), dim), []string{"dim", "mlp"}},
		"useless classes": {with(config("linear", dense), three), []string{"classes", "linear"}},
		"useless table":   {with(with(config("ctr", cat), dim), table), []string{"table", "ctr"}},
		"table for dense": {with(config("logistic", dense), table), []string{"table", "ragged"}},
		"no classes":      {config("softmax", dense), []string{"classes", "0"}},
		"one class":       {with(with(config("mlp", dense), hidden), func(c *model.Config) { c.Classes = 1 }), []string{"classes", "1"}},
		"no hidden":       {config("mlp", dense), []string{"hidden"}},
		"width":           {with(config("mlp", dense), func(c *model.Config) { c.Hidden = []int{4, 0} }), []string{"hidden", "layer 1", "0"}},
		"no dim":          {config("ctr", cat), []string{"dim"}},
		"nothing ragged":  {with(config("ctr", num), dim), []string{"inputs", "ragged"}},
		"per row":         {with(config("ctr", ragged), dim), []string{`"x"`, "fixed"}},
		"huge":            {with(config("ctr", cat), func(c *model.Config) { c.Dim = 1 << 62 }), []string{"dim", "26"}},
		"no filters":      {with(config("cnn", pixels), three), []string{"filters"}},
		"image dims":      {with(with(config("cnn", pixels), images), func(c *model.Config) { c.Image = []int{48} }), []string{"image", "channels"}},
		"not the image":   {with(with(config("cnn", pixels), images), func(c *model.Config) { c.Image[0] = 3 }), []string{"image", "48"}},
		"no square":       {with(with(config("cnn", pixels), images), func(c *model.Config) { c.Image = nil }), []string{"image", "48"}},
		"small image":     {with(with(config("cnn", pixels), images), func(c *model.Config) { c.Filters = []int{1, 1, 1} }), []string{"filters", "3 layers", "4 by 6"}},
		"ragged image":    {with(config("cnn", cat), images), []string{"inputs", "dense"}},
		"two images":      {with(config("cnn", pixels, num), images), []string{"inputs", "one column"}},
		"nothing dense":   {with(config("dlrm", cat), dim), []string{"inputs", "dense"}},
		"no layers":       {with(config("gpt", tokens), dim), []string{"layers", "heads"}},
		"heads":           {with(with(config("gpt", tokens), small), func(c *model.Config) { c.Heads = 4 }), []string{"heads", "4", "6"}},
		"dropout":         {with(with(config("gpt", tokens), small), func(c *model.Config) { c.Dropout = 1 }), []string{"dropout", "1"}},
		"useless dropout": {with(with(config("mlp", dense), hidden), func(c *model.Config) { c.Dropout = .1 }), []string{"dropout", "mlp"}},
		"negative":        {with(with(config("gpt", tokens), small), func(c *model.Config) { c.Layers = -1 }), []string{"layers", "-1"}},
		"bottom":          {with(with(config("dlrm", num, cat), dim), func(c *model.Config) { c.Bottom = []int{0} }), []string{"bottom", "0"}},
		"all at once":     {with(with(config("softmax"), hidden), dim), []string{"hidden", "dim", "classes", "inputs"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, _, err := model.Build(c.config)
			if err == nil || g != nil {
				t.Fatalf("no error, graph %v", g)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error does not say %q: %v", w, err)
				}
			}
		})
	}
}

func TestNearestKind(t *testing.T) {
	for given, want := range map[string]string{"logitic": "logistic", "MLP": "mlp", "sofmax": "softmax", "linaer": "linear"} {
		err := model.Config{Kind: given}.Validate()
		if err == nil || !strings.Contains(err.Error(), `did you mean "`+want+`"`) {
			t.Errorf("%s: %v", given, err)
		}
	}
}

func TestKinds(t *testing.T) {
	if diff := cmp.Diff(strings.Fields("logistic softmax linear mlp cnn fm ctr deepfm dlrm gpt"), model.Kinds()); diff != "" {
		t.Error(diff)
	}
}
