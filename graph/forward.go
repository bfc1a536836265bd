package graph

import (
	"strconv"

	"github.com/gangline/gangline/graph/internal/random"
	"github.com/gangline/gangline/tensor"
)

// MatMul returns a · b: [.. m k] by [.. k n], or by a [k n] that all share.
func (g *Graph) MatMul(a, b *Node) *Node { return g.Apply(MatMul, Attr{}, a, b) }

// MatMulT returns a · b with the last two dims of either operand read swapped.
func (g *Graph) MatMulT(a, b *Node, transA, transB bool) *Node {
	return g.Apply(MatMul, Attr{TransA: transA, TransB: transB}, a, b)
}

// Add returns a + b. It, and whatever else here takes a and b element by
// element, broadcasts them to each other as NumPy does.
func (g *Graph) Add(a, b *Node) *Node { return g.Apply(Add, Attr{}, a, b) }

// Sub returns a - b.
func (g *Graph) Sub(a, b *Node) *Node { return g.Apply(Sub, Attr{}, a, b) }

// Mul returns a · b element by element.
func (g *Graph) Mul(a, b *Node) *Node { return g.Apply(Mul, Attr{}, a, b) }

// Div returns a / b.
func (g *Graph) Div(a, b *Node) *Node { return g.Apply(Div, Attr{}, a, b) }

// Maximum returns the greater of a and b, element by element.
func (g *Graph) Maximum(a, b *Node) *Node { return g.Apply(Maximum, Attr{}, a, b) }

// Minimum returns the smaller of a and b, element by element.
func (g *Graph) Minimum(a, b *Node) *Node { return g.Apply(Minimum, Attr{}, a, b) }

// Less returns 1 where a < b and 0 elsewhere. It has no gradient.
func (g *Graph) Less(a, b *Node) *Node { return g.Apply(Less, Attr{}, a, b) }

// LessEqual returns 1 where a <= b and 0 elsewhere. It has no gradient.
func (g *Graph) LessEqual(a, b *Node) *Node { return g.Apply(LessEqual, Attr{}, a, b) }

// Equal returns 1 where a = b and 0 elsewhere. It has no gradient.
func (g *Graph) Equal(a, b *Node) *Node { return g.Apply(Equal, Attr{}, a, b) }

// Where returns a where the condition is not 0, else b.
func (g *Graph) Where(condition, a, b *Node) *Node { return g.Apply(Where, Attr{}, condition, a, b) }

// Neg returns -x.
func (g *Graph) Neg(x *Node) *Node { return g.Scale(x, -1) }

// Scale returns alpha · x.
func (g *Graph) Scale(x *Node, alpha float64) *Node { return g.Apply(Scale, Attr{Alpha: alpha}, x) }

// Relu returns max(x, 0).
func (g *Graph) Relu(x *Node) *Node { return g.Apply(Relu, Attr{}, x) }

// Sigmoid returns 1 / (1 + exp(-x)).
func (g *Graph) Sigmoid(x *Node) *Node { return g.Apply(Sigmoid, Attr{}, x) }

// Tanh returns the hyperbolic tangent.
func (g *Graph) Tanh(x *Node) *Node { return g.Apply(Tanh, Attr{}, x) }

// Exp returns e to the power of x.
func (g *Graph) Exp(x *Node) *Node { return g.Apply(Exp, Attr{}, x) }

// Log returns the natural logarithm.
func (g *Graph) Log(x *Node) *Node { return g.Apply(Log, Attr{}, x) }

// Square returns x².
func (g *Graph) Square(x *Node) *Node { return g.Apply(Square, Attr{}, x) }

// Sqrt returns the square root.
func (g *Graph) Sqrt(x *Node) *Node { return g.Apply(Sqrt, Attr{}, x) }

// Rsqrt returns 1 / sqrt(x).
func (g *Graph) Rsqrt(x *Node) *Node { return g.Apply(Rsqrt, Attr{}, x) }

// LeakyRelu returns x where it is above 0 and alpha · x elsewhere.
func (g *Graph) LeakyRelu(x *Node, alpha float64) *Node {
	return g.Apply(LeakyRelu, Attr{Alpha: alpha}, x)
}

// Gelu returns x · Φ(x), exactly.
func (g *Graph) Gelu(x *Node) *Node { return g.Apply(Gelu, Attr{}, x) }

// Silu returns x · sigmoid(x).
func (g *Graph) Silu(x *Node) *Node { return g.Apply(Silu, Attr{}, x) }

