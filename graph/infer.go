package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/graph/internal/line"
	"github.com/gangline/gangline/graph/shape"
	"github.com/gangline/gangline/tensor"
)

// spec is what the graph must know of an operator.
type spec struct {
	// sig is one letter an input: f float, i i64, a any, v Variable, t Table,
	// k Input of part Keys, T Total, s SlotVar, g a float of 16 bits or not. A last * stands for any number
	// of the letter before it, + for at least one.
	sig string
	// settle brings the settings into their one canonical form and refuses those
	// that no shape shows to be wrong. May be nil.
	settle func(in []*Node, a *Attr) error
}

// specs is the table of operators.
func specs() map[Op]spec {
	table := map[Op]spec{
		Input: {"", settleInput}, Variable: {"", settleState}, SlotVar: {"", settleSlot},
		Table: {"", settleTable}, Const: {"", settleConst}, Total: {},

		SumAxis: {"f", settleAxis}, Mean: {"f", settleAxis}, Max: {"f", settleAxis}, ArgMax: {"f", settleAxis},
		Concat: {"f+", settleAxis}, Slice: {"f", settleSlice},
		Reshape: {"f", settleReshape}, Transpose: {"f", settlePerm},
		LayerNorm: {"fff", settleEps}, RMSNorm: {"ff", settleEps}, Dropout: {"fi", settleRate},
		LayerNormGrad: {"fff", settleEps}, RMSNormGrad: {"fff", settleEps},
		LayerNormGainGrad: {"ff", settleEps}, RMSNormGainGrad: {"ff", settleEps},
		Conv2D: {"ff", settleStride}, MaxPool2D: {"f", settleStride}, AvgPool2D: {"f", settleStride},
		Update: {"vgTs*", settleRule}, UpdateRows: {"tkfTs*", settleRule}, UpdateScale: {"vsT", settleEvery}, Cast: {"g", nil},
	}
	for sig, ops := range map[string][]Op{
		"f": {
			Scale, Relu, Sigmoid, Tanh, Exp, Log, Square, Sqrt, Rsqrt, LeakyRelu, Gelu, Silu, Softplus,
			Softmax, Sum, SumRows, FMInteraction, DotInteraction,
		},
		"i": {Float},
		"a": {Count},
		"ff": {
			MatMul, Add, Sub, Mul, Div, Maximum, Minimum, Less, LessEqual, Equal,
			LogisticLoss, SquaredLoss, SoftmaxLoss, ReluGrad, SigmoidGrad, TanhGrad, LogGrad, SquareGrad,
			SoftmaxGrad, LeakyReluGrad, GeluGrad, SiluGrad, Unbroadcast, FillLike, SpreadRows, ReshapeLike,
			PadSlice, SpreadAxis, MeanGrad, MaxGrad, MaxPool2DGrad, AvgPool2DGrad, FMInteractionGrad, DotInteractionGrad,
		},
		"fff":  {Where, CausalAttention, LogisticGrad, SquaredGrad, SoftmaxLossGrad, Conv2DGradX, Conv2DGradW},
		"ffff": {CausalAttentionGrad},
		"tk":   {GatherRows}, "fi": {Gather}, "fiif": {Bag}, "fif": {GatherGrad}, "fiiff": {BagGrad},
	} {
		for _, op := range ops {
			table[op] = spec{sig: sig}
		}
	}
	return table
}

// infer returns the shape of a node whose inputs passed the signature, and
// settles its settings.
func (sp spec) infer(op Op, in []*Node, a *Attr) (tensor.Shape, error) {
	if sp.settle != nil {
		if err := sp.settle(in, a); err != nil {
			return nil, err
		}
	}
	shapes := make([]tensor.Shape, len(in))
	for i, n := range in {
		shapes[i] = n.Shape
	}
	return ResultShape(tensor.Shape{}, op, a, shapes)
}

// expand writes out a signature that ends in * or + for n inputs.
func expand(sig string, n int) string {
	body := strings.TrimRight(sig, "*+")
	if body == sig {
		return sig
	}
	if strings.HasSuffix(sig, "*") && n == len(body)-1 {
		return body[:n]
	}
	return body + strings.Repeat(body[len(body)-1:], max(0, n-len(body)))
}

