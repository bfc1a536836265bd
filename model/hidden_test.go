package model

import (
	"strings"
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Every hidden layer is rectified: without, a deep model trains, and is linear.
func TestHiddenLayersAreRectified(t *testing.T) {
	mixed := []Column{{Name: "x", Dim: 3}, {Name: "ids", Ragged: true, Dim: 40, PerRow: 2}}
	for _, c := range []Config{
		{Kind: "mlp", Inputs: mixed[:1], Hidden: []int{5, 4, 3}, Classes: 3},
		{Kind: "mlp", Inputs: mixed[:1], Hidden: []int{5}},
		{Kind: "ctr", Inputs: mixed, Hidden: []int{5, 4}, Dim: 2},
		{Kind: "ctr", Inputs: mixed, Dim: 2},
		{Kind: "deepfm", Inputs: mixed, Hidden: []int{5}, Dim: 2},
		{Kind: "dlrm", Inputs: mixed, Hidden: []int{5, 4}, Bottom: []int{3, 4}, Dim: 2},
		{Kind: "cnn", Inputs: []Column{{Name: "x", Dim: 64}}, Filters: []int{2, 3}, Hidden: []int{4}},
	} {
		c.Float = tensor.F32
		want := len(c.Hidden) + len(c.Bottom) + len(c.Filters)
		if c.Kind == "dlrm" {
			want++ // the last layer of the bottom network
		}
		g, _, err := Build(c)
		if err != nil {
			t.Fatal(err)
		}
		rectified := 0
		for _, n := range g.Nodes() {
			if n.Op == graph.Relu {
				rectified++
			}
		}
		if rectified != want {
			t.Errorf("%s with hidden layers %v has %d rectified ones, want %d", c.Kind, c.Hidden, rectified, want)
		}
	}
}

// The activation that is asked for stands between all layers of an mlp, and
// without biases there are weights alone.
func TestActivations(t *testing.T) {
	ops := map[string]graph.Op{
		"relu": graph.Relu, "leaky_relu": graph.LeakyRelu, "tanh": graph.Tanh, "sigmoid": graph.Sigmoid, "gelu": graph.Gelu, "silu": graph.Silu,
	}
	for _, name := range Activations() {
		c := Config{Kind: "mlp", Inputs: []Column{{Name: "x", Dim: 3}}, Hidden: []int{5, 4}, Activation: name, NoBias: true, Float: tensor.F32}
		if name == "leaky_relu" {
			c.Slope = .01
		}
		g, m, err := Build(c)
		if err != nil {
			t.Fatal(err)
		}
		count, params := 0, 0
		for _, n := range g.Nodes() {
			if n.Op == ops[name] {
				count++
			}
			if n.Op == graph.LeakyRelu && n.Attr.Alpha != .01 {
				t.Errorf("slope %v", n.Attr.Alpha)
			}
			if n.Op == graph.Variable {
				params++
			}
		}
		if count != 2 || params != 3 || m.Task != graph.Binary {
			t.Errorf("%s: %d of %s, %d parameters", name, count, ops[name], params)
		}
	}
	for want, edit := range map[string]func(c *Config){
		`did you mean "leaky_relu"`: func(c *Config) { c.Activation = "leakyrelu" },
		"slope: is 0":               func(c *Config) { c.Activation = "leaky_relu" },
		"slope: is 2":               func(c *Config) { c.Activation, c.Slope = "leaky_relu", 2 },
		"slope: is 0.1":             func(c *Config) { c.Slope = .1 },
		"bias: kind logistic":       func(c *Config) { c.Kind, c.Hidden, c.NoBias = "logistic", nil, true },
		"activation: kind logistic": func(c *Config) { c.Kind, c.Hidden, c.Activation = "logistic", nil, "tanh" },
	} {
		c := Config{Kind: "mlp", Inputs: []Column{{Name: "x", Dim: 3}}, Hidden: []int{5}, Float: tensor.F32}
		edit(&c)
		if _, _, err := Build(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