// Softplus returns log(1 + exp(x)).
func (g *Graph) Softplus(x *Node) *Node { return g.Apply(Softplus, Attr{}, x) }

// ToFloat returns an i64 value as floats. It has no gradient.
func (g *Graph) ToFloat(x *Node) *Node { return g.Apply(Float, Attr{}, x) }

// Softmax returns probabilities over the last dim of x.
func (g *Graph) Softmax(x *Node) *Node { return g.Apply(Softmax, Attr{}, x) }

// LayerNorm brings every vector of the last dim of x to mean 0 and variance 1,
// and then to gain and bias, both [C].
func (g *Graph) LayerNorm(x, gain, bias *Node, eps float64) *Node {
	return g.Apply(LayerNorm, Attr{Eps: eps}, x, gain, bias)
}

// RMSNorm divides every vector of the last dim of x by the root of its mean
// square, and multiplies by gain [C].
func (g *Graph) RMSNorm(x, gain *Node, eps float64) *Node {
	return g.Apply(RMSNorm, Attr{Eps: eps}, x, gain)
}

// Dropout zeroes elements of x, whose rows are those of the batch or a multiple,
// with probability rate while training. Two calls with the same seed have masks
// of their own: the name of the node is part of Attr.Seed. Rate 0 returns x.
func (g *Graph) Dropout(x *Node, rate float64, seed uint64) *Node {
	if rate == 0 {
		return x
	}
	index := g.Index()
	name := string(Dropout) + "." + strconv.Itoa(len(g.nodes)-len(g.casts)) // alike in all types
	return g.Apply(Dropout, Attr{Rate: rate, Seed: random.Stream(seed, name)}, x, index)
}

// Sum returns the sum of all elements, a scalar.
func (g *Graph) Sum(x *Node) *Node { return g.Apply(Sum, Attr{}, x) }

// SumRows returns the sum of each row of x [B C], as [B].
func (g *Graph) SumRows(x *Node) *Node { return g.Apply(SumRows, Attr{}, x) }

// SumAxis returns the sum over an axis, which may be counted from the end, -1
// being the last. keepDims leaves it in the shape, as 1.
func (g *Graph) SumAxis(x *Node, axis int, keepDims bool) *Node {
	return g.Apply(SumAxis, Attr{Axis: axis, KeepDims: keepDims}, x)
}

// MeanAxis is as SumAxis, for the mean.
func (g *Graph) MeanAxis(x *Node, axis int, keepDims bool) *Node {
	return g.Apply(Mean, Attr{Axis: axis, KeepDims: keepDims}, x)
}

// MaxAxis is as SumAxis, for the maximum.
func (g *Graph) MaxAxis(x *Node, axis int, keepDims bool) *Node {
	return g.Apply(Max, Attr{Axis: axis, KeepDims: keepDims}, x)
}

// ArgMax returns the index of the first maximum over an axis, as i64.
func (g *Graph) ArgMax(x *Node, axis int, keepDims bool) *Node {
	return g.Apply(ArgMax, Attr{Axis: axis, KeepDims: keepDims}, x)
}

// Mean returns the mean of all elements, a scalar.
func (g *Graph) Mean(x *Node) *Node { return g.MeanAxis(g.Reshape(x, tensor.Dynamic), 0, false) }

// Max returns the greatest of all elements, a scalar.
func (g *Graph) Max(x *Node) *Node { return g.MaxAxis(g.Reshape(x, tensor.Dynamic), 0, false) }

// Count returns the number of rows of x, a float scalar. It has no gradient.
func (g *Graph) Count(x *Node) *Node { return g.Apply(Count, Attr{}, x) }

// Reshape returns x in another shape; one dim may be tensor.Dynamic.
func (g *Graph) Reshape(x *Node, shape ...int) *Node {
	return g.Apply(Reshape, Attr{Shape: tensor.Shape(shape)}, x)
}

// Transpose returns x with dim perm[i] as dim i; no perm stands for the reverse
// order.
func (g *Graph) Transpose(x *Node, perm ...int) *Node { return g.Apply(Transpose, Attr{Perm: perm}, x) }

// Concat joins [B a], [B b], ... to [B a+b+...].
func (g *Graph) Concat(in ...*Node) *Node { return g.ConcatAxis(1, in...) }

// ConcatAxis joins values on an axis, which may be counted from the end.
func (g *Graph) ConcatAxis(axis int, in ...*Node) *Node {
	return g.Apply(Concat, Attr{Axis: axis}, in...)
}