// checkInputs compares the inputs with the signature.
func (sp spec) checkInputs(g *Graph, in []*Node) error {
	sig := expand(sp.sig, len(in))
	if len(sig) != len(in) {
		return fmt.Errorf("has %d inputs, want %d", len(in), len(sig))
	}
	float := g.Float
	if slices.ContainsFunc(in, func(n *Node) bool { return n.DType == g.Low }) {
		float = g.Low // of all inputs: what was not was cast
	}
	for i, n := range in {
		want, ok, value := "", true, n.Op != Table && n.Op != SlotVar && n.Op != Total
		switch sig[i] {
		case 'f':
			want, ok = float.String(), n.DType == float && value
		case 'g':
			want, ok = "a float", n.DType != tensor.I64 && value
		case 'i':
			want, ok = "i64", n.DType == tensor.I64
		case 'a':
			want, ok = "any value", value
		case 'v':
			want, ok = "a variable", n.Op == Variable
		case 't':
			want, ok = "a table", n.Op == Table
		case 'k':
			want, ok = "the keys of a column", n.Op == Input && n.Attr.Part == Keys
		case 'T':
			want, ok = "the total", n.Op == Total
		case 's':
			want, ok = "a slot", n.Op == SlotVar
		}
		if !ok && n.Op == Table {
			return fmt.Errorf("input %d, %q, is a table, which only %s reads", i, n.Name, GatherRows)
		}
		if !ok {
			return fmt.Errorf("input %d, %q, is %v (%s), want %s", i, n.Name, n.DType, n.Op, want)
		}
	}
	return nil
}

// Sources.

func settleInput(_ []*Node, a *Attr) error {
	switch a.Part {
	case Dense:
		if n := len(a.Shape); n < 1 || n > 2 || a.Shape[0] != tensor.Dynamic || n == 2 && a.Shape[1] < 1 {
			return fmt.Errorf("column %q: shape %v: want [?] or [? dim] with dim at least 1", a.Column, a.Shape)
		}
	case Offsets, IDs, Weights, Keys, Pos, Index:
		if !a.Shape.Equal(tensor.Shape{tensor.Dynamic}) {
			return fmt.Errorf("column %q: %s has shape %v, want [?]", a.Column, a.Part, a.Shape)
		}
	default:
		return fmt.Errorf("column %q: unknown part %q", a.Column, a.Part)
	}
	return line.CheckName(a.Column)
}

func settleState(_ []*Node, a *Attr) error {
	if a.Init.Kind == "" {
		a.Init.Kind = Zeros
	}
	return settleConst(nil, a)
}

// settleSlot lets a slot's Init say what its Value says, for who fills arrays by Init.
func settleSlot(_ []*Node, a *Attr) error {
	a.Init = Init{Kind: Zeros}
	if a.Value != 0 {
		a.Init = Init{Kind: Constant, Scale: a.Value}
	}
	return settleConst(nil, a)
}

func settleTable(_ []*Node, a *Attr) error {
	if len(a.Shape) != 2 {
		return fmt.Errorf("shape %v: want [rows dim]", a.Shape)
	}
	return settleState(nil, a)
}

func settleConst(_ []*Node, a *Attr) error {
	if !a.Shape.Static() {
		return fmt.Errorf("shape %v: want every dim known", a.Shape)
	}
	if a.Shape == nil {
		a.Shape = tensor.Shape{}
	}
	return nil
}

// Computed operators.

// settleAxis counts a negative axis from the end.
func settleAxis(in []*Node, a *Attr) error {
	if a.Axis < 0 {
		a.Axis += len(in[0].Shape)
	}
	return nil // whether there is such a dim, the shape rule says
}

func settleSlice(in []*Node, a *Attr) error {
	if a.Start >= a.End {
		return fmt.Errorf("the range [%d, %d) of %v is empty", a.Start, a.End, in[0].Shape)
	}
	return settleAxis(in, a)
}

func settleReshape(in []*Node, a *Attr) (err error) {
	if err := shape.CheckSize(a.Shape); err != nil {
		return err
	}
	a.Shape, err = ResultShape(tensor.Shape{}, Reshape, a, []tensor.Shape{in[0].Shape})
	return err
}

// settlePerm lets no order stand for the reverse one.
func settlePerm(in []*Node, a *Attr) error {
	if a.Perm == nil {
		for i := range in[0].Shape {
			a.Perm = append(a.Perm, i)
		}
		slices.Reverse(a.Perm)
	}
	return nil
}

func settleEps(_ []*Node, a *Attr) error {
	if !(a.Eps > 0) {
		return fmt.Errorf("eps is %v, want a number above 0", a.Eps)
	}
	return nil
}

func settleRate(_ []*Node, a *Attr) error {
	if !(a.Rate >= 0 && a.Rate < 1) {
		return fmt.Errorf("the rate is %v, want one in [0, 1)", a.Rate)
	}
	return nil
}

func settleStride(_ []*Node, a *Attr) error {
	if a.Stride == 0 {
		a.Stride = max(1, a.Window)
	}
	return nil
}

func settleEvery(_ []*Node, a *Attr) error {
	if a.Every < 1 {
		return fmt.Errorf("doubles after %d steps, want 1 or more", a.Every)
	}
	return nil
}

// settleRule fails unless the rule is valid and the slots are as many as it keeps.
func settleRule(in []*Node, a *Attr) error {
	if err := a.Rule.Validate(); err != nil {
		return err
	}
	slots := 0
	for _, n := range in {
		if n.Op == SlotVar {
			slots++
		}
	}
	if want := len(a.Rule.Slots()); slots != want {
		return fmt.Errorf("has %d slots, rule %s keeps %d", slots, a.Rule.Kind, want)
	}
	return nil
}
