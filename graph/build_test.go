package graph_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/text"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

const dyn = tensor.Dynamic

// nodes are what the table of shapes picks its inputs from.
func nodes(g *graph.Graph) map[string]*graph.Node {
	x := g.Ragged("x")
	return map[string]*graph.Node{
		"a": g.Input("a", 4), "b": g.Input("b", 3), "y": g.Input("y", 0),
		"off": x.Offsets(), "ids": x.IDs(), "wts": x.Weights(), "keys": x.Keys(), "pos": x.Pos(),
		"w": g.Variable("w", graph.Init{}, 4, 3), "v": g.Variable("v", graph.Init{}, 3),
		"c": g.Variable("c", graph.Init{}, 4, 1), "t": g.Table("t", graph.Init{}, 100, 2),
		"img": g.Reshape(g.Input("pixels", 3*5*7), dyn, 3, 5, 7), "k": g.Variable("k", graph.Init{}, 4, 3, 3, 2),
		"q": g.Reshape(g.Input("tokens", 24), dyn, 2, 3, 4), "f": g.Reshape(g.Input("fields", 12), dyn, 4, 3),
		"s": g.Const(2), "total": g.Apply(graph.Total, graph.Attr{}),
	}
}

// TestShapes fixes the shape of each operator's result.
func TestShapes(t *testing.T) {
	type n = graph.Node
	for name, c := range map[string]struct {
		make func(g *graph.Graph, m map[string]*n) *n
		want tensor.Shape
	}{
		"matmul":           {func(g *graph.Graph, m map[string]*n) *n { return g.MatMul(m["a"], m["w"]) }, tensor.Shape{dyn, 3}},
		"matmul tb":        {func(g *graph.Graph, m map[string]*n) *n { return g.MatMulT(m["b"], m["w"], false, true) }, tensor.Shape{dyn, 4}},
		"matmul ta":        {func(g *graph.Graph, m map[string]*n) *n { return g.MatMulT(m["a"], m["b"], true, false) }, tensor.Shape{4, 3}},
		"matmul ta tb":     {func(g *graph.Graph, m map[string]*n) *n { return g.MatMulT(m["w"], m["a"], true, true) }, tensor.Shape{3, dyn}},
		"add vector":       {func(g *graph.Graph, m map[string]*n) *n { return g.Add(m["b"], m["v"]) }, tensor.Shape{dyn, 3}},
		"mul column":       {func(g *graph.Graph, m map[string]*n) *n { return g.Mul(m["w"], m["c"]) }, tensor.Shape{4, 3}},
		"sub scalar":       {func(g *graph.Graph, m map[string]*n) *n { return g.Sub(m["y"], m["s"]) }, tensor.Shape{dyn}},
		"tanh":             {func(g *graph.Graph, m map[string]*n) *n { return g.Tanh(m["y"]) }, tensor.Shape{dyn}},
		"log":              {func(g *graph.Graph, m map[string]*n) *n { return g.Log(m["y"]) }, tensor.Shape{dyn}},
		"softmax":          {func(g *graph.Graph, m map[string]*n) *n { return g.Softmax(m["a"]) }, tensor.Shape{dyn, 4}},
		"sum":              {func(g *graph.Graph, m map[string]*n) *n { return g.Sum(m["a"]) }, tensor.Shape{}},
		"sumrows":          {func(g *graph.Graph, m map[string]*n) *n { return g.SumRows(m["a"]) }, tensor.Shape{dyn}},
		"count":            {func(g *graph.Graph, m map[string]*n) *n { return g.Count(m["ids"]) }, tensor.Shape{}},
		"reshape":          {func(g *graph.Graph, m map[string]*n) *n { return g.Reshape(m["a"], 2, dyn, 2) }, tensor.Shape{2, dyn, 2}},
		"reshape known":    {func(g *graph.Graph, m map[string]*n) *n { return g.Reshape(m["w"], 2, dyn) }, tensor.Shape{2, 6}},
		"reshape one":      {func(g *graph.Graph, m map[string]*n) *n { return g.Reshape(m["s"], dyn, 1) }, tensor.Shape{1, 1}},
		"concat":           {func(g *graph.Graph, m map[string]*n) *n { return g.Concat(m["a"], m["b"], m["a"]) }, tensor.Shape{dyn, 11}},
		"slice":            {func(g *graph.Graph, m map[string]*n) *n { return g.Slice(m["a"], 1, 3) }, tensor.Shape{dyn, 2}},
		"add wider second": {func(g *graph.Graph, m map[string]*n) *n { return g.Add(m["v"], m["b"]) }, tensor.Shape{dyn, 3}},
		"div both":         {func(g *graph.Graph, m map[string]*n) *n { return g.Div(m["c"], m["v"]) }, tensor.Shape{4, 3}},
		"less":             {func(g *graph.Graph, m map[string]*n) *n { return g.Less(m["a"], m["s"]) }, tensor.Shape{dyn, 4}},
		"where both":       {func(g *graph.Graph, m map[string]*n) *n { return g.Where(m["c"], m["v"], m["s"]) }, tensor.Shape{4, 3}},
		"batched":          {func(g *graph.Graph, m map[string]*n) *n { return g.MatMulT(m["q"], m["q"], false, true) }, tensor.Shape{dyn, 2, 3, 3}},
		"shared":           {func(g *graph.Graph, m map[string]*n) *n { return g.MatMul(m["q"], m["w"]) }, tensor.Shape{dyn, 2, 3, 3}},
		"shared ta tb":     {func(g *graph.Graph, m map[string]*n) *n { return g.MatMulT(m["q"], m["w"], true, true) }, tensor.Shape{dyn, 2, 4, 4}},
		"sumaxis":          {func(g *graph.Graph, m map[string]*n) *n { return g.SumAxis(m["img"], -2, false) }, tensor.Shape{dyn, 3, 7}},
		"mean kept":        {func(g *graph.Graph, m map[string]*n) *n { return g.MeanAxis(m["img"], 0, true) }, tensor.Shape{1, 3, 5, 7}},
		"mean all":         {func(g *graph.Graph, m map[string]*n) *n { return g.Mean(m["img"]) }, tensor.Shape{}},
		"max all":          {func(g *graph.Graph, m map[string]*n) *n { return g.Max(m["w"]) }, tensor.Shape{}},
		"transpose":        {func(g *graph.Graph, m map[string]*n) *n { return g.Transpose(m["q"], 0, 2, 1, 3) }, tensor.Shape{dyn, 3, 2, 4}},
		"transpose all":    {func(g *graph.Graph, m map[string]*n) *n { return g.Transpose(m["q"]) }, tensor.Shape{4, 3, 2, dyn}},
		"concat last":      {func(g *graph.Graph, m map[string]*n) *n { return g.ConcatAxis(-1, m["q"], m["q"]) }, tensor.Shape{dyn, 2, 3, 8}},
		"slice last":       {func(g *graph.Graph, m map[string]*n) *n { return g.SliceAxis(m["q"], -1, 1, 4) }, tensor.Shape{dyn, 2, 3, 3}},
		"split":            {func(g *graph.Graph, m map[string]*n) *n { return g.Split(m["q"], 2, 1, 2)[1] }, tensor.Shape{dyn, 2, 2, 4}},
		"softmax dims":     {func(g *graph.Graph, m map[string]*n) *n { return g.Softmax(m["q"]) }, tensor.Shape{dyn, 2, 3, 4}},
		"layernorm":        {func(g *graph.Graph, m map[string]*n) *n { return g.LayerNorm(m["f"], m["v"], m["v"], 1) }, tensor.Shape{dyn, 4, 3}},
		"rmsnorm":          {func(g *graph.Graph, m map[string]*n) *n { return g.RMSNorm(m["b"], m["v"], 1) }, tensor.Shape{dyn, 3}},
		"dropout":          {func(g *graph.Graph, m map[string]*n) *n { return g.Dropout(m["f"], .5, 1) }, tensor.Shape{dyn, 4, 3}},
		"conv":             {func(g *graph.Graph, m map[string]*n) *n { return g.Conv2D(m["img"], m["k"], 2, 1) }, tensor.Shape{dyn, 4, 3, 4}},
		"conv stride":      {func(g *graph.Graph, m map[string]*n) *n { return g.Conv2D(m["img"], m["k"], 0, 0) }, tensor.Shape{dyn, 4, 3, 6}},
		"maxpool":          {func(g *graph.Graph, m map[string]*n) *n { return g.MaxPool2D(m["img"], 2, 0) }, tensor.Shape{dyn, 3, 2, 3}},
		"avgpool":          {func(g *graph.Graph, m map[string]*n) *n { return g.AvgPool2D(m["img"], 3, 1) }, tensor.Shape{dyn, 3, 3, 5}},
		"attention":        {func(g *graph.Graph, m map[string]*n) *n { return g.CausalAttention(m["q"], m["q"], m["q"]) }, tensor.Shape{dyn, 2, 3, 4}},
		"fm":               {func(g *graph.Graph, m map[string]*n) *n { return g.FMInteraction(m["f"]) }, tensor.Shape{dyn}},
		"dots":             {func(g *graph.Graph, m map[string]*n) *n { return g.DotInteraction(m["f"]) }, tensor.Shape{dyn, 6}},
		"tofloat":          {func(g *graph.Graph, m map[string]*n) *n { return g.ToFloat(g.ArgMax(m["q"], 1, false)) }, tensor.Shape{dyn, 3, 4}},
		"meanbag":          {func(g *graph.Graph, m map[string]*n) *n { return g.MeanBag(m["w"], m["ids"], m["off"], m["wts"]) }, tensor.Shape{dyn, 3}},
		"gatherrows":       {func(g *graph.Graph, m map[string]*n) *n { return g.GatherRows(m["t"], m["keys"]) }, tensor.Shape{dyn, 2}},
		"gather":           {func(g *graph.Graph, m map[string]*n) *n { return g.Gather(m["w"], m["ids"]) }, tensor.Shape{dyn, 3}},
		"bag":              {func(g *graph.Graph, m map[string]*n) *n { return g.Bag(m["w"], m["ids"], m["off"], m["wts"]) }, tensor.Shape{dyn, 3}},
		"loss":             {func(g *graph.Graph, m map[string]*n) *n { return g.LogisticLoss(g.Slice(m["a"], 0, 1), m["y"]) }, tensor.Shape{}},
		"class loss":       {func(g *graph.Graph, m map[string]*n) *n { return g.SoftmaxLoss(m["a"], m["y"]) }, tensor.Shape{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph.New(tensor.F64)
			got := c.make(g, nodes(g))
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Shape); diff != "" || got.DType != tensor.F64 {
				t.Errorf("%v: %s", got, diff)
			}
		})
	}
}