// Slice returns columns start to end (excluded) of x [B C ..].
func (g *Graph) Slice(x *Node, start, end int) *Node { return g.SliceAxis(x, 1, start, end) }

// SliceAxis returns start to end (excluded) of an axis, which may be counted
// from the end.
func (g *Graph) SliceAxis(x *Node, axis, start, end int) *Node {
	return g.Apply(Slice, Attr{Axis: axis, Start: start, End: end}, x)
}

// Split cuts an axis into slices of the given sizes, which must add up to it.
func (g *Graph) Split(x *Node, axis int, sizes ...int) []*Node {
	parts, at := make([]*Node, len(sizes)), 0
	for i, n := range sizes {
		parts[i] = g.SliceAxis(x, axis, at, at+n)
		at += n
	}
	if g.err == nil && len(sizes) > 0 && x.Shape[parts[0].Attr.Axis] != at {
		g.fail("split %v of %q %v on axis %d: the sizes add up to %d", sizes, x.Name, x.Shape, axis, at)
	}
	return parts
}

// GatherRows returns the rows [K D] of a table that keys [K] name. Asking again
// for the same table and keys returns the same node; other keys for the same
// table are an error, since a step gives a table one sparse gradient.
func (g *Graph) GatherRows(table, keys *Node) *Node {
	if n := g.rows[table]; n != nil && n.In[1] == keys {
		return n
	}
	return g.Apply(GatherRows, Attr{}, table, keys)
}

// Gather returns row index[e] of rows [K D] for every entry e, as [E D].
func (g *Graph) Gather(rows, index *Node) *Node { return g.Apply(Gather, Attr{}, rows, index) }

// Bag returns, for every row of the batch, the weighted sum of the rows that
// its entries name, as [B D].
func (g *Graph) Bag(rows, index, offsets, weights *Node) *Node {
	return g.Apply(Bag, Attr{}, rows, index, offsets, weights)
}

// MeanBag is Bag, divided by the number of entries of the row.
func (g *Graph) MeanBag(rows, index, offsets, weights *Node) *Node {
	return g.Apply(Bag, Attr{Mean: true}, rows, index, offsets, weights)
}

// Conv2D returns the cross-correlation of images x [B C H W] with w [O C KH KW].
// Stride 0 means 1.
func (g *Graph) Conv2D(x, w *Node, stride, pad int) *Node {
	return g.Apply(Conv2D, Attr{Stride: stride, Pad: pad}, x, w)
}

// MaxPool2D returns the maximum of windows of window² of x [B C H W], stride
// apart; stride 0 means window.
func (g *Graph) MaxPool2D(x *Node, window, stride int) *Node {
	return g.Apply(MaxPool2D, Attr{Window: window, Stride: stride}, x)
}

// AvgPool2D is as MaxPool2D, for the mean.
func (g *Graph) AvgPool2D(x *Node, window, stride int) *Node {
	return g.Apply(AvgPool2D, Attr{Window: window, Stride: stride}, x)
}

// CausalAttention lets every position of q, k, v [B S H D] attend to itself and
// those before it, each of H heads alone, with the scale 1/sqrt(D).
func (g *Graph) CausalAttention(q, k, v *Node) *Node {
	return g.Apply(CausalAttention, Attr{}, q, k, v)
}

// FMInteraction returns the sum of the dot products of all pairs of the F
// vectors of x [B F D], as [B].
func (g *Graph) FMInteraction(x *Node) *Node { return g.Apply(FMInteraction, Attr{}, x) }

// DotInteraction returns the dot product of each pair i < j of the F vectors of
// x [B F D], in row order, as [B F(F-1)/2].
func (g *Graph) DotInteraction(x *Node) *Node { return g.Apply(DotInteraction, Attr{}, x) }

// LogisticLoss returns the logistic loss of logits against labels in [0, 1],
// summed over the batch.
func (g *Graph) LogisticLoss(logits, labels *Node) *Node {
	return g.Apply(LogisticLoss, Attr{}, logits, labels)
}

// SoftmaxLoss returns the cross entropy of logits [B C] against class labels
// [B], summed over the batch.
func (g *Graph) SoftmaxLoss(logits, labels *Node) *Node {
	return g.Apply(SoftmaxLoss, Attr{}, logits, labels)
}

// SquaredLoss returns half the squared error, summed over the batch.
func (g *Graph) SquaredLoss(prediction, labels *Node) *Node {
	return g.Apply(SquaredLoss, Attr{}, prediction, labels)
}
