package graph

import (
	"slices"

	"github.com/gangline/gangline/tensor"
)

// Mixed precision (Micikevicius et al.: Mixed Precision Training, 2018): in a graph
// made for BF16 or F16, what is computed of parameters is in that type, and so are the
// gradients of variables. Parameters themselves, slots and tables with their rows and
// gradients are f32, as are losses, sums to a scalar, and what is computed of the batch
// alone: labels, weights, masks. Casts stand where a value changes its type; a model
// function does not see them.

// keepsFull reports whether an operator is in f32 whatever it reads.
func keepsFull(op Op) bool {
	return op == Sum || op == LogisticLoss || op == SoftmaxLoss || op == SquaredLoss ||
		op == LogisticGrad || op == SoftmaxLossGrad || op == SquaredGrad
}

// isTrained reports whether a node is f32 and read in the low type: a parameter or rows of one.
func isTrained(n *Node) bool { return n.Op == Variable && !n.Attr.Frozen || n.Op == GatherRows }

// isLowParam reports whether a node is a variable in the low type, of which the gradient is taken.
func isLowParam(n *Node) bool { return n.Op == Cast && n.In[0].Op == Variable && isTrained(n.In[0]) }

// autocast returns what an operator reads of the inputs that it is given: all in the
// low type, if one of them is or is trained, else all in f32.
func (g *Graph) autocast(op Op, in []*Node) []*Node {
	if g.Low == tensor.Invalid || op == Cast || op == Count || op == GatherRows || isUpdate(op) ||
		slices.ContainsFunc(in, func(x *Node) bool { return !g.owns(x) }) {
		return in
	}
	low := !keepsFull(op) && slices.ContainsFunc(in, func(x *Node) bool { return x.DType == g.Low || isTrained(x) })
	in = slices.Clone(in)
	for i, x := range in {
		if isTrained(x) {
			x = g.cast(x) // f32 readers see the same value
		}
		if x.DType != tensor.I64 && (x.DType == g.Low) != low && x.Op != Table && x.Op != SlotVar && x.Op != Total {
			x = g.cast(x)
		}
		in[i] = x
	}
	return in
}

// cast returns a value in its other type, through one node.
func (g *Graph) cast(x *Node) *Node {
	if x.Op == Cast && x.DType == g.Float {
		return x.In[0] // which is as exact
	}
	if g.casts[x] == nil {
		g.casts[x] = g.add("", Cast, Attr{}, x)
	}
	return g.casts[x]
}

// resultType is the type of what an operator makes of its inputs.
func (g *Graph) resultType(op Op, in []*Node) tensor.DType {
	low := g.Low != tensor.Invalid && slices.ContainsFunc(in, func(x *Node) bool { return x != nil && x.DType == g.Low })
	switch {
	case op == ArgMax:
		return tensor.I64
	case op == Cast && g.Low != tensor.Invalid && !low, low && op != Cast && op != Count && !keepsFull(op) && !isUpdate(op):
		return g.Low
	}
	return g.Float
}

// Type is what New makes such a graph for.
func (g *Graph) Type() tensor.DType {
	if g.Low != tensor.Invalid {
		return g.Low
	}
	return g.Float
}

// widened is the model with all that its readers see in f32.
func (m Model) widened(g *Graph) Model {
	for _, n := range []**Node{&m.Loss, &m.Weight, &m.Predict, &m.Label} {
		if g.owns(*n) && g.Low != tensor.Invalid && (*n).DType == g.Low {
			*n = g.cast(*n)
		}
	}
	return m
}

// Scaling is the loss scale of a step: a part of its state that every worker has alike.
type Scaling struct {
	Var    *Node // the scale, a scalar
	Good   *Node // steps since it last changed, a slot
	Update int   // indexes Step.Segments
}

// addScale makes the loss scale, where the type needs one.
func (g *Graph) addScale() {
	if g.Low == tensor.F16 {
		g.scale = g.Frozen("loss_scale", Init{Kind: Constant, Scale: g.LossScale.Start})
	}
}

// seed is the gradient of the loss.
func (g *Graph) seed() *Node {
	if g.scale != nil {
		return g.scale
	}
	return g.Const(1)
}

// addScaling adds the segment that adapts the loss scale.
func (s *Step) addScaling() {
	g := s.Graph
	if g.scale == nil {
		return
	}
	good := g.add(g.scale.Name+"/good", SlotVar, Attr{Shape: g.scale.Shape})
	in := []*Node{g.scale, good, s.Total}
	u := g.add(g.scale.Name+"/update", UpdateScale, Attr{Every: g.LossScale.Every}, in...)
	s.Scaling = &Scaling{Var: g.scale, Good: good, Update: s.add(Segment{
		Name: "update/" + g.scale.Name, Nodes: []*Node{u}, In: in, Out: in[:2],
	})}
}

func isUpdate(op Op) bool { return op == Update || op == UpdateRows || op == UpdateScale }
