package graph

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gangline/gangline/tensor"
)

// inferFunc returns the shape of a result. The inputs have passed the
// signature; it may bring the settings into their one canonical form.
type inferFunc func(in []*Node, a *Attr) (tensor.Shape, error)

// spec is what the graph must know of an operator.
type spec struct {
	// sig is one letter an input: f float, i i64, a any, v Variable, t Table,
	// k Input of part Keys, T Total, s SlotVar. A last * stands for any number
	// of the letter before it, + for at least one.
	sig   string
	infer inferFunc
}

// specs is the table of operators.
func specs() map[Op]spec {
	return map[Op]spec{
		Input: {"", inferInput}, Variable: {"", inferState}, SlotVar: {"", inferSlot},
		Table: {"", inferTable}, Const: {"", inferConst}, Total: {"", inferScalar},

		MatMul: {"ff", inferMatMul},
		Add:    {"ff", inferBroadcast}, Sub: {"ff", inferBroadcast}, Mul: {"ff", inferBroadcast},
		Scale: {"f", inferFirst}, Relu: {"f", inferFirst}, Sigmoid: {"f", inferFirst},
		Tanh: {"f", inferFirst}, Exp: {"f", inferFirst}, Log: {"f", inferFirst},
		Square: {"f", inferFirst}, Softmax: {"f", inferMatrix},
		Sum: {"f", inferScalar}, SumRows: {"f", inferSumRows}, Count: {"a", inferCount},
		Reshape: {"f", inferReshape}, Concat: {"f+", inferConcat}, Slice: {"f", inferSlice},
		GatherRows: {"tk", inferGather}, Gather: {"fi", inferGather}, Bag: {"fiif", inferBag},

		LogisticLoss: {"ff", inferLoss}, SquaredLoss: {"ff", inferLoss}, SoftmaxLoss: {"ff", inferClassLoss},

		ReluGrad: {"ff", inferSame}, SigmoidGrad: {"ff", inferSame}, TanhGrad: {"ff", inferSame},
		LogGrad: {"ff", inferSame}, SquareGrad: {"ff", inferSame}, SoftmaxGrad: {"ff", inferSoftmaxGrad},
		Unbroadcast: {"ff", inferUnbroadcast}, FillLike: {"ff", inferFill},
		SpreadRows: {"ff", inferSpread}, ReshapeLike: {"ff", inferReshapeLike},
		PadSlice: {"ff", inferPad}, GatherGrad: {"fif", inferGatherGrad}, BagGrad: {"fiiff", inferBagGrad},
		LogisticGrad: {"fff", inferLossGrad}, SquaredGrad: {"fff", inferLossGrad},
		SoftmaxLossGrad: {"fff", inferClassLossGrad},

		Update: {"vfTs*", inferUpdate}, UpdateRows: {"tkfTs*", inferUpdateRows},
	}
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
func (sp spec) checkInputs(float tensor.DType, in []*Node) error {
	sig := expand(sp.sig, len(in))
	if len(sig) != len(in) {
		return fmt.Errorf("has %d inputs, want %d", len(in), len(sig))
	}
	for i, n := range in {
		want, ok := "", true
		switch sig[i] {
		case 'f':
			want, ok = float.String(), n.DType == float && n.Op != Table && n.Op != SlotVar && n.Op != Total
		case 'i':
			want, ok = "i64", n.DType == tensor.I64
		case 'a':
			want, ok = "any value", n.Op != Table && n.Op != SlotVar && n.Op != Total
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

func inferInput(_ []*Node, a *Attr) (tensor.Shape, error) {
	switch a.Part {
	case Dense:
		if n := len(a.Shape); n < 1 || n > 2 || a.Shape[0] != tensor.Dynamic || n == 2 && a.Shape[1] < 1 {
			return nil, fmt.Errorf("column %q: shape %v: want [?] or [? dim] with dim at least 1", a.Column, a.Shape)
		}
	case Offsets, IDs, Weights, Keys, Pos:
		if !a.Shape.Equal(tensor.Shape{tensor.Dynamic}) {
			return nil, fmt.Errorf("column %q: %s has shape %v, want [?]", a.Column, a.Part, a.Shape)
		}
	default:
		return nil, fmt.Errorf("column %q: unknown part %q", a.Column, a.Part)
	}
	return a.Shape, checkName(a.Column)
}

func inferState(_ []*Node, a *Attr) (tensor.Shape, error) {
	if a.Init.Kind == "" {
		a.Init.Kind = Zeros
	}
	return inferConst(nil, a)
}

// inferSlot lets a slot's Init say what its Value says, for who fills arrays by Init.
func inferSlot(_ []*Node, a *Attr) (tensor.Shape, error) {
	a.Init = Init{Kind: Zeros}
	if a.Value != 0 {
		a.Init = Init{Kind: Constant, Scale: a.Value}
	}
	return inferConst(nil, a)
}

func inferTable(_ []*Node, a *Attr) (tensor.Shape, error) {
	if len(a.Shape) != 2 {
		return nil, fmt.Errorf("shape %v: want [rows dim]", a.Shape)
	}
	return inferState(nil, a)
}

func inferConst(_ []*Node, a *Attr) (tensor.Shape, error) {
	if !a.Shape.Static() {
		return nil, fmt.Errorf("shape %v: want every dim known", a.Shape)
	}
	if a.Shape == nil {
		a.Shape = tensor.Shape{}
	}
	return a.Shape, nil
}

func inferScalar([]*Node, *Attr) (tensor.Shape, error) { return tensor.Shape{}, nil }

// Forward operators.

func inferFirst(in []*Node, _ *Attr) (tensor.Shape, error) { return in[0].Shape, nil }

// wantDims fails unless every input given has the number of dims given beside it.
func wantDims(in []*Node, dims ...int) error {
	for i, d := range dims {
		if len(in[i].Shape) != d {
			return fmt.Errorf("%q has %d dims, want %d", in[i].Name, len(in[i].Shape), d)
		}
	}
	return nil
}

func inferMatrix(in []*Node, _ *Attr) (tensor.Shape, error) { return in[0].Shape, wantDims(in, 2) }

func inferMatMul(in []*Node, a *Attr) (tensor.Shape, error) {
	if err := wantDims(in, 2, 2); err != nil {
		return nil, err
	}
	m, k := in[0].Shape[0], in[0].Shape[1]
	if a.TransA {
		m, k = k, m
	}
	k2, n := in[1].Shape[0], in[1].Shape[1]
	if a.TransB {
		k2, n = n, k2
	}
	if k != k2 {
		return nil, fmt.Errorf("inner dims %v and %v differ", tensor.Shape{k}, tensor.Shape{k2})
	}
	return tensor.Shape{m, n}, nil
}

// broadcasts reports whether b spreads over a: its dims, aligned at the end,
// are those of a or 1.
func broadcasts(a, b tensor.Shape) bool {
	off := len(a) - len(b)
	if off < 0 {
		return false
	}
	for i, d := range b {
		if d != 1 && d != a[off+i] {
			return false
		}
	}
	return true
}

func inferBroadcast(in []*Node, _ *Attr) (tensor.Shape, error) {
	if !broadcasts(in[0].Shape, in[1].Shape) {
		return nil, fmt.Errorf("%v does not spread over %v", in[1].Shape, in[0].Shape)
	}
	return in[0].Shape, nil
}

func inferSumRows(in []*Node, _ *Attr) (tensor.Shape, error) {
	if err := wantDims(in, 2); err != nil {
		return nil, err
	}
	return in[0].Shape[:1], nil
}

func inferCount(in []*Node, _ *Attr) (tensor.Shape, error) {
	if len(in[0].Shape) == 0 {
		return nil, errors.New("a scalar has no rows")
	}
	return tensor.Shape{}, nil
}

func inferReshape(in []*Node, a *Attr) (tensor.Shape, error) {
	s, err := reshape(in[0].Shape, a.Shape)
	a.Shape = s
	return s, err
}

// reshape returns the shape "to" with its dynamic dim inferred where from is
// static, or says why from does not fit.
func reshape(from, to tensor.Shape) (tensor.Shape, error) {
	if err := checkSize(to); err != nil {
		return nil, err
	}
	dyn, known := -1, 1
	for i, d := range to {
		switch {
		case d != tensor.Dynamic:
			known *= d
		case dyn >= 0:
			return nil, fmt.Errorf("shape %v has more than one dynamic dim", to)
		default:
			dyn = i
		}
	}
	to = append(tensor.Shape{}, to...)
	n := from.Elems()
	switch {
	case n == tensor.Dynamic && dyn < 0:
		return nil, fmt.Errorf("%v has a dynamic size, %v has not", from, to)
	case n == tensor.Dynamic:
		return to, nil
	case dyn >= 0 && n%known == 0:
		to[dyn] = n / known
		return to, nil
	case n != known || dyn >= 0:
		return nil, fmt.Errorf("%d elements of %v do not fill %v", n, from, to)
	}
	return to, nil
}

func inferConcat(in []*Node, a *Attr) (tensor.Shape, error) {
	sum := 0
	for i, n := range in {
		if err := wantDims(in[i:], 2); err != nil {
			return nil, err
		}
		if n.Shape[0] != in[0].Shape[0] {
			return nil, fmt.Errorf("rows of %v and %v differ", in[0].Shape, n.Shape)
		}
		if n.Shape[1] == tensor.Dynamic {
			return nil, fmt.Errorf("%q %v: the joined dim must be known", n.Name, n.Shape)
		}
		sum += n.Shape[1]
	}
	if a.Axis != 1 {
		return nil, fmt.Errorf("axis %d: want 1", a.Axis)
	}
	return tensor.Shape{in[0].Shape[0], sum}, nil
}

func inferSlice(in []*Node, a *Attr) (tensor.Shape, error) {
	if err := wantDims(in, 2); err != nil {
		return nil, err
	}
	if a.Axis != 1 || a.Start < 0 || a.End <= a.Start || a.End > in[0].Shape[1] {
		return nil, fmt.Errorf("range [%d, %d) of axis %d is not within axis 1 of %v", a.Start, a.End, a.Axis, in[0].Shape)
	}
	return tensor.Shape{in[0].Shape[0], a.End - a.Start}, nil
}

func inferGather(in []*Node, _ *Attr) (tensor.Shape, error) {
	if err := wantDims(in, 2, 1); err != nil {
		return nil, err
	}
	return tensor.Shape{in[1].Shape[0], in[0].Shape[1]}, nil
}

func inferBag(in []*Node, _ *Attr) (tensor.Shape, error) {
	if err := wantDims(in, 2, 1, 1, 1); err != nil {
		return nil, err
	}
	if !in[1].Shape.Equal(in[3].Shape) {
		return nil, fmt.Errorf("index %v and weights %v differ", in[1].Shape, in[3].Shape)
	}
	rows := in[2].Shape[0]
	if rows != tensor.Dynamic {
		rows--
	}
	return tensor.Shape{rows, in[0].Shape[1]}, nil
}
