package cycle_test

import (
	"errors"
	"testing"

	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
)

// naive trains copies one after the other, with whatever meets them in plain Go.
func (p *problem) naive(t *testing.T, n int, steps int64, meet func(step int64, copies []map[string]*tensor.Tensor)) []map[string]*tensor.Tensor {
	t.Helper()
	var copies []map[string]*tensor.Tensor
	for range n {
		copies = append(copies, p.state())
	}
	for step := range steps {
		for r := range n {
			prog, err := strategy.Serial(p.step, strategy.Cluster{Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			var inputs []data.InputSpec
			for _, node := range strategy.Inputs(p.step, "step") {
				inputs = append(inputs, data.InputSpec{Column: node.Attr.Column, Part: string(node.Attr.Part), DType: node.DType, Dims: len(node.Shape)})
			}
			feed, err := data.NewFeeder(p.src, p.order, r, n, inputs) // rank r's part of the rows
			if err != nil {
				t.Fatal(err)
			}
			e, err := exec.New(exec.Config{Plan: prog.Plans["step"], Step: p.step, Backend: ref.New(), Feeder: feed, State: copies[r]})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(e.Run(t.Context(), step, step+1), e.Close()); err != nil {
				t.Fatal(err)
			}
		}
		meet(step+1, copies)
	}
	return copies
}

// each calls f for every element of parameters, or of slots, with that element of all
// copies.
func (p *problem) each(copies []map[string]*tensor.Tensor, params, slots bool, f func(name string, k int, of []*float64)) {
	of := make([]*float64, len(copies))
	for i := range p.step.Params {
		var nodes []*graph.Node
		if params {
			nodes = append(nodes, p.step.Params[i].Var)
		}
		if slots {
			nodes = append(nodes, p.step.Params[i].Slots...)
		}
		for _, n := range nodes {
			for k := range copies[0][n.Name].F64() {
				for r := range copies {
					of[r] = &copies[r][n.Name].F64()[k]
				}
				f(n.Name, k, of)
			}
		}
	}
}

func mean(of []*float64) (m float64) {
	for _, v := range of {
		m += *v / float64(len(of))
	}
	return m
}

// toMean makes all copies of an element the average.
func toMean(_ string, _ int, of []*float64) {
	m := mean(of)
	for _, v := range of {
		*v = m
	}
}

// The programs do what their papers say: the same numbers as copies that are trained
// one after the other and met by loops in plain Go.
func TestAgainstPlainLoops(t *testing.T) {
	const n, steps, pause = 3, 11, 6
	p := newProblem(t, optim.Rule{Kind: optim.Momentum, LR: .1, Momentum: .9})
	settle := func(c []map[string]*tensor.Tensor) { p.each(c, true, true, toMean) }
	ends := func(step int64, every int) bool { return step%int64(every) == 0 }
	rests := func(step int64) bool { return step == pause || step == steps }
	from, momentum := map[string][]float64{}, map[string][]float64{}
	for _, c := range []struct {
		name  string
		build strategy.Strategy
		c     strategy.Cluster
		meet  func(step int64, copies []map[string]*tensor.Tensor)
	}{
		{"keep", strategy.LocalSGD, local(n, 4), func(step int64, c []map[string]*tensor.Tensor) {
			if rests(step) {
				settle(c)
			} else if ends(step, 4) {
				p.each(c, true, false, toMean)
			}
		}},
		{"average", strategy.LocalSGD, local(n, 4, slots(strategy.AverageSlots)), func(step int64, c []map[string]*tensor.Tensor) {
			if rests(step) || ends(step, 4) {
				settle(c)
			}
		}},
		{"reset", strategy.LocalSGD, local(n, 4, slots(strategy.ResetSlots)), func(step int64, c []map[string]*tensor.Tensor) {
			if rests(step) || ends(step, 4) {
				p.each(c, true, false, toMean)
				p.each(c, false, true, func(_ string, _ int, of []*float64) {
					for _, v := range of {
						*v = 0
					}
				})
			}
		}},
		{"outer", strategy.LocalSGD, local(n, 3, func(a *strategy.Averaging) {
			a.Outer = strategy.Outer{Momentum: .8, LR: .7, Nesterov: true}
		}), func(step int64, c []map[string]*tensor.Tensor) {
			if !rests(step) && !ends(step, 3) {
				return
			}
			if len(from) == 0 { // where the run began
				p.each([]map[string]*tensor.Tensor{p.state()}, true, false, func(name string, _ int, of []*float64) {
					from[name], momentum[name] = append(from[name], *of[0]), append(momentum[name], 0)
				})
			}
			p.each(c, true, false, func(name string, k int, of []*float64) {
				g := mean(of) - from[name][k]
				momentum[name][k] = .8*momentum[name][k] + g
				from[name][k] += .7 * (g + .8*momentum[name][k])
				for _, v := range of {
					*v = from[name][k]
				}
			})
			if rests(step) {
				p.each(c, false, true, toMean)
			}
		}},
		{"sma", strategy.SMA, local(n, 2, func(a *strategy.Averaging) { a.Alpha = .25 }), func(step int64, c []map[string]*tensor.Tensor) {
			if rests(step) {
				settle(c)
			} else if ends(step, 2) {
				p.each(c, true, false, func(_ string, _ int, of []*float64) {
					z := mean(of)
					for _, v := range of {
						*v -= .25 * (*v - z)
					}
				})
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := p.naive(t, n, steps, c.meet)
			got, errs := p.run(t, c.build, c.c, nil, pause, steps)
			must(t, errs)
			for r := range got {
				if d := p.far(want[r], got[r].state); !(d < 1e-12) {
					t.Errorf("rank %d differs by %g", r, d)
				}
				if d := p.far(got[0].state, got[r].state); d != 0 {
					t.Errorf("rank %d settles %g from rank 0", r, d)
				}
			}
		})
	}
}

// Slots that are reset are what they were before the first step, which is not always 0.
func TestResetSlots(t *testing.T) {
	const n, steps, pause, first = 3, 9, 6, .3
	p := newProblem(t, optim.Rule{Kind: optim.Adagrad, LR: .1, InitialAccumulator: first})
	want := p.naive(t, n, steps, func(step int64, c []map[string]*tensor.Tensor) {
		if step != pause && step != steps && step%4 != 0 {
			return
		}
		p.each(c, true, false, toMean)
		p.each(c, false, true, func(_ string, _ int, of []*float64) {
			for _, v := range of {
				*v = first
			}
		})
	})
	got, errs := p.run(t, strategy.LocalSGD, local(n, 4, slots(strategy.ResetSlots)), nil, pause, steps)
	must(t, errs)
	for r := range got {
		if d := p.far(want[r], got[r].state); !(d < 1e-12) {
			t.Errorf("rank %d differs by %g", r, d)
		}
	}
}