// TestBuildErrors proves that mistakes are values that name the node and both
// shapes, and that whatever is built on top of one neither panics nor hides it.
func TestBuildErrors(t *testing.T) {
	type n = graph.Node
	for name, c := range map[string]struct {
		make func(g *graph.Graph, m map[string]*n)
		want []string
	}{
		"inner dims":     {func(g *graph.Graph, m map[string]*n) { g.MatMul(m["b"], m["w"]) }, []string{"matmul.21", "b [? 3]", "w [4 3]"}},
		"dims":           {func(g *graph.Graph, m map[string]*n) { g.MatMul(m["y"], m["w"]) }, []string{"matmul", "y [?]"}},
		"broadcast":      {func(g *graph.Graph, m map[string]*n) { g.Add(m["a"], m["v"]) }, []string{"add", "a [? 4]", "v [3]"}},
		"neither wider":  {func(g *graph.Graph, m map[string]*n) { g.Add(m["v"], m["c"]); g.Add(m["w"], m["a"]) }, []string{"w [4 3]", "a [? 4]"}},
		"batch and size": {func(g *graph.Graph, m map[string]*n) { g.Add(m["y"], m["v"]) }, []string{"y [?]", "v [3]"}},
		"dtype":          {func(g *graph.Graph, m map[string]*n) { g.Add(m["y"], m["ids"]) }, []string{"x.ids", "i64", "f64"}},
		"float index":    {func(g *graph.Graph, m map[string]*n) { g.Gather(m["w"], m["y"]) }, []string{"input 1", "i64"}},
		"table":          {func(g *graph.Graph, m map[string]*n) { g.MatMul(m["a"], m["t"]) }, []string{"\"t\"", "gatherrows"}},
		"no table":       {func(g *graph.Graph, m map[string]*n) { g.GatherRows(m["w"], m["keys"]) }, []string{"a table"}},
		"no keys":        {func(g *graph.Graph, m map[string]*n) { g.GatherRows(m["t"], m["ids"]) }, []string{"x.ids", "keys"}},
		"two keys": {func(g *graph.Graph, m map[string]*n) {
			g.GatherRows(m["t"], m["keys"])
			g.GatherRows(m["t"], g.Ragged("z").Keys())
		}, []string{"\"t\"", "x.keys"}},
		"total":            {func(g *graph.Graph, m map[string]*n) { g.Relu(m["total"]) }, []string{"total"}},
		"second total":     {func(g *graph.Graph, _ map[string]*n) { g.Apply(graph.Total, graph.Attr{}) }, []string{"total"}},
		"operator":         {func(g *graph.Graph, _ map[string]*n) { g.Apply("conv", graph.Attr{}) }, []string{"conv"}},
		"inputs":           {func(g *graph.Graph, m map[string]*n) { g.Apply(graph.Add, graph.Attr{}, m["a"]) }, []string{"1 inputs", "2"}},
		"nil":              {func(g *graph.Graph, _ map[string]*n) { g.Relu(nil) }, []string{"relu"}},
		"foreign":          {func(g *graph.Graph, _ map[string]*n) { g.Relu(graph.New(tensor.F64).Const(1)) }, []string{"relu"}},
		"empty concat":     {func(g *graph.Graph, _ map[string]*n) { g.Concat() }, []string{"concat"}},
		"concat rows":      {func(g *graph.Graph, m map[string]*n) { g.Concat(m["a"], m["w"]) }, []string{"[? 4]", "[4 3]"}},
		"reshape":          {func(g *graph.Graph, m map[string]*n) { g.Reshape(m["w"], 5, dyn) }, []string{"w [4 3]", "[5 ?]"}},
		"reshape dynamic":  {func(g *graph.Graph, m map[string]*n) { g.Reshape(m["a"], 4) }, []string{"[? 4]", "[4]"}},
		"reshape twice":    {func(g *graph.Graph, m map[string]*n) { g.Reshape(m["a"], dyn, dyn) }, []string{"[? ?]"}},
		"reshape zero":     {func(g *graph.Graph, m map[string]*n) { g.Reshape(m["w"], dyn, 0) }, []string{"[? 0]"}},
		"slice":            {func(g *graph.Graph, m map[string]*n) { g.Slice(m["a"], 2, 5) }, []string{"[2, 5)", "[? 4]"}},
		"labels":           {func(g *graph.Graph, m map[string]*n) { g.LogisticLoss(m["a"], m["y"]) }, []string{"[? 4]", "[?]"}},
		"rows and labels":  {func(g *graph.Graph, m map[string]*n) { g.SquaredLoss(m["v"], m["y"]) }, []string{"[3]", "[?]"}},
		"bag":              {func(g *graph.Graph, m map[string]*n) { g.Bag(m["v"], m["ids"], m["off"], m["wts"]) }, []string{"v [3]", "1 dims"}},
		"taken":            {func(g *graph.Graph, _ map[string]*n) { g.Variable("w", graph.Init{}, 7) }, []string{"\"w\"", "[7]", "[4 3]"}},
		"taken by input":   {func(g *graph.Graph, _ map[string]*n) { g.Input("w", 2) }, []string{"\"w\"", "variable"}},
		"input again":      {func(g *graph.Graph, _ map[string]*n) { g.Input("a", 5) }, []string{"\"a\"", "[? 4]", "[? 5]"}},
		"two kinds":        {func(g *graph.Graph, _ map[string]*n) { g.Input("x", 2) }, []string{"\"x\"", "dense"}},
		"slash":            {func(g *graph.Graph, _ map[string]*n) { g.Variable("w/m", graph.Init{}, 2) }, []string{"w/m"}},
		"space":            {func(g *graph.Graph, _ map[string]*n) { g.Input("a column", 2) }, []string{"a column"}},
		"no name":          {func(g *graph.Graph, _ map[string]*n) { g.Variable("", graph.Init{}, 2) }, []string{"empty"}},
		"renamed to taken": {func(g *graph.Graph, m map[string]*n) { g.Named("w", g.Relu(m["a"])) }, []string{"\"w\""}},
		"rename a source":  {func(g *graph.Graph, m map[string]*n) { g.Named("u", m["a"]) }, []string{"\"u\""}},
		"dynamic variable": {func(g *graph.Graph, _ map[string]*n) { g.Variable("u", graph.Init{}, dyn, 2) }, []string{"\"u\"", "[? 2]"}},
		"zero dim":         {func(g *graph.Graph, _ map[string]*n) { g.Variable("u", graph.Init{}, 0) }, []string{"\"u\"", "[0]"}},
		"negative input":   {func(g *graph.Graph, _ map[string]*n) { g.Input("u", -3) }, []string{"\"u\"", "-3"}},
		"overflow":         {func(g *graph.Graph, _ map[string]*n) { g.Variable("u", graph.Init{}, 1<<40, 1<<40) }, []string{"\"u\""}},
		"not finite":       {func(g *graph.Graph, m map[string]*n) { g.Scale(m["a"], math.NaN()) }, []string{"NaN"}},
		"init":             {func(g *graph.Graph, _ map[string]*n) { g.Variable("u", graph.Init{Kind: "gauss"}, 2) }, []string{"gauss", "normal"}},
		"init scale":       {func(g *graph.Graph, _ map[string]*n) { g.Variable("u", graph.Init{Kind: graph.Normal, Scale: -1}, 2) }, []string{"-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph.New(tensor.F64)
			m := nodes(g)
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			c.make(g, m)
			wantError(t, g.Err(), c.want...)
			first, count := g.Err().Error(), len(g.Nodes())
			bad := g.Relu(g.MatMul(m["b"], g.Named("later", g.Add(nil, nil))))
			if bad == nil || g.Err().Error() != first || len(g.Nodes()) != count {
				t.Errorf("the first mistake did not stick: %v", g.Err())
			}
		})
	}
}

