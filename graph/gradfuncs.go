package graph

import (
	"slices"

	"github.com/gangline/gangline/graph/shape"
)

// gradFunc returns the gradient of input i of n, given the gradient dy of n, or
// nil if the operator has none for that input.
type gradFunc func(g *Graph, n, dy *Node, i int) *Node

// gradients is the table of gradient functions.
func gradients() map[Op]gradFunc {
	return map[Op]gradFunc{
		MatMul: matMulGrad,
		Add:    addGrad, Sub: subGrad, Mul: mulGrad, Div: divGrad,
		Maximum: choiceGrad, Minimum: choiceGrad, Where: whereGrad,
		Scale:   func(g *Graph, n, dy *Node, _ int) *Node { return g.Scale(dy, n.Attr.Alpha) },
		Relu:    ofResult(ReluGrad),
		Sigmoid: ofResult(SigmoidGrad),
		Tanh:    ofResult(TanhGrad),
		Softmax: ofResult(SoftmaxGrad),
		Exp:     func(g *Graph, n, dy *Node, _ int) *Node { return g.Mul(dy, n) },
		Log:     ofInput(LogGrad),
		Square:  ofInput(SquareGrad),
		Cast:    func(g *Graph, _, dy *Node, _ int) *Node { return g.cast(dy) },
		Sqrt:    func(g *Graph, n, dy *Node, _ int) *Node { return g.Scale(g.Div(dy, n), .5) },
		Rsqrt: func(g *Graph, n, dy *Node, _ int) *Node {
			return g.Scale(g.Mul(dy, g.Mul(n, g.Square(n))), -.5)
		},
		LeakyRelu: ofInput(LeakyReluGrad),
		Gelu:      ofInput(GeluGrad),
		Silu:      ofInput(SiluGrad),
		Softplus:  func(g *Graph, n, dy *Node, _ int) *Node { return g.Mul(dy, g.Sigmoid(n.In[0])) },
		Dropout: first(func(g *Graph, n, dy *Node) *Node {
			return g.Apply(Dropout, n.Attr, dy, n.In[1])
		}),
		LayerNorm: normGrad(LayerNormGrad, LayerNormGainGrad),
		RMSNorm:   normGrad(RMSNormGrad, RMSNormGainGrad),
		Sum:       like(FillLike),
		SumRows:   like(SpreadRows),
		SumAxis:   like(SpreadAxis),
		Mean:      like(MeanGrad),
		Max:       like(MaxGrad),
		Reshape:   reshapeGrad,
		Slice:     like(PadSlice),
		Transpose: transposeGrad,
		Concat:    concatGrad,
		Gather: first(func(g *Graph, n, dy *Node) *Node {
			return g.Apply(GatherGrad, Attr{}, dy, n.In[1], n.In[0])
		}),
		Bag: first(func(g *Graph, n, dy *Node) *Node {
			return g.Apply(BagGrad, n.Attr, dy, n.In[1], n.In[2], n.In[3], n.In[0])
		}),
		Conv2D:          conv2DGrad,
		MaxPool2D:       like(MaxPool2DGrad),
		AvgPool2D:       like(AvgPool2DGrad),
		CausalAttention: attentionGrad,
		FMInteraction:   ofInput(FMInteractionGrad),
		DotInteraction:  ofInput(DotInteractionGrad),
		LogisticLoss:    ofLoss(LogisticGrad),
		SoftmaxLoss:     ofLoss(SoftmaxLossGrad),
		SquaredLoss:     ofLoss(SquaredGrad),
	}
}

// ofResult is for operators whose gradient reads the result: op(y, dy).
func ofResult(op Op) gradFunc {
	return func(g *Graph, n, dy *Node, _ int) *Node { return g.Apply(op, n.Attr, n, dy) }
}

// ofInput is for operators whose gradient reads the input: op(x, dy).
func ofInput(op Op) gradFunc {
	return func(g *Graph, n, dy *Node, _ int) *Node { return g.Apply(op, n.Attr, n.In[0], dy) }
}

// like is for operators that move or choose values: op(dy, x), with n's settings.
func like(op Op) gradFunc {
	return func(g *Graph, n, dy *Node, _ int) *Node { return g.Apply(op, n.Attr, dy, n.In[0]) }
}

// first is for operators with a gradient for their first input only.
func first(f func(g *Graph, n, dy *Node) *Node) gradFunc {
	return func(g *Graph, n, dy *Node, i int) *Node {
		if i != 0 {
			return nil
		}
		return f(g, n, dy)
	}
}

// ofLoss is for losses: op(z, labels, dy).
func ofLoss(op Op) gradFunc {
	return first(func(g *Graph, n, dy *Node) *Node { return g.Apply(op, Attr{}, n.In[0], n.In[1], dy) })
}

// unbroadcast sums dy to the shape of x where they differ.
func unbroadcast(g *Graph, dy, x *Node) *Node {
	if dy.Shape.Equal(x.Shape) {
		return dy
	}
	return g.Apply(Unbroadcast, Attr{}, dy, x)
}

func addGrad(g *Graph, n, dy *Node, i int) *Node { return unbroadcast(g, dy, n.In[i]) }

func subGrad(g *Graph, n, dy *Node, i int) *Node {
	dx := unbroadcast(g, dy, n.In[i])
	if i == 0 {
		return dx
	}
	return g.Scale(dx, -1)
}

func mulGrad(g *Graph, n, dy *Node, i int) *Node {
	return unbroadcast(g, g.Mul(dy, n.In[1-i]), n.In[i])
}

