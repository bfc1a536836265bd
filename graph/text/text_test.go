package text_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/text"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

const sparseText = `graph f64
label = input column=label part=dense -> f64 [?]
wide = table init=zeros -> f64 [100 1]
embed = table init=normal scale=0.1 -> f64 [100 2]
x.keys = input column=x part=keys -> i64 [?]
gatherrows.4 = gatherrows embed x.keys -> f64 [? 2]
x.pos = input column=x part=pos -> i64 [?]
x.offsets = input column=x part=offsets -> i64 [?]
x.weights = input column=x part=weights -> f64 [?]
bag.8 = bag gatherrows.4 x.pos x.offsets x.weights -> f64 [? 2]
bag.9 = bag gatherrows.4 x.pos x.offsets x.weights -> f64 [? 2]
gatherrows.10 = gatherrows wide x.keys -> f64 [? 1]
bag.11 = bag gatherrows.10 x.pos x.offsets x.weights -> f64 [? 1]
mul.12 = mul bag.8 bag.9 -> f64 [? 2]
sumrows.13 = sumrows mul.12 -> f64 [?]
reshape.14 = reshape bag.11 -> f64 [?]
add.15 = add sumrows.13 reshape.14 -> f64 [?]
logisticloss.16 = logisticloss add.15 label -> f64 []
count.17 = count label -> f64 []
`

// layersText has every kind of setting.
const layersText = `graph f32
x = input column=x part=dense -> f32 [? 36]
batch.index = input column=batch part=index -> i64 [?]
dropout.2 = dropout x batch.index rate=0.25 seed=77 -> f32 [? 36]
reshape.3 = reshape dropout.2 -> f32 [? 4 3 3]
k = variable init=normal scale=0.1 -> f32 [2 4 2 2]
conv2d.5 = conv2d reshape.3 k stride=2 pad=1 -> f32 [? 2 2 2]
maxpool2d.6 = maxpool2d conv2d.5 window=2 stride=2 -> f32 [? 2 1 1]
transpose.7 = transpose reshape.3 perm=0,3,1,2 -> f32 [? 3 4 3]
gain = variable init=zeros -> f32 [3]
rmsnorm.9 = rmsnorm transpose.7 gain eps=1e-05 -> f32 [? 3 4 3]
leakyrelu.10 = leakyrelu rmsnorm.9 alpha=0.1 -> f32 [? 3 4 3]
causalattention.11 = causalattention leakyrelu.10 leakyrelu.10 leakyrelu.10 alpha=0.5 -> f32 [? 3 4 3]
sumaxis.12 = sumaxis causalattention.11 axis=3 keepdims=true -> f32 [? 3 4 1]
argmax.13 = argmax sumaxis.12 -> i64 [3 4 1]
float.14 = float argmax.13 -> f32 [3 4 1]
x2.ids = input column=x2 part=ids -> i64 [?]
x2.offsets = input column=x2 part=offsets -> i64 [?]
x2.weights = input column=x2 part=weights -> f32 [?]
w = variable init=zeros -> f32 [9 2]
bag.19 = bag w x2.ids x2.offsets x2.weights mean=true -> f32 [? 2]
`

// mixedText is what is written where a model function multiplied x by w.
const mixedText = `graph f16
x = input column=x part=dense -> f32 [? 4]
w = variable init=zeros -> f32 [4 2]
cast.2 = cast x -> f16 [? 4]
cast.3 = cast w -> f16 [4 2]
matmul.4 = matmul cast.2 cast.3 -> f16 [? 2]
cast.5 = cast matmul.4 -> f32 [? 2]
sum.6 = sum cast.5 -> f32 []
`

// TestMixed proves that casts are written like all else, and that none is added when
// the text is read.
func TestMixed(t *testing.T) {
	g := graph.New(tensor.F16)
	x, w := g.Input("x", 4), g.Variable("w", graph.Init{}, 4, 2)
	g.Sum(g.MatMul(x, w))
	if diff := cmp.Diff(mixedText, text.Format(g)); diff != "" {
		t.Error(diff)
	}
	back, err := text.Parse(mixedText)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mixedText, text.Format(back)); diff != "" {
		t.Error(diff)
	}
}

// TestParseLayers proves that every setting comes back.
func TestParseLayers(t *testing.T) {
	g, err := text.Parse(layersText)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(layersText, text.Format(g)); diff != "" {
		t.Error(diff)
	}
	conv, attend := g.ByName("conv2d.5"), g.ByName("causalattention.11")
	if conv.Attr.Stride != 2 || conv.Attr.Pad != 1 || attend.Attr.Alpha != .5 || g.ByName("argmax.13").DType != tensor.I64 {
		t.Errorf("%+v %+v", conv.Attr, attend.Attr)
	}
}

func TestFormat(t *testing.T) {
	g, _ := sparse()
	if diff := cmp.Diff(strings.Split(sparseText, "\n"), strings.Split(text.Format(g), "\n")); diff != "" {
		t.Error(diff)
	}
}