func TestNewErrors(t *testing.T) {
	wantError(t, graph.New(tensor.I64).Err(), "i64")
	wantError(t, graph.New(tensor.Invalid).Err(), "invalid")
}

// TestInputsOnce proves that asking twice gives the same node, and that a
// ragged column has only the inputs that were asked for.
func TestInputsOnce(t *testing.T) {
	g := graph.New(tensor.F32)
	x := g.Ragged("x")
	a, keys, weights := g.Input("a", 3), x.Keys(), x.Weights()
	if g.Input("a", 3) != a || g.Ragged("x").Keys() != keys || x.Weights() != weights {
		t.Error("an input was made twice")
	}
	tab := g.Table("t", graph.Init{}, 9, 2)
	if rows := g.GatherRows(tab, x.Keys()); g.GatherRows(tab, x.Keys()) != rows {
		t.Error("rows were gathered twice")
	}
	if diff := cmp.Diff("a x.keys x.weights t gatherrows.4", names(g.Nodes())); diff != "" || g.Err() != nil {
		t.Errorf("%v %s", g.Err(), diff)
	}
	if x.Keys().DType != tensor.I64 || x.Weights().DType != tensor.F32 || g.ByName("x.keys") != x.Keys() || g.ByName("no") != nil {
		t.Error("types or names")
	}
}