// divGrad is dy/b for a and -dy·y/b for b.
func divGrad(g *Graph, n, dy *Node, i int) *Node {
	d := g.Div(dy, n.In[1])
	if i == 0 {
		return unbroadcast(g, d, n.In[0])
	}
	return g.Scale(unbroadcast(g, g.Mul(d, n), n.In[1]), -1)
}

// choiceGrad hands dy to the operand that was chosen.
func choiceGrad(g *Graph, n, dy *Node, i int) *Node {
	least, most := n.In[0], n.In[1]
	if n.Op == Maximum {
		least, most = most, least
	}
	return whereGradOf(g, g.LessEqual(least, most), n.In[i], dy, i == 0)
}

func whereGrad(g *Graph, n, dy *Node, i int) *Node {
	if i == 0 {
		return nil
	}
	return whereGradOf(g, n.In[0], n.In[i], dy, i == 1)
}

// whereGradOf is dy for x where the condition is as chosen, 0 elsewhere.
func whereGradOf(g *Graph, condition, x, dy *Node, chosen bool) *Node {
	a, b := dy, g.Const(0)
	if !chosen {
		a, b = b, a
	}
	return unbroadcast(g, g.Where(condition, a, b), x)
}

// matMulGrad follows from d(op(a)·op(b)): for y = a·b, da = dy·bᵀ, db = aᵀ·dy;
// an operand read transposed has the transposed gradient. For a b that the
// products share, all of them are one product of the rows of all.
func matMulGrad(g *Graph, n, dy *Node, i int) *Node {
	a, b, ta, tb := n.In[0], n.In[1], n.Attr.TransA, n.Attr.TransB
	if len(a.Shape) > 2 && len(b.Shape) == 2 {
		return sharedGrad(g, n, dy, i)
	}
	switch {
	case i == 0 && !ta:
		return g.MatMulT(dy, b, false, !tb)
	case i == 0:
		return g.MatMulT(b, dy, tb, true)
	case !tb:
		return g.MatMulT(a, dy, !ta, false)
	default:
		return g.MatMulT(dy, a, true, ta)
	}
}

func sharedGrad(g *Graph, n, dy *Node, i int) *Node {
	a, b := n.In[0], n.In[1]
	if i == 0 {
		da := g.MatMulT(dy, b, false, !n.Attr.TransB)
		if n.Attr.TransA {
			da = swapLast(g, da)
		}
		return da
	}
	if n.Attr.TransA {
		a = swapLast(g, a)
	}
	a, dy = rowsOf(g, a), rowsOf(g, dy)
	if n.Attr.TransB {
		a, dy = dy, a
	}
	return g.MatMulT(a, dy, true, false)
}

// rowsOf is x as a matrix with the last dim of x.
func rowsOf(g *Graph, x *Node) *Node { return g.Reshape(x, -1, x.Shape[len(x.Shape)-1]) }

// swapLast is x with its last two dims swapped.
func swapLast(g *Graph, x *Node) *Node {
	perm := make([]int, len(x.Shape))
	for i := range perm {
		perm[i] = i
	}
	slices.Reverse(perm[len(perm)-2:])
	return g.Transpose(x, perm...)
}

// transposeGrad puts every dim back.
func transposeGrad(g *Graph, n, dy *Node, _ int) *Node {
	back := make([]int, len(n.Attr.Perm))
	for i, p := range n.Attr.Perm {
		back[p] = i
	}
	return g.Transpose(dy, back...)
}

// concatGrad cuts the part of input i out of dy.
func concatGrad(g *Graph, n, dy *Node, i int) *Node {
	start, axis := 0, n.Attr.Axis
	for _, x := range n.In[:i] {
		start += x.Shape[axis]
	}
	return g.SliceAxis(dy, axis, start, start+n.In[i].Shape[axis])
}

// normGrad is for normalisations of x by gain and perhaps bias.
func normGrad(ofX, ofGain Op) gradFunc {
	return func(g *Graph, n, dy *Node, i int) *Node {
		switch i {
		case 0:
			return g.Apply(ofX, n.Attr, n.In[0], n.In[1], dy)
		case 1:
			return g.Apply(ofGain, n.Attr, n.In[0], dy)
		}
		return unbroadcast(g, dy, n.In[2])
	}
}

func conv2DGrad(g *Graph, n, dy *Node, i int) *Node {
	x, w := n.In[0], n.In[1]
	if i == 0 {
		return g.Apply(Conv2DGradX, n.Attr, dy, w, x)
	}
	return g.Apply(Conv2DGradW, n.Attr, dy, x, w)
}

// attentionGrad computes the gradients of q, k and v in one node, the first time
// that one of them is asked for, and cuts input i's out.
func attentionGrad(g *Graph, n, dy *Node, i int) *Node {
	in := append(slices.Clone(n.In), dy)
	var all *Node
	for _, o := range slices.Backward(g.nodes) {
		if o.Op == CausalAttentionGrad && slices.Equal(o.In, in) {
			all = o
			break
		}
	}
	if all == nil {
		all = g.Apply(CausalAttentionGrad, n.Attr, in...)
	}
	heads := n.Shape[2]
	return g.SliceAxis(all, 2, i*heads, (i+1)*heads)
}

// reshapeGrad gives dy the shape of the input, by its dims where these say it,
// which needs no value of the input.
func reshapeGrad(g *Graph, n, dy *Node, _ int) *Node {
	if x := n.In[0]; !shape.Inferable(x.Shape) {
		return g.Apply(ReshapeLike, Attr{}, dy, x)
	}
	return g.Reshape(dy, n.In[0].Shape...)
}
