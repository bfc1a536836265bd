package graph

import "github.com/gangline/gangline/optim"

// Segment is a run of nodes that is compiled and scheduled as one.
//
// Guarantees: (1) Nodes are in topological order; (2) every input of a node is
// an earlier node of the segment or in In; (3) sources (Input, Variable,
// Table, SlotVar, Total) are never in Nodes, only in In; (4) Out are nodes of
// the segment that something outside reads, or, for an update, the variable
// and the slots, which are also in In and are changed in place.
type Segment struct {
	Name    string
	Nodes   []*Node
	In, Out []*Node
	// Eval says that the segment computes no gradients: Dropout is the identity.
	Eval bool
}

// Param is one trained variable or table of a step.
type Param struct {
	// Var is the Variable or Table node.
	Var *Node
	// Grad is the node of its gradient sum: the variable's shape, or [K D] for
	// a table.
	Grad *Node
	// Keys and Rows are nil for a variable. Keys is the Input with the batch's
	// distinct ids, Rows the GatherRows node that stands for the rows.
	Keys, Rows *Node
	Slots      []*Node
	Rule       optim.Rule
	// Gather reads Rows from Var (tables only); Update applies the rule. Both
	// index Step.Segments.
	Gather, Update int
	// EvalGather does as Gather in the evaluation part.
	EvalGather int
}

// IsTable reports whether only named rows of the parameter are read and updated.
func (p *Param) IsTable() bool { return p.Keys != nil }

// Task says what a model predicts, and so which metrics make sense.
type Task string

// The tasks.
const (
	Binary     Task = "binary"     // Predict is logits [B]
	Multiclass Task = "multiclass" // Predict is logits [B C]
	Regression Task = "regression" // Predict is values [B]
	Tokens     Task = "tokens"     // Predict is logits [T C] of the next token, T being all tokens of the batch
)

// Model is what a model function returns: where its loss and predictions are.
type Model struct {
	Task    Task
	Loss    *Node // scalar: the sum over the batch
	Weight  *Node // scalar: the sum of the example weights
	Predict *Node
	Label   *Node
}

// Step is a training step, ready to be planned: the product of Train.
//
// Segments holds all of them; the other fields index it. A strategy emits the
// Forward segments in order; after each it may send off the gradients that the
// segment's Out completes. Gather segments come before the first Forward
// segment that reads their rows.
type Step struct {
	Graph    *Graph
	Model    Model
	Params   []Param
	Segments []Segment
	// Forward are the segments of loss and gradients, cut after each gradient
	// in the order backward makes them.
	Forward []int
	// Eval is the one segment of loss, weight and predictions without gradients.
	Eval int
	// Total is the node of the step's total weight, an input of every update.
	Total *Node
	// Scaling is the scale of the loss in f16, nil where there is none.
	Scaling *Scaling
}
