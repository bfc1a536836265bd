package exec_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// The norm is that of all parameters of the step together: with gradient descent
// every step moves them by rate times that norm, however many workers there are.
// A bound that no step reaches changes no bit.
func TestClipNormIsGlobal(t *testing.T) {
	const bound, rate, steps = 1e-3, .5, 4
	for _, ranks := range []int{1, 3} {
		clipped := newProblem(t, "ctr", optim.Rule{Kind: optim.SGD, LR: rate, ClipNorm: bound})
		free := newProblem(t, "ctr", optim.Rule{Kind: optim.SGD, LR: rate})
		loose := newProblem(t, "ctr", optim.Rule{Kind: optim.SGD, LR: rate, ClipNorm: 1e9})
		s := strategy.Serial
		if ranks > 1 {
			s = strategy.AllReduce
		}
		synctest.Test(t, func(t *testing.T) {
			at := clipped.state()
			for n := range int64(steps) {
				states, _ := clipped.train(t, s, ranks, n+1)
				if got := apart(at, states[0]); math.Abs(got-rate*bound) > 1e-12 {
					t.Errorf("%d ranks: step %d moves the parameters by %v, want %v", ranks, n, got, rate*bound)
				}
				at = states[0]
			}
			want, wantLosses := free.train(t, s, ranks, steps)
			got, losses := loose.train(t, s, ranks, steps)
			if d, where := far(want[0], got[0]); d != 0 {
				t.Errorf("%d ranks: a bound out of reach changed %s", ranks, where)
			}
			for i := range losses {
				if losses[i] != wantLosses[i] {
					t.Errorf("%d ranks: step %d has loss %v, want %v", ranks, i, losses[i], wantLosses[i])
				}
			}
		})
	}
}

// apart is the norm of the difference of two states.
func apart(a, b map[string]*tensor.Tensor) float64 {
	sum := 0.0
	for name, x := range a {
		for i, v := range x.F64() {
			sum += (v - b[name].F64()[i]) * (v - b[name].F64()[i])
		}
	}
	return math.Sqrt(sum)
}

// A plan whose commit sees gradients of one worker alone has no norm to clip to,
// nor has one whose parameters are to be clipped to several.
func TestClipNormRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		build strategy.Strategy
		c     strategy.Cluster
		bend  func(p *problem, prog *plan.Program)
		want  string
	}{
		{"servers", strategy.PS, strategy.Cluster{Workers: 2, Servers: 1}, func(p *problem, _ *plan.Program) {
			for i := range p.step.Params {
				p.step.Params[i].Rule.ClipNorm = 1
			}
		}, "not summed over the workers"},
		{"two norms", strategy.Serial, strategy.Cluster{Workers: 1}, func(p *problem, _ *plan.Program) {
			p.step.Params[1].Rule.ClipNorm = 1
		}, "clipped to norms 0 and 1"},
	} {
		p := newProblem(t, "ctr", optim.Rule{Kind: optim.SGD, LR: .1})
		prog, err := c.build(p.step, c.c)
		if err != nil {
			t.Fatal(err)
		}
		c.bend(p, prog)
		cfg := p.config(t, prog, strategy.StepPlan, 0, c.c.Workers, mem.NewNetwork(2, mem.Options{}), p.state())
		cfg.Stores = &fakeStores{}
		e, err := exec.New(cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", c.name, err, c.want)
		}
		if e != nil {
			_ = e.Close()
		}
	}
}

// A norm that no float64 holds skips the step, as any value that is not finite.
func TestClipNormOverflow(t *testing.T) {
	l := newLearn(1, 1)
	l.step.Params = []graph.Param{{Rule: optim.Rule{Kind: optim.SGD, LR: 1, ClipNorm: 1}}}
	l.spoil = func(_ int, step int64, grad, _ []float64) {
		if step == 1 {
			grad[0] = 1e200
		}
	}
	cfg := l.config(0, nil)
	var skipped []bool
	cfg.OnStep = func(_ int64, r exec.Result) { skipped = append(skipped, r.Skipped) }
	_, errs := runAll(t, nil, 3, cfg)
	must(t, errs)
	if !slices.Equal(skipped, []bool{false, true, false}) {
		t.Errorf("skipped: %v", skipped)
	}
}
