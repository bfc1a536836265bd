package model

import (
	"fmt"

	"github.com/gangline/gangline/graph"
)

// Custom is a model of somebody else's, as a function that builds a graph as
// the functions of this package do: the forward part from the inputs that
// Config names, and its loss, a sum over the batch. It must do the same each
// time: all ranks build the model, and compare what came out.
type Custom struct {
	// Name is the kind that jobs give, none of Kinds.
	Name string
	// Task is what the model predicts. It decides how labels are read and which
	// metrics are taken.
	Task graph.Task
	// Func builds the graph. Fields of Config that a job sets mean what Func
	// makes of them.
	Func func(g *graph.Graph, c Config) graph.Model
}

// Build makes the graph. Mistakes made in building it, inputs that no
// model could have, and another task than was promised are errors.
func (m *Custom) Build(c Config) (*graph.Graph, graph.Model, error) {
	if !c.Float.IsFloat() && !c.Float.IsHalf() {
		return nil, graph.Model{}, fmt.Errorf("model: float: is %v, want f32, f64, bf16 or f16", c.Float)
	}
	if c.Label == "" {
		c.Label = "label"
	}
	g := graph.New(c.Float)
	out := m.Func(g, c)
	if err := g.Err(); err != nil {
		return nil, graph.Model{}, fmt.Errorf("model: %s: %w", m.Name, err)
	}
	if out.Task != m.Task {
		return nil, graph.Model{}, fmt.Errorf("model: %s: it has task %q and was declared %q", m.Name, out.Task, m.Task)
	}
	return g, out, nil
}