// TestParseErrors proves that a text which Format would not write is refused,
// with the line and the reason.
func TestParseErrors(t *testing.T) {
	const head = "graph f32\nx = input column=x part=dense -> f32 [? 4]\nw = variable init=zeros -> f32 [4 2]\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"empty":            {"", []string{"end"}},
		"no header":        {"x\n", []string{"line 1", "graph f32"}},
		"integer graph":    {"graph i64\n", []string{"line 1"}},
		"cut":              {head + "y = relu x -> f32 [? 4]", []string{"end"}},
		"blank line":       {head + "\n", []string{"line 4"}},
		"no shape":         {head + "y = relu x\n", []string{"line 4", "y"}},
		"operator":         {head + "y = conv x -> f32 [? 4]\n", []string{"line 4", "conv"}},
		"unknown input":    {head + "y = relu z -> f32 [? 4]\n", []string{"line 4", "\"y\"", "\"z\""}},
		"itself":           {head + "y = relu y -> f32 [? 4]\n", []string{"line 4", "\"y\""}},
		"twice":            {head + "x = relu x -> f32 [? 4]\n", []string{"line 4", "\"x\"", "taken"}},
		"shape":            {head + "y = relu x -> f32 [? 5]\n", []string{"line 4", "[? 4]", "[? 5]"}},
		"dtype":            {head + "y = relu x -> f64 [? 4]\n", []string{"line 4", "f32"}},
		"bad shapes":       {head + "y = matmul w x -> f32 [4 4]\n", []string{"line 4", "[4 2]", "[? 4]"}},
		"dim":              {head + "v = variable init=zeros -> f32 [4x]\n", []string{"line 4", "4x"}},
		"dim -1":           {head + "v = variable init=zeros -> f32 [-1]\n", []string{"line 4", "-1"}},
		"leading zero":     {head + "v = variable init=zeros -> f32 [04]\n", []string{"line 4", "[4]"}},
		"two spaces":       {head + "y = relu  x -> f32 [? 4]\n", []string{"line 4"}},
		"trailing space":   {head + "y = relu x -> f32 [? 4] \n", []string{"line 4", "want"}},
		"setting":          {head + "y = relu x alpha=2 -> f32 [? 4]\n", []string{"line 4", "relu", "alpha"}},
		"setting twice":    {head + "y = scale x alpha=2 alpha=3 -> f32 [? 4]\n", []string{"line 4"}},
		"number":           {head + "y = scale x alpha=two -> f32 [? 4]\n", []string{"line 4", "alpha"}},
		"zero written out": {head + "y = matmul x w transA=false -> f32 [? 2]\n", []string{"line 4", "transA"}},
		"long number":      {head + "y = scale x alpha=0.50 -> f32 [? 4]\n", []string{"line 4", "alpha=0.5 "}},
		"nan":              {head + "y = scale x alpha=NaN -> f32 [? 4]\n", []string{"line 4", "NaN"}},
		"input after":      {head + "y = matmul x transA=true w -> f32 [? 2]\n", []string{"line 4", "\"w\""}},
		"input's name":     {head + "z = input column=q part=dense -> f32 [? 4]\n", []string{"line 4", "\"q\""}},
		"name":             {head + "a/b = relu x -> f32 [? 4]\n", []string{"line 4", "a/b"}},
		"order":            {head + "y = transpose x perm=1,0,0 -> f32 [4 ?]\n", []string{"line 4", "[1 0 0]", "[? 4]"}},
		"order not number": {head + "y = transpose x perm=1,a -> f32 [4 ?]\n", []string{"line 4", "perm"}},
		"order spelled":    {head + "y = transpose x perm=1,00 -> f32 [4 ?]\n", []string{"line 4", "perm=1,0"}},
		"negative axis":    {head + "y = sumaxis x axis=-1 -> f32 [?]\n", []string{"line 4", "axis=1"}},
		"rate":             {head + "batch.index = input column=batch part=index -> i64 [?]\ny = dropout x batch.index rate=2 -> f32 [? 4]\n", []string{"line 5", "rate is 2"}},
		"no stride":        {head + "z = reshape x -> f32 [? 1 2 2]\ny = maxpool2d z window=2 -> f32 [? 1 1 1]\n", []string{"line 5", "stride=2"}},
		"rule":             {head + "total = total -> f32 []\nw/update = update w w total rule=sgd lr=-1 -> f32 [4 2]\n", []string{"line 5", "lr"}},
		"slots":            {head + "total = total -> f32 []\nw/update = update w w total rule=adam lr=1 -> f32 [4 2]\n", []string{"line 5", "0 slots", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := text.Parse(c.text)
			wantError(t, err, c.want...)
			if g != nil {
				t.Error("a graph beside the error")
			}
		})
	}
}

// FuzzParse proves that Parse never panics and accepts only what Format writes.
func FuzzParse(f *testing.F) {
	f.Add(sparseText)
	for _, build := range []func() (*graph.Graph, graph.Model){twoLayers, sparse} {
		g, m := build()
		if _, err := graph.Train(g, m, optim.Rule{Kind: optim.Adam, LR: .01, L2: 1e-5}); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Format(g))
	}
	f.Add(mixedText)
	f.Add("graph f32\nx = input column=x part=dense -> f32 [? 4]\ny = slice x axis=1 start=1 end=3 -> f32 [? 2]\nz = concat y y axis=1 -> f32 [? 4]\n")
	f.Add(layersText)
	f.Add("graph f64\nv = variable init=uniform scale=1e-300 seed=18446744073709551615 frozen=true -> f64 [3 1099511627776]\n")
	f.Add("graph f64\nc = const value=-0 -> f64 [1]\n = \n")
	f.Fuzz(func(t *testing.T, in string) {
		g, err := text.Parse(in)
		if err != nil {
			return
		}
		if got := text.Format(g); got != in {
			t.Errorf("accepted %q, wrote %q", in, got)
		}
	})
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