func TestNameClash(t *testing.T) {
	g := graph.New(tensor.F32)
	a := g.Named("relu.2", g.Relu(g.Input("a", 1)))
	b := g.Relu(a)
	if a.Name != "relu.2" || b.Name != "relu.2_" || g.ByName("relu.1") != nil || g.Err() != nil {
		t.Errorf("%v %v %v", a, b, g.Err())
	}
}

// randomGraph draws a graph over all forward operators. Every value is [? 4]
// until the end, so that anything fits anything.
func randomGraph(t *rapid.T) (*graph.Graph, graph.Model) {
	g := graph.New(rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.F64}).Draw(t, "float"))
	x, y, r := g.Input("x", 4), g.Input("label", 0), g.Ragged("r")
	w := g.Variable("w", graph.Init{Kind: graph.Uniform, Scale: rapid.Float64Range(0, 9).Draw(t, "scale"), Seed: rapid.Uint64().Draw(t, "seed")}, 4, 4)
	b, tab := g.Variable("b", graph.Init{}, 4), g.Table("t", graph.Init{Kind: graph.Normal, Scale: 1}, 50, 4)
	rows := g.GatherRows(tab, r.Keys())
	vals := []*graph.Node{
		g.MatMul(x, w), g.Add(x, b), g.Bag(rows, r.Pos(), r.Offsets(), r.Weights()),
		g.Reshape(g.Gather(rows, r.Pos()), dyn, 4),
	}
	pick := func() *graph.Node { return rapid.SampledFrom(vals).Draw(t, "value") }
	unary := []func(*graph.Node) *graph.Node{
		g.Relu, g.Sigmoid, g.Tanh, g.Exp, g.Log, g.Square, g.Softmax,
		func(n *graph.Node) *graph.Node { return g.Scale(n, rapid.Float64Range(-4, 4).Draw(t, "alpha")) },
		func(n *graph.Node) *graph.Node { return g.MatMulT(n, w, false, rapid.Bool().Draw(t, "transB")) },
		func(n *graph.Node) *graph.Node { return g.Mul(n, b) },
		func(n *graph.Node) *graph.Node {
			return g.Sub(n, g.Const(rapid.Float64Range(-1, 1).Draw(t, "const"), 4))
		},
		func(n *graph.Node) *graph.Node { return g.Sub(n, g.Sum(n)) },
		func(n *graph.Node) *graph.Node { return g.Mul(n, g.Reshape(g.SumRows(n), dyn, 1)) },
		func(n *graph.Node) *graph.Node { return g.Concat(g.Slice(n, 1, 4), g.Slice(n, 0, 1)) },
	}
	unary = append(unary, randomLayers(t, g, w, b)...)
	for range rapid.IntRange(0, 12).Draw(t, "nodes") {
		if rapid.Bool().Draw(t, "unary") {
			vals = append(vals, rapid.SampledFrom(unary).Draw(t, "op")(pick()))
			continue
		}
		op := rapid.SampledFrom([]graph.Op{graph.Add, graph.Sub, graph.Mul, graph.Div, graph.Maximum, graph.Minimum}).Draw(t, "op")
		vals = append(vals, g.Apply(op, graph.Attr{}, pick(), pick()))
	}
	z := g.Add(vals[0], vals[1])
	for _, v := range vals[2:] {
		z = g.Add(z, v)
	}
	m := graph.Model{Weight: g.Count(y), Label: y}
	switch rapid.IntRange(0, 2).Draw(t, "loss") {
	case 0:
		m.Task, m.Predict, m.Loss = graph.Multiclass, z, g.SoftmaxLoss(z, y)
	case 1:
		m.Task, m.Predict = graph.Binary, g.SumRows(z)
		m.Loss = g.LogisticLoss(m.Predict, y)
	case 2:
		m.Task, m.Predict = graph.Regression, g.SumRows(z)
		m.Loss = g.SquaredLoss(m.Predict, y)
	}
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	return g, m
}

