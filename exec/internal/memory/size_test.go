package memory

import (
	"testing"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// State counts once, however many steps are in flight, and so does what is once by the
// plan; gradients count for each step, and an arena as a whole.
func TestSize(t *testing.T) {
	value := func(name string, c plan.Class, n int) plan.Value {
		return plan.Value{Name: name, Class: c, DType: tensor.F32, Shape: tensor.Shape{n}}
	}
	p := &plan.Plan{Window: 2, Ranks: [][]plan.Task{nil}, Values: []plan.Value{
		value("w", plan.Param, 3), value("m", plan.Slot, 5), value("part", plan.Grad, 7), value("sum", plan.Grad, 16),
		value("next", plan.Grad, 16), value("gathered", plan.Act, 11), value("hidden", plan.Act, 13),
	}}
	for i, offset := range []int{3: 0, 4: 64} {
		if i >= 3 {
			p.Values[i].Arena, p.Values[i].Offset = 1, offset
		}
	}
	p.Values[5].Once, p.Values[6].State = true, plan.NoState
	v := New(p, 0, nil, transport.Ordinary)
	for i := range p.Values {
		if _, err := v.Get(plan.Ref{Value: i}); err != nil {
			t.Fatal(err)
		}
	}
	want := Size{Parameters: 4 * 3, Slots: 4 * 5, Gradients: 2 * 128, Temporary: 2*4*7 + 4*11}
	if got := v.Size(map[int]bool{3: true, 4: true, 0: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
