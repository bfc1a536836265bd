package model

import (
	"strconv"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// MLP is a network of fully connected layers: h1 = act(Σ x·w1 + b1), and so on,
// where act is the Activation; the last layer is linear. With NoBias there are no
// b1, b2, ...
func MLP(g *graph.Graph, c Config) graph.Model {
	fanIn := 0
	for _, col := range c.Inputs {
		fanIn += entries(col)
	}
	h := linear(g, "w1", c.Inputs, c.Hidden[0], false, func(Column) graph.Init {
		return glorot(fanIn, c.Hidden[0], c.Seed)
	})
	if !c.NoBias {
		h = g.Add(h, g.Variable("b1", graph.Init{}, c.Hidden[0]))
	}
	h = c.activate(g, h)
	return classify(g, c, func(out int) *graph.Node { return layers(g, c, h, "", 2, c.Hidden, out) })
}

// Activations returns the names of the functions between layers that an mlp may
// have; the first is the default.
func Activations() []string {
	return []string{"relu", "leaky_relu", "tanh", "sigmoid", "gelu", "silu"}
}

// activate applies the function between layers.
func (c Config) activate(g *graph.Graph, x *graph.Node) *graph.Node {
	switch c.Activation {
	case "leaky_relu":
		return g.LeakyRelu(x, c.Slope)
	case "tanh":
		return g.Tanh(x)
	case "sigmoid":
		return g.Sigmoid(x)
	case "gelu":
		return g.Gelu(x)
	case "silu":
		return g.Silu(x)
	}
	return g.Relu(x)
}

// entries is how many features of a column are not 0 in one row, as far as the
// schema says.
func entries(col Column) int {
	if col.Ragged && col.PerRow > 0 {
		return col.PerRow
	}
	return col.Dim
}

// layers appends layers number from, from+1, ... to h, whose width is
// widths[0]: one layer for each further width, then the linear one to out.
// Their parameters are named prefix w1, prefix b1, and so on.
func layers(g *graph.Graph, c Config, h *graph.Node, prefix string, from int, widths []int, out int) *graph.Node {
	for i, in := range widths {
		last, width := i == len(widths)-1, out
		if !last {
			width = widths[i+1]
		}
		n := strconv.Itoa(from + i)
		h = g.MatMul(h, g.Variable(prefix+"w"+n, glorot(in, width, c.Seed), in, width))
		if !c.NoBias {
			h = g.Add(h, g.Variable(prefix+"b"+n, graph.Init{}, width))
		}
		if !last {
			h = c.activate(g, h)
		}
	}
	return h
}

// CNN is a small network for images (LeCun et al. 1998): for each of Filters a
// convolution of 3x3, the maximum of every 2x2, a bias and rectified units; then
// the layers of an MLP. The maximum comes before bias and rectifier because both
// keep order: the result is the same, for a quarter of the work.
func CNN(g *graph.Graph, c Config) graph.Model {
	col := c.Inputs[0]
	im := c.image(col.Dim)
	channels, height, width := im[0], im[1], im[2]
	x := g.Reshape(g.Input(col.Name, col.Dim), tensor.Dynamic, channels, height, width)
	for i, filters := range c.Filters {
		name := "conv" + strconv.Itoa(i+1)
		w := g.Variable(name+".w", glorot(9*channels, 9*filters, c.Seed), filters, channels, 3, 3)
		b := g.Variable(name+".b", graph.Init{}, filters, 1, 1)
		x = g.Relu(g.Add(g.MaxPool2D(g.Conv2D(x, w, 1, 1), 2, 0), b))
		channels, height, width = filters, height/2, width/2
	}
	flat := channels * height * width
	h := g.Reshape(x, tensor.Dynamic, flat)
	return classify(g, c, func(out int) *graph.Node {
		return layers(g, c, h, "", 1, append([]int{flat}, c.Hidden...), out)
	})
}