// randomLayers take [? 4] to [? 4], with a variable [4 4] and one [4].
func randomLayers(t *rapid.T, g *graph.Graph, w, b *graph.Node) []func(*graph.Node) *graph.Node {
	return []func(*graph.Node) *graph.Node{
		g.Sqrt, g.Rsqrt, g.Gelu, g.Silu, g.Softplus,
		func(n *graph.Node) *graph.Node { return g.LeakyRelu(n, rapid.Float64Range(-1, 1).Draw(t, "slope")) },
		func(n *graph.Node) *graph.Node {
			return g.LayerNorm(n, b, b, rapid.Float64Range(1e-9, 1).Draw(t, "eps"))
		},
		func(n *graph.Node) *graph.Node { return g.RMSNorm(n, b, 1e-5) },
		func(n *graph.Node) *graph.Node {
			return g.Dropout(n, rapid.Float64Range(0, .9).Draw(t, "rate"), rapid.Uint64().Draw(t, "mask"))
		},
		func(n *graph.Node) *graph.Node { return g.Sub(g.MeanAxis(n, -1, true), n) },
		func(n *graph.Node) *graph.Node { return g.Add(g.SumAxis(n, 0, rapid.Bool().Draw(t, "keep")), n) },
		func(n *graph.Node) *graph.Node { return g.Add(g.MaxAxis(n, 1, true), b) },
		func(n *graph.Node) *graph.Node {
			return g.Reshape(g.Transpose(g.Reshape(n, dyn, 2, 2), 0, 2, 1), dyn, 4)
		},
		func(n *graph.Node) *graph.Node { return g.Reshape(g.MatMul(g.Reshape(n, dyn, 1, 4), w), dyn, 4) },
		func(n *graph.Node) *graph.Node {
			return g.Reshape(g.Conv2D(g.Reshape(n, dyn, 1, 2, 2), g.Reshape(g.Slice(w, 0, 1), 1, 1, 2, 2), 2, 1), dyn, 4)
		},
		func(n *graph.Node) *graph.Node {
			return g.Add(g.Reshape(g.MaxPool2D(g.Reshape(n, dyn, 1, 2, 2), 2, 0), dyn, 1), n)
		},
		func(n *graph.Node) *graph.Node {
			return g.Add(g.Reshape(g.AvgPool2D(g.Reshape(n, dyn, 4, 1, 1), 1, 1), dyn, 4), n)
		},
		func(n *graph.Node) *graph.Node {
			q := g.Reshape(n, dyn, 1, 2, 2)
			return g.Reshape(g.CausalAttention(q, g.Square(q), q), dyn, 4)
		},
		func(n *graph.Node) *graph.Node {
			return g.Add(g.Reshape(g.FMInteraction(g.Reshape(n, dyn, 2, 2)), dyn, 1), b)
		},
		func(n *graph.Node) *graph.Node { return g.Slice(g.DotInteraction(g.Reshape(n, dyn, 4, 1)), 1, 5) },
	}
}

