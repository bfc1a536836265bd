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
	// the whole step, summed over all ranks, times the loss scale where there is one. 0
	// means: skip the step; -0 that it was skipped for gradients that are not finite.
	Total Op = "total"
)

// Forward operators.
const (
	// MatMul is a[.. m k] · b[.. k n] = [.. m n], one product for every index of
	// the leading dims, which must be equal; or b is [k n] and shared by all of
	// them. Attr.TransA, TransB read the last two dims of an operand swapped.
	MatMul Op = "matmul"
	// Add, Sub, Mul, Div, Maximum, Minimum are element by element, operands
	// broadcast to each other as in NumPy: dims are aligned at the last, and one
	// that is 1 or missing is repeated. A NaN among the two is their maximum and
	// minimum; the gradient of equal ones goes to the first.
	Add     Op = "add"
	Sub     Op = "sub"
	Mul     Op = "mul"
	Div     Op = "div"
	Maximum Op = "maximum"
	Minimum Op = "minimum"
	// Less, LessEqual, Equal compare element by element, broadcast as Add. The
	// result is a float, 1 where it holds and 0 elsewhere, so that masks
	// multiply. It has no gradient.
	Less      Op = "less"
	LessEqual Op = "lessequal"
	Equal     Op = "equal"
	// Where is (condition, a, b): a where the condition is not 0, else b, all
	// three broadcast to each other. The condition has no gradient.
	Where Op = "where"
	// Scale multiplies by Attr.Alpha.
	Scale Op = "scale"
	// Relu, Sigmoid, Tanh, Exp, Log, Square are element by element.
	Relu    Op = "relu"
	Sigmoid Op = "sigmoid"
	Tanh    Op = "tanh"
	Exp     Op = "exp"
	Log     Op = "log"
	Square  Op = "square"
	// Sqrt and Rsqrt, 1/sqrt(x), are NaN below 0.
	Sqrt  Op = "sqrt"
	Rsqrt Op = "rsqrt"
	// LeakyRelu is x above 0 and Attr.Alpha·x elsewhere.
	LeakyRelu Op = "leakyrelu"
	// Gelu is x·Φ(x), Φ being the normal distribution: the exact one, by erf.
	Gelu Op = "gelu"
	// Silu is x·sigmoid(x); Softplus is log(1+exp(x)).
	Silu     Op = "silu"
	Softplus Op = "softplus"
	// Float is an i64 value as floats.
	Float Op = "float"
	// Cast is a value of a graph of mixed precision in its other type: of f32 rounded to
	// the nearest of 16 bits, ties to even, or of 16 bits as f32, exactly.
	Cast Op = "cast"
	// Round is f32 to the nearest value of Attr.Low, as f32. No graph has it: programs
	// do, which compute in f32 what a graph has in 16 bits.
	Round Op = "round"
	// Softmax is over the last dim.
	Softmax Op = "softmax"
	// LayerNorm is (x [.. C], gain [C], bias [C]): over the last dim,
	// (x - mean)/sqrt(variance + Attr.Eps)·gain + bias, with the variance
	// divided by C. Attr.Eps is above 0.
	LayerNorm Op = "layernorm"
	// RMSNorm is (x [.. C], gain [C]): x/sqrt(mean(x²) + Attr.Eps)·gain.
	RMSNorm Op = "rmsnorm"
	// Dropout is (x [R ..], index i64 [B]): every element is 0 with probability
	// Attr.Rate in [0, 1), and x/(1-rate) otherwise. Which ones is a hash of
	// (Attr.Seed, step, example, place of the element within the example), where
	// index says which example of the step's whole batch each row is: the mask
	// depends neither on ranks nor on threads. R may be a multiple of B: every
	// example then has R/B rows. In a segment with Segment.Eval set it is the
	// identity. It is its own gradient.
	Dropout Op = "dropout"
	// Sum adds all elements to a scalar.
	Sum Op = "sum"
	// SumRows is [B C] to [B]: the sum over the last dim.
	SumRows Op = "sumrows"
	// SumAxis, Mean, Max are over Attr.Axis, which is left out of the result or,
	// with Attr.KeepDims, stays as a dim of 1. The mean of nothing is 0 and the
	// maximum -Inf. NaN is greater than any number. The gradient of a maximum
	// goes to the first element that has it.
	SumAxis Op = "sumaxis"
	Mean    Op = "mean"
	Max     Op = "max"
	// ArgMax is the index, as i64, of the first maximum over Attr.Axis, with
	// KeepDims as Max. It is 0 for nothing and has no gradient.
	ArgMax Op = "argmax"
	// Count is the number of rows of its input, as a float scalar.
	Count Op = "count"
	// Reshape has Attr.Shape; at most one dim is Dynamic and is inferred.
	Reshape Op = "reshape"
	// Transpose reorders dims: dim i of the result is dim Attr.Perm[i] of x.
	Transpose Op = "transpose"
	// Concat joins values on Attr.Axis; all other dims are equal.
	Concat Op = "concat"
	// Slice is the range [Attr.Start, Attr.End) of Attr.Axis.
	Slice Op = "slice"
	// GatherRows is (table [N D], keys i64 [K]) to [K D]: the one operator that
	// reads a Table. A plan may replace it by a Pull.
	GatherRows Op = "gatherrows"
	// Gather is (rows [K D], index i64 [E]) to [E D]. An index outside [0, K)
	// is an error that names the node, the entry and the id.
	Gather Op = "gather"
	// Bag is (rows [K D], index i64 [E], offsets i64 [B+1], weights [E]) to
	// [B D]: the weighted sum of each row's entries; with Attr.Mean divided by
	// their number. A row without entries is 0. Weights have no gradient.
	Bag Op = "bag"
)

