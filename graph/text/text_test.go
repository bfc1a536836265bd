package graph_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/graph"
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

// TestParseLayers proves that every setting comes back.
func TestParseLayers(t *testing.T) {
	g, err := graph.Parse(layersText)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(layersText, graph.Format(g)); diff != "" {
		t.Error(diff)
	}
	conv, attend := g.ByName("conv2d.5"), g.ByName("causalattention.11")
	if conv.Attr.Stride != 2 || conv.Attr.Pad != 1 || attend.Attr.Alpha != .5 || g.ByName("argmax.13").DType != tensor.I64 {
		t.Errorf("%+v %+v", conv.Attr, attend.Attr)
	}
}

func TestFormat(t *testing.T) {
	g, _ := sparse()
	if diff := cmp.Diff(strings.Split(sparseText, "\n"), strings.Split(graph.Format(g), "\n")); diff != "" {
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
			g, err := graph.Parse(c.text)
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
		f.Add(graph.Format(g))
	}
	f.Add("graph f32\nx = input column=x part=dense -> f32 [? 4]\ny = slice x axis=1 start=1 end=3 -> f32 [? 2]\nz = concat y y axis=1 -> f32 [? 4]\n")
	f.Add(layersText)
	f.Add("graph f64\nv = variable init=uniform scale=1e-300 seed=18446744073709551615 frozen=true -> f64 [3 1099511627776]\n")
	f.Add("graph f64\nc = const value=-0 -> f64 [1]\n = \n")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := graph.Parse(text)
		if err != nil {
			return
		}
		if got := graph.Format(g); got != text {
			t.Errorf("accepted %q, wrote %q", text, got)
		}
	})
}
