// Package model holds the models that gangline ships: short functions that
// build the forward part of a graph and its loss.
//
//	| kind     | inputs               | predicts                | parameters                               |
//	|----------|----------------------|-------------------------|------------------------------------------|
//	| logistic | dense, ragged        | a logit                 | w (a column each), b                     |
//	| softmax  | dense, ragged        | logits of classes       | w, b                                     |
//	| linear   | dense, ragged        | a value, squared loss   | w, b                                     |
//	| mlp      | dense, ragged        | a logit, or of classes  | w1, b1, w2, b2, ...                      |
//	| ctr      | dense, ragged with   | a logit                 | tables wide [ids 1], embed [ids dim];    |
//	|          | PerRow entries a row |                         | linear (dense), w1, b1, ...              |
//
// Linear models start at zero, hidden layers at uniform values within
// ±sqrt(6/(in+out)) (Glorot and Bengio 2010), embeddings at small normal
// values. A parameter that is there once for each column is named
// name.column when there are several columns.
package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/tensor"
)

// Column describes an input column of the batch.
type Column struct {
	Name string
	// Dim is the floats a row (dense) or the number of possible ids (ragged).
	Dim    int
	Ragged bool
	// PerRow is the exact number of entries a row of a ragged column has, 0 if
	// it varies.
	PerRow int
}

// Config says which model to build. A field that the kind does not use must be
// zero.
type Config struct {
	// Kind is one of Kinds().
	Kind string
	// Inputs are the columns to predict from, without the label.
	Inputs []Column
	// Label is the column of the target, one float a row; "" means label.
	Label string
	// Hidden are the widths of the hidden layers: at least one for mlp, any
	// number for ctr.
	Hidden []int
	// Dim is the length of an embedding row (ctr).
	Dim int
	// Classes is the number of classes: at least 2 for softmax; for mlp 0 means
	// one logit and the logistic loss.
	Classes int
	// Table keeps the weights of ragged inputs in tables, of which a step reads
	// and updates only the rows it meets (logistic, softmax, linear).
	Table bool
	// Seed decides all initial values.
	Seed uint64
	// Float is the type of all parameters: tensor.F32 or tensor.F64.
	Float tensor.DType
}

// kind is what Build must know of a model.
type kind struct {
	name string
	uses string // the optional fields it reads
	make func(g *graph.Graph, c Config) graph.Model
}

func kinds() []kind {
	return []kind{
		{"logistic", "table", Logistic},
		{"softmax", "classes table", Softmax},
		{"linear", "table", Linear},
		{"mlp", "hidden classes", MLP},
		{"ctr", "hidden dim", CTR},
	}
}

// Kinds returns the names of the models.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// Build makes the graph of a model. Errors name the field at fault; a graph of
// a valid Config fails only on what Validate cannot see, such as a column name
// that is no name.
func Build(c Config) (*graph.Graph, graph.Model, error) {
	if err := c.Validate(); err != nil {
		return nil, graph.Model{}, err
	}
	if c.Label == "" {
		c.Label = "label"
	}
	g := graph.New(c.Float)
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == c.Kind })
	m := kinds()[i].make(g, c)
	if err := g.Err(); err != nil {
		return nil, graph.Model{}, fmt.Errorf("model: %s: %w", c.Kind, err)
	}
	return g, m, nil
}

// Validate reports every field that is out of range, missing, or not used by
// the kind.
func (c Config) Validate() error {
	i := slices.Index(Kinds(), c.Kind)
	if i < 0 {
		return fmt.Errorf("model: kind: unknown %q%s", c.Kind, nearest.Hint(c.Kind, Kinds()))
	}
	uses := strings.Fields(kinds()[i].uses)
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("model: %s: "+format, append([]any{field}, args...)...))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"hidden", len(c.Hidden) > 0}, {"dim", c.Dim != 0}, {"classes", c.Classes != 0}, {"table", c.Table}} {
		if f.set && !slices.Contains(uses, f.name) {
			bad(f.name, "kind %s does not use it", c.Kind)
		}
	}
	for i, h := range c.Hidden {
		if h < 1 {
			bad("hidden", "layer %d has width %d, want at least 1", i, h)
		}
	}
	switch {
	case c.Kind == "mlp" && len(c.Hidden) == 0:
		bad("hidden", "is missing: kind mlp needs the width of at least one layer")
	case c.Kind == "softmax" && c.Classes < 2, c.Kind == "mlp" && c.Classes != 0 && c.Classes < 2:
		bad("classes", "is %d, want at least 2", c.Classes)
	case c.Kind == "ctr" && c.Dim < 1:
		bad("dim", "is %d, want at least 1", c.Dim)
	}
	if !c.Float.IsFloat() {
		bad("float", "is %v, want f32 or f64", c.Float)
	}
	return errors.Join(append(errs, c.checkInputs()...)...)
}

func (c Config) checkInputs() []error {
	var errs []error
	if len(c.Inputs) == 0 {
		errs = append(errs, errors.New("model: inputs: are missing: there is nothing to predict from"))
	}
	label := c.Label
	if label == "" {
		label = "label"
	}
	ragged := false
	for i, col := range c.Inputs {
		if col.Name == label {
			errs = append(errs, fmt.Errorf("model: inputs: %q is the label", col.Name))
		}
		if slices.ContainsFunc(c.Inputs[:i], func(o Column) bool { return o.Name == col.Name }) {
			errs = append(errs, fmt.Errorf("model: inputs: %q is there twice", col.Name))
		}
		if col.Dim < 1 {
			errs = append(errs, fmt.Errorf("model: inputs: %q has dim %d, want at least 1", col.Name, col.Dim))
		}
		if c.Kind == "ctr" && col.Ragged && col.PerRow < 1 {
			errs = append(errs, fmt.Errorf("model: inputs: %q has any number of entries a row; kind ctr needs a fixed number", col.Name))
		}
		if c.Kind == "ctr" && col.Ragged && col.PerRow > 0 && c.Dim > graph.MaxElems/col.PerRow {
			errs = append(errs, fmt.Errorf("model: dim: %d entries a row of %q with dim %d are more than %d numbers",
				col.PerRow, col.Name, c.Dim, graph.MaxElems))
		}
		ragged = ragged || col.Ragged
	}
	if c.Kind == "ctr" && !ragged {
		errs = append(errs, errors.New("model: inputs: kind ctr needs a ragged column to embed"))
	}
	if c.Table && !ragged {
		errs = append(errs, errors.New("model: table: no input is ragged, so there are no rows to pick"))
	}
	return errs
}
