package compute

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// signature says what an operator takes: 'f' the node's float type, 'i' i64,
// '.' a value of which only the shape is read.
func signature(op graph.Op) (args string, more bool, ok bool) {
	switch op {
	case graph.Const:
		return "", false, true
	case graph.MatMul, graph.Add, graph.Sub, graph.Mul:
		return "ff", false, true
	case graph.Scale, graph.Relu, graph.Sigmoid, graph.Tanh, graph.Exp, graph.Log, graph.Square,
		graph.Softmax, graph.Sum, graph.SumRows, graph.Reshape, graph.Slice:
		return "f", false, true
	case graph.Count:
		return ".", false, true
	case graph.Concat:
		return "f", true, true
	case graph.GatherRows, graph.Gather:
		return "fi", false, true
	case graph.Bag:
		return "fiif", false, true
	case graph.LogisticLoss, graph.SoftmaxLoss, graph.SquaredLoss,
		graph.ReluGrad, graph.SigmoidGrad, graph.TanhGrad, graph.LogGrad, graph.SquareGrad, graph.SoftmaxGrad:
		return "ff", false, true
	case graph.Unbroadcast, graph.FillLike, graph.SpreadRows, graph.ReshapeLike, graph.PadSlice:
		return "f.", false, true
	case graph.GatherGrad:
		return "fi.", false, true
	case graph.BagGrad:
		return "fiif.", false, true
	case graph.LogisticGrad, graph.SoftmaxLossGrad, graph.SquaredGrad:
		return "fff", false, true
	case graph.Update:
		return "fff", true, true
	case graph.UpdateRows:
		return "fiff", true, true
	case graph.Input, graph.Variable, graph.Table, graph.SlotVar, graph.Total:
	}
	return "", false, false
}

// checkSignature compares a node with its operator's signature.
func checkSignature(n *graph.Node) error {
	args, more, ok := signature(n.Op)
	if !ok {
		return fmt.Errorf("the operator cannot be computed inside a segment")
	}
	if !n.DType.IsFloat() {
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
		want := n.DType
		switch kind {
		case 'i':
			want = tensor.I64
		case '.':
			continue
		}
		if a.DType != want {
			return fmt.Errorf("input %d, %q, is %v: want %v", i, a.Name, a.DType, want)
		}
	}
	return checkUpdate(n)
}

func checkUpdate(n *graph.Node) error {
	if !isUpdate(n.Op) {
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

func isUpdate(op graph.Op) bool { return op == graph.Update || op == graph.UpdateRows }