// Operators of convolutions, attention and pairwise interactions.
const (
	// Conv2D is (x [B C H W], w [O C KH KW]) to [B O H' W'], a cross-correlation
	// with Attr.Pad zeros around and steps of Attr.Stride (0 means 1):
	// H' = (H + 2·pad - KH)/stride + 1, rounded down; W' likewise.
	Conv2D Op = "conv2d"
	// MaxPool2D and AvgPool2D take windows of Attr.Window² on [B C H W], Attr.Stride
	// apart (0 means Window): H' = (H - window)/stride + 1, rounded down. The
	// gradient of a maximum goes to the first element that has it, by rows.
	MaxPool2D Op = "maxpool2d"
	AvgPool2D Op = "avgpool2d"
	// CausalAttention is (q, k, v), each [B S H D]: for each of the H heads alone,
	// row s is the sum of the rows t <= s of v, weighted by the softmax of
	// scale·q_s·k_t. Attr.Alpha is the scale; 0 means 1/sqrt(D).
	CausalAttention Op = "causalattention"
	// FMInteraction is [B F D] to [B]: the sum of the dot products of all pairs
	// i < j of the F vectors (Rendle: Factorization Machines, 2010).
	FMInteraction Op = "fminteraction"
	// DotInteraction is [B F D] to [B F(F-1)/2]: the dot product of each pair
	// i < j in row order, (0,1), (0,2), ..., (1,2), ...
	DotInteraction Op = "dotinteraction"
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
	LeakyReluGrad   Op = "leakyrelugrad"   // (x, dy)
	GeluGrad        Op = "gelugrad"        // (x, dy)
	SiluGrad        Op = "silugrad"        // (x, dy)

	// SpreadAxis is (dy, x): dy, with Attr.Axis as 1 or left out, repeated over that axis of x.
	SpreadAxis Op = "spreadaxis"
	MeanGrad   Op = "meangrad" // (dy, x): SpreadAxis divided by the size of the axis
	MaxGrad    Op = "maxgrad"  // (dy, x): dy where the first maximum of x over Attr.Axis is, 0 elsewhere

	LayerNormGrad     Op = "layernormgrad"     // (x, gain, dy): of x
	LayerNormGainGrad Op = "layernormgaingrad" // (x, dy): [C], of the gain
	RMSNormGrad       Op = "rmsnormgrad"       // (x, gain, dy): of x
	RMSNormGainGrad   Op = "rmsnormgaingrad"   // (x, dy): [C], of the gain

	Conv2DGradX   Op = "conv2dgradx"   // (dy, w, x): of x
	Conv2DGradW   Op = "conv2dgradw"   // (dy, x, w): of w
	MaxPool2DGrad Op = "maxpool2dgrad" // (dy, x)
	AvgPool2DGrad Op = "avgpool2dgrad" // (dy, x)

	// CausalAttentionGrad is (q, k, v, dy) to [B S 3H D]: the heads of the
	// gradients of q, k and v side by side. It computes the weights again.
	CausalAttentionGrad Op = "causalattentiongrad"
	FMInteractionGrad   Op = "fminteractiongrad"  // (x, dy [B])
	DotInteractionGrad  Op = "dotinteractiongrad" // (x, dy [B F(F-1)/2])
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
	// UpdateScale is (scale, good, total), all scalars: adapts the scale of the loss in
	// place, as Step.Scaling says.
	UpdateScale Op = "updatescale"
)
