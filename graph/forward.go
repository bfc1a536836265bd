package graph

import "github.com/gangline/gangline/tensor"

// MatMul returns a · b.
func (g *Graph) MatMul(a, b *Node) *Node { return g.Apply(MatMul, Attr{}, a, b) }

// MatMulT returns a · b with either operand read transposed.
func (g *Graph) MatMulT(a, b *Node, transA, transB bool) *Node {
	return g.Apply(MatMul, Attr{TransA: transA, TransB: transB}, a, b)
}

// Add returns a + b; b is broadcast to the shape of a.
func (g *Graph) Add(a, b *Node) *Node { return g.Apply(Add, Attr{}, a, b) }

// Sub returns a - b; b is broadcast to the shape of a.
func (g *Graph) Sub(a, b *Node) *Node { return g.Apply(Sub, Attr{}, a, b) }

// Mul returns a · b element by element; b is broadcast to the shape of a.
func (g *Graph) Mul(a, b *Node) *Node { return g.Apply(Mul, Attr{}, a, b) }

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

// Softmax returns the probabilities of each row of x [B C].
func (g *Graph) Softmax(x *Node) *Node { return g.Apply(Softmax, Attr{}, x) }

// Sum returns the sum of all elements, a scalar.
func (g *Graph) Sum(x *Node) *Node { return g.Apply(Sum, Attr{}, x) }

// SumRows returns the sum of each row of x [B C], as [B].
func (g *Graph) SumRows(x *Node) *Node { return g.Apply(SumRows, Attr{}, x) }

// Count returns the number of rows of x, a float scalar. It has no gradient.
func (g *Graph) Count(x *Node) *Node { return g.Apply(Count, Attr{}, x) }

// Reshape returns x in another shape; one dim may be tensor.Dynamic.
func (g *Graph) Reshape(x *Node, shape ...int) *Node {
	return g.Apply(Reshape, Attr{Shape: tensor.Shape(shape)}, x)
}

// Concat joins [B a], [B b], ... to [B a+b+...].
func (g *Graph) Concat(in ...*Node) *Node { return g.Apply(Concat, Attr{Axis: 1}, in...) }

// Slice returns columns start to end (excluded) of x [B C].
func (g *Graph) Slice(x *Node, start, end int) *Node {
	return g.Apply(Slice, Attr{Axis: 1, Start: start, End: end}, x)
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
