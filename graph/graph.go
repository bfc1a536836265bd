// Package graph describes one training step: operators on tensors, their
// shapes, their gradients, and the variables they update. It computes nothing.
//
// A model function builds the forward part and its loss with the methods of a
// Graph, which keep the first mistake for Err instead of returning it;
// Differentiate appends the backward part, Train the updates, and cuts the
// whole into segments: runs of nodes that a backend compiles as one program
// and a plan schedules as one task.
//
// The batch dim of every input is tensor.Dynamic. Losses are sums over the
// examples of a batch, never means, and stand beside a weight (the sum of the
// example weights): dividing happens once, in the update, after the
// contributions of all ranks were added.
package graph

import (
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// Node is one operator with its inputs. Nodes are made by a Graph only, in
// topological order: every input has a smaller ID.
type Node struct {
	// ID is the node's index in Graph.Nodes.
	ID int
	// Name is unique in the graph; plans and checkpoints use it.
	Name  string
	Op    Op
	In    []*Node
	DType tensor.DType
	Shape tensor.Shape
	Attr  Attr
}

// Attr holds the settings of an operator; each Op documents those it reads.
type Attr struct {
	TransA, TransB bool         // MatMul
	Alpha          float64      // Scale, LeakyRelu: the factor; CausalAttention
	Axis           int          // Concat, Slice, PadSlice, SumAxis, Mean, Max, ArgMax and their gradients
	KeepDims       bool         // SumAxis, Mean, Max, ArgMax: the axis stays, as 1
	Perm           []int        // Transpose: which dim of x each dim of the result is
	Eps            float64      // LayerNorm, RMSNorm and their gradients
	Rate           float64      // Dropout: the probability of 0
	Seed           uint64       // Dropout
	Mean           bool         // Bag, BagGrad: divide by the number of entries
	Stride         int          // Conv2D, MaxPool2D, AvgPool2D and their gradients
	Pad            int          // Conv2D and its gradients: zeros on each side
	Window         int          // MaxPool2D, AvgPool2D and their gradients: the side
	Start, End     int          // Slice, PadSlice: the range on Axis, [Start, End)
	Shape          tensor.Shape // Reshape, and sources other than Total
	Value          float64      // Const; SlotVar: what every element starts from
	Column         string       // Input: the column of the batch
	Part           Part         // Input: which part of the column
	Init           Init         // Variable, Table
	Frozen         bool         // Variable: keeps its value, has no gradient
	Rule           optim.Rule   // Update, UpdateRows
	Every          int          // UpdateScale: the steps after which the scale doubles
	Low            tensor.DType // Round: whose values the result has
}

// Part says which tensor of a batch's column an Input is.
type Part string

// The parts of a column. A dense column has only Dense. A ragged column has a
// list of (id, weight) a row: row i owns entries Offsets[i] to Offsets[i+1].
const (
	// Dense is the column itself: [rows, dim] in the graph's float type, or
	// [rows] for a column of dim 1 declared as a vector (labels).
	Dense Part = "dense"
	// Offsets is i64 [rows+1]; Offsets[0] = 0.
	Offsets Part = "offsets"
	// IDs is i64 [entries]: the raw ids.
	IDs Part = "ids"
	// Weights is [entries] in the graph's float type, 1 where the file gives none.
	Weights Part = "weights"
	// Keys is i64 [distinct]: the distinct ids of the batch, ascending.
	Keys Part = "keys"
	// Pos is i64 [entries]: for every entry the index of its id in Keys.
	Pos Part = "pos"
	// Index is i64 [rows], of no column: where each row stands in the step's
	// whole batch, of which a rank may have a part.
	Index Part = "index"
)

// InitKind names a distribution of initial values.
type InitKind string

// The distributions.
const (
	Zeros   InitKind = "zeros"
	Uniform InitKind = "uniform" // in [-Scale, Scale)
	Normal  InitKind = "normal"  // mean 0, standard deviation Scale
	// Constant is Scale everywhere: what slots that do not start at 0 have.
	Constant InitKind = "constant"
)

// Init says how a variable starts. Element i of a variable is a pure function
// of (Seed, the variable's name, i), so any rank or server can make any part
// of it alone, in any order.
type Init struct {
	Kind  InitKind
	Scale float64
	Seed  uint64
}

// Graph is an append-only list of nodes in topological order.
type Graph struct {
	// Float is the type of every float value, F32 or F64, but for those that a graph of
	// mixed precision has in the type Low: BF16, F16 or, for others, Invalid.
	Float, Low tensor.DType
	// LossScale is what Train makes of it in F16. A caller may change it before.
	LossScale optim.LossScale

	nodes  []*Node
	byName map[string]*Node
	ops    map[Op]spec
	rows   map[*Node]*Node // the GatherRows node of each table
	casts  map[*Node]*Node // the Cast of each node that has one
	scale  *Node           // what the gradient of the loss begins with; nil: 1
	total  *Node
	err    error // the first mistake; sticky
}
