// Package model holds the models that gangline ships: short functions that
// build the forward part of a graph and its loss.
//
//	| kind     | inputs                | predicts               | parameters                               |
//	|----------|-----------------------|------------------------|------------------------------------------|
//	| logistic | dense, ragged         | a logit                | w (a column each), b                     |
//	| softmax  | dense, ragged         | logits of classes      | w, b                                     |
//	| linear   | dense, ragged         | a value, squared loss  | w, b                                     |
//	| mlp      | dense, ragged         | a logit, or of classes | w1, b1, w2, b2, ...                      |
//	| cnn      | one dense: images     | a logit, or of classes | conv1.w, conv1.b, ...; w1, b1, ...       |
//	| fm       | dense, ragged         | a logit                | tables w [ids 1], embed [ids dim]; b     |
//	| ctr      | ragged with PerRow    | a logit                | tables wide [ids 1], embed [ids dim];    |
//	|          | entries a row, dense  |                        | linear (dense), w1, b1, ...              |
//	| deepfm   | as ctr                | a logit                | as ctr                                   |
//	| dlrm     | as ctr, both needed   | a logit                | table embed [ids dim]; bottom.w1,        |
//	|          |                       |                        | bottom.b1, ...; w1, b1, ...              |
//	| gpt      | one ragged: PerRow    | logits of the next     | embed, position; block1.q.w, ...;        |
//	|          | tokens a row          | token, at every one    | norm.gain, norm.bias, out.w, out.b       |
//
// Linear models start at zero, hidden layers at uniform values within
// ±sqrt(6/(in+out)) (Glorot and Bengio 2010), embeddings at small normal
// values. A parameter that is there once for each column is named
// name.column when there are several columns.
package model

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/graph"
)

// kind is what Build must know of a model.
type kind struct {
	name  string
	uses  string // the optional fields it reads
	needs string // those of them that must be set
	cols  inputs
	make  func(g *graph.Graph, c Config) graph.Model
}

// inputs says which columns a kind needs.
type inputs struct {
	single  bool   // no second one
	dense   bool   // a dense one
	ragged  bool   // a ragged one, for purpose
	fixed   bool   // ragged ones have PerRow entries
	purpose string // "to embed"
}

func kinds() []kind {
	bags := inputs{ragged: true, fixed: true, purpose: "to embed"}
	return []kind{
		{"logistic", "table", "", inputs{}, Logistic},
		{"softmax", "classes table", "", inputs{}, Softmax},
		{"linear", "table", "", inputs{}, Linear},
		{"mlp", "hidden activation slope bias classes", "hidden", inputs{}, MLP},
		{"cnn", "filters image hidden classes", "filters", inputs{single: true, dense: true}, CNN},
		{"fm", "dim", "dim", inputs{}, FM},
		{"ctr", "hidden dim", "dim", bags, CTR},
		{"deepfm", "hidden dim", "dim", bags, DeepFM},
		{"dlrm", "bottom hidden dim", "dim", inputs{ragged: true, fixed: true, dense: true, purpose: "to embed"}, DLRM},
		{"gpt", "layers heads dim dropout", "layers heads dim", inputs{single: true, ragged: true, fixed: true, purpose: "of tokens"}, GPT},
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
