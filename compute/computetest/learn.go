package computetest

import (
	"fmt"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// machine runs the segments of a step one after the other in one process.
type machine struct {
	step     *graph.Step
	programs []compute.Program
	in, out  []tensors
	vals     map[*graph.Node]*tensor.Tensor
	order    []int
}

// tinyDense is a perceptron of two layers on [B 4] with three classes.
func tinyDense(t *testing.T, d tensor.DType, rule optim.Rule) *graph.Step {
	g := graph.New(d)
	x, y := g.Input("x", 4), g.Input("y", 0)
	init := graph.Init{Kind: graph.Normal, Scale: 0.5}
	h := g.Tanh(g.Add(g.MatMul(x, g.Variable("w1", init, 4, 9)), g.Variable("b1", graph.Init{}, 9)))
	z := g.Add(g.MatMul(h, g.Variable("w2", init, 9, 3)), g.Variable("b2", graph.Init{}, 3))
	return mustTrain(t, g, graph.Model{Task: graph.Multiclass, Loss: g.SoftmaxLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}, rule)
}

// tinyTable is a factorisation machine of dim 2 on a ragged column of 20 ids.
func tinyTable(t *testing.T, d tensor.DType, rule optim.Rule) *graph.Step {
	g := graph.New(d)
	x, y := g.Ragged("x"), g.Input("y", 0)
	init := graph.Init{Kind: graph.Normal, Scale: 0.3}
	linear := g.Bag(g.GatherRows(g.Table("linear", graph.Init{}, 20, 1), x.Keys()), x.Pos(), x.Offsets(), x.Weights())
	rows := g.GatherRows(g.Table("factors", init, 20, 2), x.Keys())
	square := g.Square(g.Bag(rows, x.Pos(), x.Offsets(), x.Weights()))
	own := g.Bag(g.Square(rows), x.Pos(), x.Offsets(), x.Weights())
	pair := g.SumRows(g.Scale(g.Sub(square, own), 0.5))
	z := g.Add(g.Add(g.SumRows(linear), pair), g.Variable("bias", graph.Init{}))
	return mustTrain(t, g, graph.Model{Task: graph.Binary, Loss: g.LogisticLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}, rule)
}

func mustTrain(t *testing.T, g *graph.Graph, m graph.Model, rule optim.Rule) *graph.Step {
	t.Helper()
	s, err := graph.Train(g, m, rule)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newMachine compiles the segments of a step and makes a tensor for every value
// that passes between them.
func newMachine(t *testing.T, b compute.Backend, d tensor.DType, s *graph.Step) *machine {
	m := &machine{step: s, vals: map[*graph.Node]*tensor.Tensor{}}
	g := newGen(9)
	value := func(n *graph.Node) *tensor.Tensor {
		if v := m.vals[n]; v != nil {
			return v
		}
		v := dirty(n.DType)
		switch n.Op {
		case graph.Variable, graph.Table:
			v = convert(g.floats(n.Shape...), d)
			scaleBy(v, n.Attr.Init.Scale)
		case graph.SlotVar:
			v = tensor.New(d, n.Shape...)
			scaleBy(v, 0)
		case graph.Total:
			v = tensor.New(d)
		}
		m.vals[n] = v
		return v
	}
	for i := range s.Segments {
		seg := &s.Segments[i]
		m.programs = append(m.programs, compile(t, b, seg))
		var in, out tensors
		for _, n := range seg.In {
			in = append(in, value(n))
		}
		for _, n := range seg.Out {
			out = append(out, value(n))
		}
		m.in, m.out = append(m.in, in), append(m.out, out)
	}
	for _, p := range s.Params {
		for k, slot := range p.Rule.Slots() {
			v := m.vals[p.Slots[k]]
			for i := range v.Elems() {
				setFloat(v, i, slot.Init)
			}
		}
		if p.IsTable() {
			m.order = append(m.order, p.Gather)
		}
	}
	m.order = append(m.order, s.Forward...)
	for _, p := range s.Params {
		m.order = append(m.order, p.Update)
	}
	m.fill(11)
	return m
}

func setFloat(t *tensor.Tensor, i int, v float64) {
	if t.DType() == tensor.F32 {
		t.F32()[i] = float32(v)
		return
	}
	t.F64()[i] = v
}

func scaleBy(t *tensor.Tensor, f float64) {
	for i := range t.Elems() {
		if t.DType() == tensor.F32 {
			t.F32()[i] *= float32(f)
		} else {
			t.F64()[i] *= f
		}
	}
}

// fill puts a batch of rows into the inputs. Labels are a function of the
// features, so there is something to learn.
func (m *machine) fill(rows int) {
	g := newGen(uint64(rows))
	put := func(name string, v *tensor.Tensor) {
		for n, t := range m.vals {
			if n.Op == graph.Input && n.Name == name {
				c := convert(v, m.step.Graph.Float)
				t.Resize(c.Shape()...)
				copy(t.Bytes(), c.Bytes())
			}
		}
	}
	labels := zeros(rows)
	if m.step.Model.Task == graph.Multiclass {
		x := g.floats(rows, 4)
		for i := range rows {
			if row := x.F64()[4*i:]; row[0] > row[1] {
				labels.F64()[i] = 1
			} else if row[2] > 0 {
				labels.F64()[i] = 2
			}
		}
		put("x", x)
	} else {
		keys := ints(1, 2, 5, 7, 11, 13, 19)
		pos := g.ids(3*rows, 7)
		offsets := tensor.New(tensor.I64, rows+1)
		weights := zeros(3 * rows)
		for i := range weights.F64() {
			weights.F64()[i] = 1
		}
		for i := range rows {
			offsets.I64()[i+1] = int64(3*i + 3)
			labels.F64()[i] = float64(pos.I64()[3*i] % 2)
		}
		put("x.keys", keys)
		put("x.pos", pos)
		put("x.offsets", offsets)
		put("x.weights", weights)
	}
	put("y", labels)
}

// run does one step; the total is the weight of the step's one batch.
func (m *machine) run(step int64) error {
	for _, i := range m.order {
		if i == m.step.Params[0].Update {
			m.vals[m.step.Total].SetScalar(m.vals[m.step.Model.Weight].Scalar())
		}
		if err := m.programs[i].Run(step, m.in[i], m.out[i]); err != nil {
			return err
		}
	}
	return nil
}

// train does one step and returns its loss a row.
func (m *machine) train(t *testing.T, step int64) float64 {
	t.Helper()
	if err := m.run(step); err != nil {
		t.Fatal(err)
	}
	return m.vals[m.step.Model.Loss].Scalar() / float64(m.vals[m.step.Model.Label].Elems())
}

// learn trains a dense and a sparse model by every rule and wants the loss to
// fall by half, batches of any size to work, and warm steps to allocate nothing.
func learn(t *testing.T, b compute.Backend, d tensor.DType) {
	for name, model := range map[string]func(*testing.T, tensor.DType, optim.Rule) *graph.Step{"dense": tinyDense, "table": tinyTable} {
		for _, rule := range rules() {
			t.Run(fmt.Sprintf("%s/%s", name, rule.Kind), func(t *testing.T) {
				m := newMachine(t, b, d, model(t, d, rule))
				first := m.train(t, 0)
				last := first
				for step := range int64(80) {
					last = m.train(t, step+1)
				}
				if !(last < first/2) {
					t.Errorf("loss went from %v to %v", first, last)
				}
				for _, rows := range []int{0, 1, 17, 11} {
					m.fill(rows)
					if err := m.run(90); err != nil {
						t.Fatalf("%d rows: %v", rows, err)
					}
					allocFree(t, func() error { return m.run(91) })
				}
				if err := m.programs[m.step.Eval].Run(0, m.in[m.step.Eval], m.out[m.step.Eval]); err != nil {
					t.Errorf("evaluation: %v", err)
				}
			})
		}
	}
}
