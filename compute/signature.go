package compute

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// signature says what an operator takes: 'f' the node's float type, 'i' i64, 'g' a
// float of any type, '.' a value of which only the shape is read. more says that any number of
// floats may follow.
func signature(op graph.Op) (args string, more bool, ok bool) {
	switch op {
	case graph.Const:
		return "", false, true
	case graph.MatMul, graph.Add, graph.Sub, graph.Mul, graph.Div, graph.Maximum, graph.Minimum,
		graph.Less, graph.LessEqual, graph.Equal, graph.RMSNorm, graph.Conv2D,
		graph.LogisticLoss, graph.SoftmaxLoss, graph.SquaredLoss:
		return "ff", false, true
	case graph.Scale, graph.Relu, graph.Sigmoid, graph.Tanh, graph.Exp, graph.Log, graph.Square,
		graph.Sqrt, graph.Rsqrt, graph.LeakyRelu, graph.Gelu, graph.Silu, graph.Softplus,
		graph.Softmax, graph.Sum, graph.SumRows, graph.SumAxis, graph.Mean, graph.Max, graph.ArgMax,
		graph.Reshape, graph.Transpose, graph.Slice, graph.MaxPool2D, graph.AvgPool2D,
		graph.FMInteraction, graph.DotInteraction, graph.Round:
		return "f", false, true
	case graph.Cast:
		return "g", false, true
	case graph.Float:
		return "i", false, true
	case graph.Count:
		return ".", false, true
	case graph.Concat:
		return "f", true, true
	case graph.GatherRows, graph.Gather, graph.Dropout:
		return "fi", false, true
	case graph.Bag:
		return "fiif", false, true
	case graph.Where, graph.LayerNorm, graph.CausalAttention:
		return "fff", false, true
	case graph.Update:
		return "fgf", true, true
	case graph.UpdateScale:
		return "fff", false, true
	case graph.UpdateRows:
		return "fiff", true, true
	}
	args = gradientSignature(op)
	return args, false, args != ""
}

// gradientSignature is signature for gradients; "" for others.
func gradientSignature(op graph.Op) string {
	switch op {
	case graph.ReluGrad, graph.SigmoidGrad, graph.TanhGrad, graph.LogGrad, graph.SquareGrad, graph.SoftmaxGrad,
		graph.LeakyReluGrad, graph.GeluGrad, graph.SiluGrad, graph.MaxGrad, graph.LayerNormGainGrad,
		graph.RMSNormGainGrad, graph.MaxPool2DGrad, graph.FMInteractionGrad, graph.DotInteractionGrad:
		return "ff"
	case graph.Unbroadcast, graph.FillLike, graph.SpreadRows, graph.SpreadAxis, graph.MeanGrad,
		graph.ReshapeLike, graph.PadSlice, graph.AvgPool2DGrad:
		return "f."
	case graph.Conv2DGradX, graph.Conv2DGradW:
		return "ff."
	case graph.GatherGrad:
		return "fi."
	case graph.BagGrad:
		return "fiif."
	case graph.LogisticGrad, graph.SoftmaxLossGrad, graph.SquaredGrad, graph.LayerNormGrad, graph.RMSNormGrad:
		return "fff"
	case graph.CausalAttentionGrad:
		return "ffff"
	}
	return ""
}

// checkSignature compares a node with its operator's signature.
func checkSignature(n *graph.Node) error {
	args, more, ok := signature(n.Op)
	if !ok {
		return fmt.Errorf("the operator cannot be computed inside a segment")
	}
	float := FloatType(n)
	if !n.DType.IsFloat() && (n.Op != graph.ArgMax || n.DType != tensor.I64) && (n.Op != graph.Cast || !n.DType.IsHalf()) {
		return fmt.Errorf("the result is %v: want f32 or f64", n.DType)
	}
	if len(n.In) < len(args) || len(n.In) > len(args) && !more {
		return fmt.Errorf("has %d inputs, want %d", len(n.In), len(args))
	}
	for i, a := range n.In {
		kind := byte('f') // all further inputs are floats
		if i < len(args) {
			kind = args[i]
		}
		want := float
		switch kind {
		case 'i':
			want = tensor.I64
		case '.':
			continue
		case 'g':
			if want = a.DType; want == tensor.I64 {
				want = float
			}
		}
		if a.DType != want {
			return fmt.Errorf("input %d, %q, is %v: want %v", i, a.Name, a.DType, want)
		}
	}
	if n.Op == graph.Const && !n.Attr.Shape.Static() {
		return fmt.Errorf("its shape %v is not static", n.Attr.Shape)
	}
	return checkUpdate(n)
}

func checkUpdate(n *graph.Node) error {
	if !isUpdate(n.Op) || n.Op == graph.UpdateScale {
		return nil
	}
	if err := n.Attr.Rule.Validate(); err != nil {
		return err
	}
	args, _, _ := signature(n.Op)
	if got, want := len(n.In)-len(args), len(n.Attr.Rule.Slots()); got != want {
		return fmt.Errorf("has %d slots, rule %s keeps %d", got, n.Attr.Rule.Kind, want)
	}
	return nil
}

func isUpdate(op graph.Op) bool {
	return op == graph.Update || op == graph.UpdateRows || op == graph.UpdateScale
}
