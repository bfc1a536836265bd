package model

import (
	"math"
	"strconv"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Numbers of GPT-2 (Radford et al. 2019): what weights start from, and what
// keeps a norm from dividing by zero.
const (
	gptScale = 0.02
	gptEps   = 1e-5
)

// GPT is a decoder of a language model (Radford et al. 2019): embeddings of
// token and position, Layers blocks of causal attention and a network 4·Dim wide,
// each behind a norm and beside a path that skips it, a last norm, and the logits
// of the next token. The label holds, for every token, the one that follows;
// loss, weight and predictions are those of tokens. Values are [B·S Dim] but for
// attention, so that every product is one product.
func GPT(g *graph.Graph, c Config) graph.Model {
	tokens := c.Inputs[0]
	context, vocabulary := tokens.PerRow, tokens.Dim
	x := g.Gather(g.Variable("embed", gptInit(c, 1), vocabulary, c.Dim), g.Ragged(tokens.Name).IDs())
	x = g.Add(g.Reshape(x, tensor.Dynamic, context, c.Dim), g.Variable("position", gptInit(c, 1), context, c.Dim))
	x = g.Dropout(g.Reshape(x, tensor.Dynamic, c.Dim), c.Dropout, c.Seed)
	for i := range c.Layers {
		name := "block" + strconv.Itoa(i+1) + "."
		a := attention(g, c, norm(g, c, x, name+"norm1."), name, context)
		x = g.Add(x, g.Dropout(a, c.Dropout, c.Seed))
		h := g.Gelu(project(g, c, norm(g, c, x, name+"norm2."), name+"up.", c.Dim, 4*c.Dim, 1))
		h = project(g, c, h, name+"down.", 4*c.Dim, c.Dim, 2*c.Layers)
		x = g.Add(x, g.Dropout(h, c.Dropout, c.Seed))
	}
	z := g.Named("logits", project(g, c, norm(g, c, x, "norm."), "out.", c.Dim, vocabulary, 1))
	y := g.Named("next", g.Reshape(g.Input(c.Label, context), tensor.Dynamic))
	return graph.Model{Task: graph.Tokens, Loss: g.Named("loss", g.SoftmaxLoss(z, y)), Weight: g.Named("weight", g.Count(y)), Predict: z, Label: y}
}

// gptInit is what weights start from. Those that add to the path past the
// layers, of which there are so many, start smaller, that their sum does not grow.
func gptInit(c Config, added int) graph.Init {
	return graph.Init{Kind: graph.Normal, Scale: gptScale / math.Sqrt(float64(added)), Seed: c.Seed}
}

// project is x·w + b.
func project(g *graph.Graph, c Config, x *graph.Node, name string, in, out, added int) *graph.Node {
	return g.Add(g.MatMul(x, g.Variable(name+"w", gptInit(c, added), in, out)), g.Variable(name+"b", graph.Init{}, out))
}

// norm is a layer norm with gain and bias.
func norm(g *graph.Graph, c Config, x *graph.Node, name string) *graph.Node {
	gain := g.Variable(name+"gain", graph.Init{Kind: graph.Constant, Scale: 1}, c.Dim)
	return g.LayerNorm(x, gain, g.Variable(name+"bias", graph.Init{}, c.Dim), gptEps)
}

// attention lets every token of a row look at itself and those before it, with
// Heads heads.
func attention(g *graph.Graph, c Config, x *graph.Node, name string, context int) *graph.Node {
	heads := func(part string) *graph.Node {
		y := project(g, c, x, name+part, c.Dim, c.Dim, 1)
		return g.Reshape(y, tensor.Dynamic, context, c.Heads, c.Dim/c.Heads)
	}
	y := g.CausalAttention(heads("q."), heads("k."), heads("v."))
	return project(g, c, g.Reshape(y, tensor.Dynamic, c.Dim), name+"o.", c.Dim, c.Dim, 2*c.Layers)
}