func randomRule(t *rapid.T) optim.Rule {
	return rapid.SampledFrom([]optim.Rule{
		sgd,
		{Kind: optim.Momentum, LR: .1, Momentum: .5, Nesterov: true},
		{Kind: optim.Adam, LR: 1e-3, Beta1: .8, Eps: 1e-7},
		{Kind: optim.Adagrad, LR: .01, L2: 1e-6, InitialAccumulator: .1, LRDecay: .1},
		{Kind: optim.RMSProp, LR: .01, Decay: .5, Centered: true, Momentum: .5, ClipValue: 1},
		{Kind: optim.AdamW, LR: .01, AMSGrad: true, WeightDecay: .5, Schedule: optim.Schedule{Kind: optim.Cosine, Warmup: 2, Steps: 9, MinLR: .001}},
		{Kind: optim.FTRL, LR: .01, L1: .1, Beta: .5, LRPower: -.25},
		{Kind: optim.LAMB, LR: .01, ClipNorm: 1, Schedule: optim.Schedule{Kind: optim.Stairs, Every: 3, Factor: .5}},
		{Kind: optim.Momentum, LR: .01, Dampening: .5},
	}).Draw(t, "rule")
}

// TestTrainAnyGraph proves for any graph that the step holds together, that
// gradients have the shapes of what they are gradients of, and that the text
// form gives the same graph back.
func TestTrainAnyGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, m := randomGraph(t)
		s, err := graph.Train(g, m, randomRule(t))
		if err != nil {
			t.Fatalf("%v\n%s", err, text.Format(g))
		}
		if len(s.Params) != 3 || len(s.Forward) != 3 {
			t.Fatalf("%d parameters, %d forward segments, want 3", len(s.Params), len(s.Forward))
		}
		for _, p := range s.Params {
			want := p.Var.Shape
			if p.IsTable() {
				want = p.Rows.Shape
			}
			if !p.Grad.Shape.Equal(want) {
				t.Errorf("the gradient of %v is %v", p.Var, p.Grad)
			}
		}
		back, err := text.Parse(text.Format(g))
		if err != nil {
			t.Fatalf("%v\n%s", err, text.Format(g))
		}
		for i, n := range g.Nodes() {
			b := back.Nodes()[i]
			if n.Name != b.Name || n.Op != b.Op || n.DType != b.DType || names(n.In) != names(b.In) {
				t.Errorf("%v came back as %v", n, b)
			}
			if diff := cmp.Diff(n.Attr, b.Attr) + cmp.Diff(n.Shape, b.Shape); diff != "" {
				t.Errorf("%v: %s", n, diff)
			}
		}
	})
}
