package graph

import (
	"github.com/gangline/gangline/graph/shape"
	"github.com/gangline/gangline/tensor"
)

// ResultShape appends to dst the shape of a computed operator's result, given
// the shapes of its inputs, of which there must be as many as the operator
// takes. It serves the graph, where dims may be dynamic, and programs, which
// have real sizes. It allocates only to report an error, which names the shapes.
func ResultShape(dst tensor.Shape, op Op, a *Attr, in []tensor.Shape) (tensor.Shape, error) {
	switch op {
	case MatMul:
		return shape.Matrices(dst, in[0], in[1], a.TransA, a.TransB)
	case Add, Sub, Mul, Div, Maximum, Minimum, Less, LessEqual, Equal:
		return shape.Broadcast(dst, in[0], in[1])
	case Where:
		return shape.Broadcast(dst, in[0], in[1], in[2])
	case Scale, Relu, Sigmoid, Tanh, Exp, Log, Square, Sqrt, Rsqrt, LeakyRelu, Gelu, Silu, Softplus, Float, Cast, Round:
		return append(dst, in[0]...), nil
	case Softmax:
		return shape.Vectors(dst, in[0])
	case LayerNorm:
		return shape.Norm(dst, in[0], in[1], in[2])
	case RMSNorm:
		return shape.Norm(dst, in[0], in[1])
	case Dropout:
		return shape.Dropout(dst, in[0], in[1])
	case Sum:
		return dst, nil
	case SumRows:
		return shape.SumRows(dst, in[0])
	case SumAxis, Mean, Max, ArgMax:
		return shape.Reduce(dst, in[0], a.Axis, a.KeepDims)
	case Count:
		return shape.Count(dst, in[0])
	case Reshape:
		return shape.Reshape(dst, in[0], a.Shape)
	case Transpose:
		return shape.Transpose(dst, in[0], a.Perm)
	case Concat:
		return shape.Concat(dst, in, a.Axis)
	case Slice:
		return shape.Slice(dst, in[0], a.Axis, a.Start, a.End)
	case GatherRows, Gather:
		return shape.Gather(dst, in[0], in[1])
	case Bag:
		return shape.Bag(dst, in[0], in[1], in[2], in[3])
	case Conv2D:
		return shape.Conv2D(dst, in[0], in[1], a.Stride, a.Pad)
	case MaxPool2D, AvgPool2D:
		return shape.Pool2D(dst, in[0], a.Window, a.Stride)
	case CausalAttention:
		return shape.Attention(dst, in[0], in[1], in[2])
	case FMInteraction:
		return shape.FM(dst, in[0])
	case DotInteraction:
		return shape.Dots(dst, in[0])
	case LogisticLoss, SquaredLoss:
		return shape.Loss(dst, in[0], in[1])
	case SoftmaxLoss:
		return shape.ClassLoss(dst, in[0], in[1])
	}
	return gradShape(dst, op, a, in)
}

// gradShape is ResultShape for gradients, updates and constants.
func gradShape(dst tensor.Shape, op Op, a *Attr, in []tensor.Shape) (tensor.Shape, error) {
	switch op {
	case ReluGrad, SigmoidGrad, TanhGrad, LogGrad, SquareGrad, LeakyReluGrad, GeluGrad, SiluGrad:
		return shape.Same(dst, in[0], in[1])
	case SoftmaxGrad:
		return shape.VectorsGrad(dst, in[0], in[1])
	case Unbroadcast:
		return shape.Unbroadcast(dst, in[0], in[1])
	case FillLike:
		return shape.Fill(dst, in[0], in[1])
	case SpreadRows:
		return shape.SpreadRows(dst, in[0], in[1])
	case SpreadAxis, MeanGrad, MaxGrad:
		return shape.Spread(dst, in[0], in[1], a.Axis)
	case ReshapeLike:
		return shape.ReshapeLike(dst, in[0], in[1])
	case PadSlice:
		return shape.PadSlice(dst, in[0], in[1], a.Axis, a.Start, a.End)
	case GatherGrad:
		return shape.GatherGrad(dst, in[0], in[1], in[2])
	case BagGrad:
		return shape.BagGrad(dst, in[0], in[1], in[2], in[3], in[4])
	case LayerNormGrad, RMSNormGrad:
		return shape.NormGrad(dst, in[0], in[1], in[2])
	case LayerNormGainGrad, RMSNormGainGrad:
		return shape.NormGainGrad(dst, in[0], in[1])
	case Conv2DGradX:
		return shape.Conv2DGrad(dst, in[0], in[2], in[1], in[2], a.Stride, a.Pad)
	case Conv2DGradW:
		return shape.Conv2DGrad(dst, in[0], in[1], in[2], in[2], a.Stride, a.Pad)
	case MaxPool2DGrad, AvgPool2DGrad:
		return shape.Pool2DGrad(dst, in[0], in[1], a.Window, a.Stride)
	case CausalAttentionGrad:
		return shape.AttentionGrad(dst, in[0], in[1], in[2], in[3])
	case FMInteractionGrad:
		return shape.FMGrad(dst, in[0], in[1])
	case DotInteractionGrad:
		return shape.DotsGrad(dst, in[0], in[1])
	case LogisticGrad, SquaredGrad:
		return shape.LossGrad(dst, in[0], in[1], in[2], false)
	case SoftmaxLossGrad:
		return shape.LossGrad(dst, in[0], in[1], in[2], true)
	case UpdateScale:
		return shape.Same(dst, in[0], in[1])
	case Update:
		return shape.Update(dst, in[0], in[1], in[2], in[3:]...)
	case UpdateRows:
		return shape.UpdateRows(dst, in[0], in[1], in[2], in[3], in[4:]...)
	case Const, Input, Variable, Table, SlotVar:
		return append(dst, a.Shape...), nil
	}
	return dst, nil // Total
}
