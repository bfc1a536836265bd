package fuse

import (
	"slices"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
)

// InPlace lists the inputs whose memory a result may take over: those that are
// read, element by element, no later than the result is written there.
func InPlace(n *graph.Node) []int {
	switch n.Op {
	case graph.Add, graph.Sub, graph.Mul, graph.Div:
		// The second operand as well, if it is as large as the result.
		if n.In[0].Shape.Equal(n.In[1].Shape) && n.In[0].Shape.Equal(n.Shape) {
			return []int{0, 1}
		}
		if n.In[0].Shape.Equal(n.Shape) {
			return []int{0}
		}
		return nil
	case graph.Scale, graph.Relu, graph.Sigmoid, graph.Tanh, graph.Exp, graph.Log, graph.Square,
		graph.Sqrt, graph.Rsqrt, graph.LeakyRelu, graph.Gelu, graph.Silu, graph.Softplus, graph.Round,
		graph.Softmax, graph.Reshape, graph.ReshapeLike, graph.LayerNorm, graph.RMSNorm,
		graph.LogisticGrad, graph.SquaredGrad, graph.SoftmaxLossGrad:
		return []int{0}
	case graph.ReluGrad, graph.SigmoidGrad, graph.TanhGrad, graph.LogGrad, graph.SquareGrad, graph.SoftmaxGrad,
		graph.LeakyReluGrad, graph.GeluGrad, graph.SiluGrad:
		return []int{1, 0}
	}
	return nil
}

// Home returns the number of the node whose memory holds the first value
// of a group while links run: its own if it is kept, else that of the first kept
// one that no link which still reads it stands behind.
func Home(g compute.Group) int {
	if g.Kept[0] {
		return 0
	}
	last := 0
	for i, n := range g.Nodes {
		if slices.Contains(n.In, g.Nodes[0]) {
			last = i
		}
	}
	return last + slices.Index(g.Kept[last:], true)
}
