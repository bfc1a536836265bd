package exec_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// problem is a model with data to train it on.
type problem struct {
	step  *graph.Step
	src   data.Source
	order data.Order
}

func newProblem(t *testing.T, kind string, rule optim.Rule) *problem {
	t.Helper()
	// The batch of 7 leaves some of 8 workers without rows.
	src, err := data.Open(t.Context(), data.Spec{Format: "generated", Rows: 40, Buckets: 50, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := model.Config{Kind: kind, Float: tensor.F64, Seed: 3}
	for _, s := range src.Columns() {
		if s.Name != "label" {
			c.Inputs = append(c.Inputs, model.Column{Name: s.Name, Ragged: s.Kind == data.RaggedColumn, Dim: s.Dim, PerRow: s.PerRow})
		}
	}
	if kind == "ctr" {
		c.Hidden, c.Dim = []int{4}, 3
	} else {
		c.Table = true
	}
	g, m, err := model.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	step, err := graph.Train(g, m, rule)
	if err != nil {
		t.Fatal(err)
	}
	return &problem{step, src, data.Order{Seed: 5, Rows: src.Rows(), Batch: 7, Shuffle: true}}
}

// state makes initial parameters and slots.
func (p *problem) state() map[string]*tensor.Tensor {
	s := map[string]*tensor.Tensor{}
	for i := range p.step.Params {
		v := p.step.Params[i].Var
		s[v.Name] = tensor.New(v.DType, v.Shape...)
		graph.Fill(v.Attr.Init, v.Name, 0, s[v.Name].F64())
		for _, slot := range p.step.Params[i].Slots {
			s[slot.Name] = tensor.New(slot.DType, slot.Shape...)
			for k := range s[slot.Name].F64() {
				s[slot.Name].F64()[k] = slot.Attr.Value
			}
		}
	}
	return s
}

// config is a worker of a program.
func (p *problem) config(t *testing.T, prog *plan.Program, name string, rank, ranks int, w *mem.Network, state map[string]*tensor.Tensor) exec.Config {
	t.Helper()
	var inputs []data.InputSpec
	for _, n := range strategy.Inputs(p.step, name) {
		inputs = append(inputs, data.InputSpec{Column: n.Attr.Column, Part: string(n.Attr.Part), DType: n.DType, Dims: len(n.Shape)})
	}
	feeder, err := data.NewFeeder(p.src, p.order, rank, ranks, inputs)
	if err != nil {
		t.Fatal(err)
	}
	cfg := exec.Config{Rank: rank, Plan: prog.Plans[name], Step: p.step, Backend: ref.New(), Feeder: feeder, State: state}
	if ranks > 1 {
		cfg.Endpoint = w.Endpoint(rank)
	}
	return cfg
}

// train runs steps on so many workers and returns each one's state and losses.
func (p *problem) train(t *testing.T, s strategy.Strategy, ranks int, steps int64) ([]map[string]*tensor.Tensor, []float64) {
	t.Helper()
	prog, err := s(p.step, strategy.Cluster{Workers: ranks})
	if err != nil {
		t.Fatal(err)
	}
	w := mem.NewNetwork(ranks, mem.Options{Link: uneven})
	var cfgs []exec.Config
	var states []map[string]*tensor.Tensor
	var losses []float64
	for r := range ranks {
		cfg := p.config(t, prog, strategy.StepPlan, r, ranks, w, p.state())
		if r == 0 {
			cfg.OnStep = func(_ int64, got exec.Result) { losses = append(losses, got.Loss/got.Weight) }
		}
		cfgs, states = append(cfgs, cfg), append(states, cfg.State)
	}
	execs, errs := runAll(t, w, steps, cfgs...)
	must(t, errs)
	for r, e := range execs {
		for _, a := range e.Accounts() {
			if a.Pushed != steps || a.Applied != steps || a.Dropped+a.Pending != 0 {
				t.Errorf("rank %d: account %+v after %d steps", r, a, steps)
			}
		}
	}
	return states, losses
}

// far is the largest difference of two states, relative to 1 + magnitude.
func far(a, b map[string]*tensor.Tensor) (worst float64, where string) {
	for name, t := range a {
		for i, v := range t.F64() {
			o := b[name].F64()[i]
			if d := math.Abs(v-o) / (1 + math.Abs(v)); d > worst || math.IsNaN(d) {
				worst, where = d, fmt.Sprintf("%s[%d]: %v and %v", name, i, v, o)
			}
		}
	}
	return worst, where
}

// All-reduce over any number of workers, some of them without rows, ends with
// the parameters of the serial loop, the same bits on all workers, and lowers
// the loss.
func TestAllReduceIsSerial(t *testing.T) {
	const steps, tolerance = 12, 1e-12
	for _, c := range []struct {
		kind string
		rule optim.Rule
	}{
		{"logistic", optim.Rule{Kind: optim.Momentum, LR: .05, L2: .01}},
		{"ctr", optim.Rule{Kind: optim.Adagrad, LR: .1}},
		{"ctr", optim.Rule{Kind: optim.SGD, LR: .5, ClipNorm: .05}},
		{"ctr", optim.Rule{Kind: optim.LAMB, LR: .01, Eps: 1e-3}},
	} {
		kind := c.kind
		p := newProblem(t, kind, c.rule)
		serial, wantLosses := p.train(t, strategy.Serial, 1, steps)
		if d, _ := far(serial[0], p.state()); d < 1e-3 {
			t.Fatalf("%s: training moved nothing", kind)
		}
		for _, ranks := range []int{1, 2, 3, 8} {
			synctest.Test(t, func(t *testing.T) {
				states, losses := p.train(t, strategy.AllReduce, ranks, steps)
				for r, s := range states {
					if d, where := far(serial[0], s); d > tolerance {
						t.Errorf("%s over %d: rank %d is %g away from serial: %s", kind, ranks, r, d, where)
					}
					if d, where := far(states[0], s); d != 0 {
						t.Errorf("%s over %d: rank %d differs from rank 0: %s", kind, ranks, r, where)
					}
				}
				for i, l := range losses {
					if math.Abs(l-wantLosses[i]) > tolerance {
						t.Errorf("%s over %d: step %d has loss %v, want %v", kind, ranks, i, l, wantLosses[i])
					}
				}
			})
		}
	}
}

// An evaluation on the parameters that training left reads each row once and
// changes nothing.
func TestEvalSharesParameters(t *testing.T) {
	p := newProblem(t, "ctr", optim.Rule{Kind: optim.SGD, LR: .1})
	states, _ := p.train(t, strategy.Serial, 1, 6)
	before := map[string]*tensor.Tensor{}
	for name, v := range states[0] {
		before[name] = v.Clone()
	}
	prog, err := strategy.Serial(p.step, strategy.Cluster{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := p.config(t, prog, strategy.EvalPlan, 0, 1, nil, states[0])
	var rows []int
	cfg.OnOutput = func(_ int64, get func(string) *tensor.Tensor) error {
		m := p.step.Model
		if n := get(m.Predict.Name).Elems(); n != get(m.Label.Name).Elems() || float64(n) != get(m.Weight.Name).Scalar() {
			t.Errorf("%d predictions for %d labels", n, get(m.Label.Name).Elems())
		}
		rows = append(rows, get(m.Predict.Name).Elems())
		return nil
	}
	_, errs := runAll(t, nil, int64(p.order.StepsPerEpoch()), cfg)
	must(t, errs)
	if !slices.Equal(rows, []int{7, 7, 7, 7, 7, 5}) {
		t.Errorf("batches of %v", rows)
	}
	if d, where := far(before, states[0]); d != 0 {
		t.Errorf("evaluation changed %s", where)
	}
}
