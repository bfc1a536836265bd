package computetest

import (
	"fmt"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

func rules() []optim.Rule {
	return []optim.Rule{
		{Kind: optim.SGD, LR: 0.1, L2: 0.01},
		{Kind: optim.Momentum, LR: 0.05, Nesterov: true},
		{Kind: optim.Adagrad, LR: 0.2, InitialAccumulator: 0.1},
		{Kind: optim.Adam, LR: 0.05},
		{Kind: optim.Momentum, LR: 0.05, WeightDecay: 0.1, Dampening: 0.3, Schedule: optim.Schedule{Warmup: 2}},
		{Kind: optim.RMSProp, LR: 0.05, Centered: true, Momentum: 0.5, ClipValue: 0.1},
		{Kind: optim.RMSProp, LR: 0.05},
		{Kind: optim.AdamW, LR: 0.05, AMSGrad: true},
		{Kind: optim.FTRL, LR: 0.5, L1: 0.001},
		{Kind: optim.LAMB, LR: 0.05, WeightDecay: 0.1},
	}
}

// updates proves that an update changes the caller's tensors in place as optim
// does, that the outputs must be the inputs, and that a total of 0 leaves all
// as it was.
func updates(t *testing.T, b compute.Backend, d tensor.DType) {
	for _, rule := range rules() {
		t.Run("dense/"+string(rule.Kind), func(t *testing.T) {
			g := newGen(3)
			in := tensors{g.floats(5, 3), g.floats(5, 3), values(4)}
			in[2].Resize()
			updateCase(t, b, d, graph.Update, rule, in, 15)
		})
		t.Run("rows/"+string(rule.Kind), func(t *testing.T) {
			g := newGen(4)
			in := tensors{g.floats(5, 3), ints(0, 3, 4), g.floats(3, 3), values(4)}
			in[3].Resize()
			updateCase(t, b, d, graph.UpdateRows, rule, in, 15)
		})
	}
}

func updateCase(t *testing.T, b compute.Backend, d tensor.DType, op graph.Op, rule optim.Rule, in tensors, elems int) {
	for range rule.Slots() {
		in = append(in, newGen(5).positive(5, 3))
	}
	in = convertAll(in, d)
	total := in[len(in)-len(rule.Slots())-1]
	seg := segmentOf(op, graph.Attr{Rule: rule}, d, in)
	n := len(in) - len(rule.Slots())
	seg.Out = append([]*graph.Node{seg.In[0]}, seg.In[n:]...)
	out := append(tensors{in[0]}, in[n:]...)
	p, want := compile(t, b, seg), convertAll(in, d)
	for step := range int64(3) {
		if err := p.Run(step, in, out); err != nil {
			t.Fatal(err)
		}
		if d == tensor.F32 {
			plainUpdate[float32](op, rule, step, want)
		} else {
			plainUpdate[float64](op, rule, step, want)
		}
	}
	for i := range in {
		if string(in[i].Bytes()) != string(want[i].Bytes()) {
			t.Errorf("input %d differs from what optim makes of it", i)
		}
	}
	total.SetScalar(0)
	if err := p.Run(3, in, out); err != nil {
		t.Fatal(err)
	}
	for _, i := range append([]int{0}, indices(n, len(in))...) {
		if string(in[i].Bytes()) != string(want[i].Bytes()) {
			t.Errorf("total 0 changed input %d", i)
		}
	}
	total.SetScalar(2)
	allocFree(t, func() error { return p.Run(4, in, out) })
	out[0] = out[0].Clone()
	if err := p.Run(5, in, out); err == nil {
		t.Error("an output that is not the variable was accepted")
	}
	if in[0].Elems() != elems {
		t.Errorf("the variable has %d elements, want %d", in[0].Elems(), elems)
	}
}

func indices(lo, hi int) []int {
	var all []int
	for i := lo; i < hi; i++ {
		all = append(all, i)
	}
	return all
}

// plainUpdate applies the rule by a call of optim.
func plainUpdate[T tensor.Float](op graph.Op, rule optim.Rule, step int64, in tensors) {
	var slots [][]T
	rows := op == graph.UpdateRows
	first := 3
	if rows {
		first = 4
	}
	for _, s := range in[first:] {
		slots = append(slots, tensor.Data[T](s))
	}
	total := in[first-1].Scalar()
	p, g := tensor.Data[T](in[0]), tensor.Data[T](in[first-2])
	if !rows {
		optim.Dense(rule, step, total, p, g, slots)
		return
	}
	var at []int
	for _, k := range in[1].I64() {
		at = append(at, int(k))
	}
	optim.Rows(rule, step, total, p, at, in[0].Shape()[1], g, slots)
}

// idleStep proves that a backend that computes nothing leaves variables alone
// and delivers zeros from a whole training step.
func idleStep(t *testing.T, b compute.Backend, d tensor.DType) {
	for _, rule := range rules()[:1] {
		m := newMachine(t, b, d, tinyTable(t, d, rule))
		before := map[*graph.Node]string{}
		for _, p := range m.step.Params {
			before[p.Var] = string(m.vals[p.Var].Bytes())
		}
		if loss := m.train(t, 0); loss != 0 {
			t.Errorf("loss is %v, want 0", loss)
		}
		for _, p := range m.step.Params {
			if string(m.vals[p.Var].Bytes()) != before[p.Var] {
				t.Errorf("%s changed", p.Var.Name)
			}
			if s := fmt.Sprint(m.vals[p.Grad].Shape()); s == "[0]" {
				t.Errorf("gradient of %s has shape %s", p.Var.Name, s)
			}
		}
		allocFree(t, func() error { return m.run(1) })
	}
}
