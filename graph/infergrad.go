package graph

import (
	"fmt"

	"github.com/gangline/gangline/tensor"
)

// Losses.

func inferLoss(in []*Node, _ *Attr) (tensor.Shape, error) {
	z, y := in[0].Shape, in[1].Shape
	if len(y) != 1 || len(z) < 1 || z[0] != y[0] || len(z) > 2 || len(z) == 2 && z[1] != 1 {
		return nil, fmt.Errorf("%v against labels %v: want [B] or [B 1] against [B]", z, y)
	}
	return tensor.Shape{}, nil
}

func inferClassLoss(in []*Node, _ *Attr) (tensor.Shape, error) {
	z, y := in[0].Shape, in[1].Shape
	if len(z) != 2 || len(y) != 1 || z[0] != y[0] || z[1] == tensor.Dynamic {
		return nil, fmt.Errorf("%v against labels %v: want [B C] against [B]", z, y)
	}
	return tensor.Shape{}, nil
}

// Gradients.

func inferSame(in []*Node, _ *Attr) (tensor.Shape, error) {
	if !in[0].Shape.Equal(in[1].Shape) {
		return nil, fmt.Errorf("shapes %v and %v differ", in[0].Shape, in[1].Shape)
	}
	return in[0].Shape, nil
}

func inferSoftmaxGrad(in []*Node, a *Attr) (tensor.Shape, error) {
	if err := wantDims(in, 2); err != nil {
		return nil, err
	}
	return inferSame(in, a)
}

func inferUnbroadcast(in []*Node, _ *Attr) (tensor.Shape, error) {
	if !broadcasts(in[0].Shape, in[1].Shape) {
		return nil, fmt.Errorf("%v does not spread over %v", in[1].Shape, in[0].Shape)
	}
	return in[1].Shape, nil
}

func inferFill(in []*Node, _ *Attr) (tensor.Shape, error) { return in[1].Shape, wantDims(in, 0) }

func inferSpread(in []*Node, _ *Attr) (tensor.Shape, error) {
	if err := wantDims(in, 1, 2); err != nil {
		return nil, err
	}
	if in[0].Shape[0] != in[1].Shape[0] {
		return nil, fmt.Errorf("rows of %v and %v differ", in[0].Shape, in[1].Shape)
	}
	return in[1].Shape, nil
}

func inferReshapeLike(in []*Node, _ *Attr) (tensor.Shape, error) {
	from, to := in[0].Shape, in[1].Shape
	if from.Static() != to.Static() || from.Elems() != to.Elems() {
		return nil, fmt.Errorf("%v does not fill %v", from, to)
	}
	return to, nil
}

func inferPad(in []*Node, a *Attr) (tensor.Shape, error) {
	if err := wantDims(in, 2, 2); err != nil {
		return nil, err
	}
	s, err := inferSlice(in[1:], a)
	if err == nil && !s.Equal(in[0].Shape) {
		err = fmt.Errorf("%v is not range [%d, %d) of %v", in[0].Shape, a.Start, a.End, in[1].Shape)
	}
	return in[1].Shape, err
}

// inferGatherGrad checks dy against what Gather makes of the other two.
func inferGatherGrad(in []*Node, a *Attr) (tensor.Shape, error) {
	s, err := inferGather([]*Node{in[2], in[1]}, a)
	if err == nil && !s.Equal(in[0].Shape) {
		err = fmt.Errorf("the gradient is %v, want %v", in[0].Shape, s)
	}
	return in[2].Shape, err
}

func inferBagGrad(in []*Node, a *Attr) (tensor.Shape, error) {
	s, err := inferBag([]*Node{in[4], in[1], in[2], in[3]}, a)
	if err == nil && !s.Equal(in[0].Shape) {
		err = fmt.Errorf("the gradient is %v, want %v", in[0].Shape, s)
	}
	return in[4].Shape, err
}

func inferLossGrad(in []*Node, a *Attr) (tensor.Shape, error) {
	if _, err := inferLoss(in, a); err != nil {
		return nil, err
	}
	return in[0].Shape, wantDims(in[2:], 0)
}

func inferClassLossGrad(in []*Node, a *Attr) (tensor.Shape, error) {
	if _, err := inferClassLoss(in, a); err != nil {
		return nil, err
	}
	return in[0].Shape, wantDims(in[2:], 0)
}

// Updates.

// checkRule fails unless the rule is valid and the slots are those that it
// keeps, in the shape of what they stand beside.
func checkRule(a *Attr, v *Node, slots []*Node) error {
	if err := a.Rule.Validate(); err != nil {
		return err
	}
	if want := len(a.Rule.Slots()); len(slots) != want {
		return fmt.Errorf("has %d slots, rule %s keeps %d", len(slots), a.Rule.Kind, want)
	}
	for _, s := range slots {
		if !s.Shape.Equal(v.Shape) {
			return fmt.Errorf("slot %q is %v, %q is %v", s.Name, s.Shape, v.Name, v.Shape)
		}
	}
	return nil
}

func inferUpdate(in []*Node, a *Attr) (tensor.Shape, error) {
	if !in[1].Shape.Equal(in[0].Shape) {
		return nil, fmt.Errorf("the gradient is %v, want %v", in[1].Shape, in[0].Shape)
	}
	return in[0].Shape, checkRule(a, in[0], in[3:])
}

func inferUpdateRows(in []*Node, a *Attr) (tensor.Shape, error) {
	want := tensor.Shape{in[1].Shape[0], in[0].Shape[1]}
	if !in[2].Shape.Equal(want) {
		return nil, fmt.Errorf("the gradient is %v, want %v", in[2].Shape, want)
	}
	return in[0].Shape, checkRule(a, in[0], in[4:])
}
