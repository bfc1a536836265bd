package graph

// Op names an operator. B is a batch dim, E the entries of a ragged column,
// K the distinct keys of a batch; all three are dynamic.
type Op string

// Sources: no inputs.
const (
	// Input is part Attr.Part of column Attr.Column of the batch.
	Input Op = "input"
	// Variable is a dense trained array of static shape.
	Variable Op = "variable"
	// Table is a trained array [rows, dim] of which a step reads and updates
	// only the rows that its keys name.
	Table Op = "table"
	// SlotVar is an array that an update rule keeps beside a variable or table.
	SlotVar Op = "slot"
	// Const is Attr.Value in shape Attr.Shape (static).
	Const Op = "const"
	// Total is a scalar that the plan provides before an update: the weight of
	// the whole step, summed over all ranks. 0 means: skip the step.
	Total Op = "total"
)

// Forward operators.
const (
	// MatMul is a[m k] · b[k n] = [m n]; Attr.TransA, TransB read an operand transposed.
	MatMul Op = "matmul"
	// Add, Sub, Mul are element by element. The second operand may have fewer
	// dims or dims of 1: it is broadcast as in NumPy.
	Add Op = "add"
	Sub Op = "sub"
	Mul Op = "mul"
	// Scale multiplies by Attr.Alpha.
	Scale Op = "scale"
	// Relu, Sigmoid, Tanh, Exp, Log, Square are element by element.
	Relu    Op = "relu"
	Sigmoid Op = "sigmoid"
	Tanh    Op = "tanh"
	Exp     Op = "exp"
	Log     Op = "log"
	Square  Op = "square"
	// Softmax is over the last dim of [B C].
	Softmax Op = "softmax"
	// Sum adds all elements to a scalar.
	Sum Op = "sum"
	// SumRows is [B C] to [B]: the sum over the last dim.
	SumRows Op = "sumrows"
	// Count is the number of rows of its input, as a float scalar.
	Count Op = "count"
	// Reshape has Attr.Shape; at most one dim is Dynamic and is inferred.
	Reshape Op = "reshape"
	// Concat joins [B a], [B b], ... on Attr.Axis (1).
	Concat Op = "concat"
	// Slice is the range [Attr.Start, Attr.End) of Attr.Axis (1).
	Slice Op = "slice"
	// GatherRows is (table [N D], keys i64 [K]) to [K D]: the one operator that
	// reads a Table. A plan may replace it by a Pull.
	GatherRows Op = "gatherrows"
	// Gather is (rows [K D], index i64 [E]) to [E D]. An index outside [0, K)
	// is an error that names the node, the entry and the id.
	Gather Op = "gather"
	// Bag is (rows [K D], index i64 [E], offsets i64 [B+1], weights [E]) to
	// [B D]: the weighted sum of each row's entries.
	Bag Op = "bag"
)

// Losses: sums over the batch, as scalars.
const (
	// LogisticLoss is (logits [B] or [B 1], labels [B] in {0, 1} or [0, 1]):
	// Σ max(z,0) - z·y + log(1+exp(-|z|)).
	LogisticLoss Op = "logisticloss"
	// SoftmaxLoss is (logits [B C], labels [B] holding the class as a float):
	// Σ logΣexp(z) - z_y. A label outside [0, C) is an error.
	SoftmaxLoss Op = "softmaxloss"
	// SquaredLoss is (prediction [B] or [B 1], labels [B]): Σ (p-y)²/2.
	SquaredLoss Op = "squaredloss"
)

// Gradients: what Differentiate emits where no forward operator says it.
// Inputs are in the order given; dy is the gradient of the result.
const (
	ReluGrad        Op = "relugrad"        // (y, dy)
	SigmoidGrad     Op = "sigmoidgrad"     // (y, dy)
	TanhGrad        Op = "tanhgrad"        // (y, dy)
	LogGrad         Op = "loggrad"         // (x, dy)
	SquareGrad      Op = "squaregrad"      // (x, dy)
	SoftmaxGrad     Op = "softmaxgrad"     // (y, dy)
	Unbroadcast     Op = "unbroadcast"     // (dy, x): dy summed to the shape of x
	FillLike        Op = "filllike"        // (scalar, x): the scalar in the shape of x
	SpreadRows      Op = "spreadrows"      // (dy [B], x [B C]): dy repeated over the last dim
	ReshapeLike     Op = "reshapelike"     // (dy, x): dy in the shape of x
	PadSlice        Op = "padslice"        // (dy, x): zeros of the shape of x with dy in Slice's range
	GatherGrad      Op = "gathergrad"      // (dy [E D], index [E], rows): [K D], duplicates summed in order of entry
	BagGrad         Op = "baggrad"         // (dy [B D], index [E], offsets, weights [E], rows): [K D]
	LogisticGrad    Op = "logisticgrad"    // (z, labels, dy scalar): (sigmoid(z)-y)·dy
	SoftmaxLossGrad Op = "softmaxlossgrad" // (z, labels, dy scalar)
	SquaredGrad     Op = "squaredgrad"     // (p, labels, dy scalar)
)

// Updates.
const (
	// Update is (variable, gradient sum, total, slots...): applies Attr.Rule in
	// place. Total 0 leaves everything as it was. Its results are the variable
	// and the slots themselves.
	Update Op = "update"
	// UpdateRows is (table, keys i64 [K] ascending and distinct, gradient sum
	// [K D], total, slots...): the same for the rows named by the keys.
	UpdateRows Op = "updaterows"
)
