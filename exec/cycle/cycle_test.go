package cycle_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/exec/cycle"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// problem is a dense model with rows to train it on, the same for all workers.
type problem struct {
	step  *graph.Step
	src   data.Source
	order data.Order
}

func newProblem(t *testing.T, rule optim.Rule) *problem {
	t.Helper()
	src, err := data.Open(t.Context(), data.Spec{Format: "generated", Rows: 48, Buckets: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := model.Config{Kind: "mlp", Hidden: []int{4}, Classes: 2, Float: tensor.F64, Seed: 3}
	for _, s := range src.Columns() {
		if s.Name != "label" {
			c.Inputs = append(c.Inputs, model.Column{Name: s.Name, Ragged: s.Kind == data.RaggedColumn, Dim: s.Dim, PerRow: s.PerRow})
		}
	}
	g, m, err := model.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	step, err := graph.Train(g, m, rule)
	if err != nil {
		t.Fatal(err)
	}
	return &problem{step, src, data.Order{Seed: 5, Rows: src.Rows(), Batch: 12, Shuffle: true}}
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

// worker is what a rank of a run is.
type worker struct {
	*cycle.Driver
	state map[string]*tensor.Tensor
	end   transport.Endpoint
	last  exec.Result
}

// spoil is what a test does to the batches of a rank.
type spoil func(rank int, step int64, out []*tensor.Tensor)

// feeder spoils what another feeds.
type feeder struct {
	exec.Feeder
	rank  int
	spoil spoil
}

func (f *feeder) Feed(step int64, out []*tensor.Tensor) error {
	err := f.Feeder.Feed(step, out)
	f.spoil(f.rank, step, out)
	return err
}

// workers opens a driver for each of n ranks, and proves the program.
func (p *problem) workers(t *testing.T, build strategy.Strategy, c strategy.Cluster, net *mem.Network, spoil spoil) []*worker {
	t.Helper()
	prog, err := build(p.step, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Program(prog); err != nil {
		t.Fatal(err)
	}
	all := make([]*worker, c.Workers)
	for r := range all {
		w := &worker{state: p.state(), end: net.Endpoint(r)}
		w.Driver, err = cycle.New(prog, func(name string) (*exec.Exec, error) {
			var inputs []data.InputSpec
			for _, n := range strategy.Inputs(p.step, name) {
				inputs = append(inputs, data.InputSpec{Column: n.Attr.Column, Part: string(n.Attr.Part), DType: n.DType, Dims: len(n.Shape)})
			}
			feed, err := data.NewFeeder(p.src, p.order, r, c.Workers, inputs)
			if err != nil {
				return nil, err
			}
			cfg := exec.Config{
				Rank: r, Plan: prog.Plans[name], Step: p.step, Backend: ref.New(), Feeder: feed, State: w.state,
				Endpoint: net.Endpoint(r), Deadline: time.Minute, OnStep: func(_ int64, res exec.Result) {
					if name == strategy.StepPlan {
						w.last = res
					}
				},
			}
			if spoil != nil {
				cfg.Feeder = &feeder{feed, r, spoil}
			}
			return exec.New(cfg)
		})
		if err != nil {
			t.Fatal(err)
		}
		all[r] = w
	}
	return all
}

// run lets all workers do steps, in parts that end at the given steps, and returns
// them with their errors.
func (p *problem) run(t *testing.T, build strategy.Strategy, c strategy.Cluster, spoil spoil, parts ...int64) (all []*worker, errs []error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(c.Workers, mem.Options{Link: func(from, to int) mem.Link {
			return mem.Link{Delay: time.Duration(from+2*to) * time.Millisecond}
		}})
		all, errs = p.workers(t, build, c, net, spoil), make([]error, c.Workers)
		var ranks sync.WaitGroup
		for r, w := range all {
			ranks.Go(func() {
				at := int64(0)
				for _, next := range parts {
					if errs[r] = w.Run(t.Context(), at, next); errs[r] != nil {
						_ = w.end.Close()
						return
					}
					at = next
				}
			})
		}
		ranks.Wait()
		for _, w := range all {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, e := range net.Endpoints() {
			_ = e.Close()
		}
	})
	return all, errs
}

func must(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// far is the largest difference of parameters and slots.
func (p *problem) far(a, b map[string]*tensor.Tensor) (worst float64) {
	for i := range p.step.Params {
		for _, n := range append([]*graph.Node{p.step.Params[i].Var}, p.step.Params[i].Slots...) {
			for k, v := range a[n.Name].F64() {
				if d := math.Abs(v - b[n.Name].F64()[k]); !(d <= worst) {
					worst = d
				}
			}
		}
	}
	return worst
}

func local(n, every int, change ...func(*strategy.Averaging)) strategy.Cluster {
	c := strategy.Cluster{Workers: n, Averaging: strategy.Averaging{Every: every}}
	for _, f := range change {
		f(&c.Averaging)
	}
	return c
}

func slots(s strategy.Slots) func(*strategy.Averaging) {
	return func(a *strategy.Averaging) { a.Slots = s }
}

// With one worker both are the serial loop, bit for bit, whatever the cycle and where
// the run pauses.
func TestOneWorkerIsSerial(t *testing.T) {
	p := newProblem(t, optim.Rule{Kind: optim.Adam, LR: .01})
	serial, errs := p.run(t, strategy.Serial, strategy.Cluster{Workers: 1}, nil, 10)
	must(t, errs)
	for _, c := range []struct {
		kind string
		c    strategy.Cluster
	}{
		{"localsgd", local(1, 1)},
		{"localsgd", local(1, 4)},
		{"localsgd", local(1, 3, slots(strategy.AverageSlots))},
		{"sma", local(1, 1)},
		{"sma", local(1, 1, func(a *strategy.Averaging) { a.Alpha = .3 })},
	} {
		build, err := strategy.ByName(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		got, errs := p.run(t, build, c.c, nil, 3, 7, 10)
		must(t, errs)
		if d := p.far(serial[0].state, got[0].state); d != 0 {
			t.Errorf("%s %+v: differs from serial by %g", c.kind, c.c.Averaging, d)
		}
	}
}

// Averaging after every step is all-reduce, but for rounding, with plain SGD and equal
// shares of the batch. SMA with alpha 1 is the same.
func TestEveryStepIsAllReduce(t *testing.T) {
	p := newProblem(t, optim.Rule{Kind: optim.SGD, LR: .1})
	for n := 2; n <= 4; n++ { // which all divide the batch of 12
		want, errs := p.run(t, strategy.AllReduce, strategy.Cluster{Workers: n}, nil, 9)
		must(t, errs)
		got, errs := p.run(t, strategy.LocalSGD, local(n, 1), nil, 9)
		must(t, errs)
		if d := p.far(want[0].state, got[0].state); !(d < 1e-13) {
			t.Errorf("%d workers: localsgd differs from allreduce by %g", n, d)
		}
		got, errs = p.run(t, strategy.SMA, local(n, 1, func(a *strategy.Averaging) { a.Alpha = 1 }), nil, 9)
		must(t, errs)
		if d := p.far(want[0].state, got[0].state); !(d < 1e-13) {
			t.Errorf("%d workers: sma differs from allreduce by %g", n, d)
		}
	}
}

// What crosses is one all-reduce of the parameters a cycle: 2(N-1)/N of their bytes a
// rank, by a ring, and the frame that opens it. A step by itself sends nothing, and so
// with H steps a cycle the messages of a step are those of H = 1 divided by H.
func TestBytesOfACycle(t *testing.T) {
	const n, steps, line, opening = 2, 24, 64, 128
	p := newProblem(t, optim.Rule{Kind: optim.SGD, LR: .1})
	var run, last int64 // what an averaging sums: every array on lines of its own, but for the end
	for i := range p.step.Params {
		last = int64(p.step.Params[i].Var.Shape.Elems()) * 8
		run += (last + line - 1) / line * line
	}
	run += last - (last+line-1)/line*line
	sent := func(every int) (bytes, messages int64) {
		all, errs := p.run(t, strategy.LocalSGD, local(n, every), nil, steps)
		must(t, errs)
		s := all[1].end.Stats()
		return s.BytesSent, s.MessagesSent
	}
	_, each := sent(1)
	for _, every := range []int{1, 2, 3, 8, 24} {
		bytes, messages := sent(every)
		if want := steps / int64(every) * (2*(n-1)*run/n + opening); bytes != want {
			t.Errorf("every %d steps: sent %d bytes, want %d", every, bytes, want)
		}
		if messages != each/int64(every) {
			t.Errorf("every %d steps: sent %d messages, after every step %d: want that divided", every, messages, each)
		}
	}
}

// A step that is not finite for one worker is skipped there and nowhere else, and its
// result names that worker. The others train on; after the averaging all have a part
// in what they learned.
func TestSkippedAlone(t *testing.T) {
	p := newProblem(t, optim.Rule{Kind: optim.SGD, LR: .1})
	results := make([]exec.Result, 3)
	all, errs := p.run(t, strategy.LocalSGD, local(3, 4), func(rank int, step int64, out []*tensor.Tensor) {
		if rank == 1 && step == 3 {
			for _, v := range out {
				if v.DType() == tensor.F64 && len(v.Shape()) == 2 {
					v.F64()[0] = math.NaN()
				}
			}
		}
	}, 4)
	must(t, errs)
	for r, w := range all {
		results[r] = w.last
		if got := w.last; got.Skipped != (r == 1) || r == 1 && (len(got.Faulty) != 1 || got.Faulty[0] != 1) {
			t.Errorf("rank %d: step 3 ended with %+v", r, got)
		}
		for _, a := range w.Step().Accounts() {
			if want := int64(map[bool]int{true: 1}[r == 1]); a.Dropped != want || a.Applied != 4-want {
				t.Errorf("rank %d: account %+v", r, a)
			}
		}
	}
	if d := p.far(all[0].state, all[1].state); d != 0 || math.IsNaN(all[0].state[p.step.Params[0].Var.Name].F64()[0]) {
		t.Errorf("ranks 0 and 1 settle %g apart", d)
	}
}

// A rank that dies is noticed in the next averaging at the latest, by an error that
// names it.
func TestDeadRankIsNamed(t *testing.T) {
	p := newProblem(t, optim.Rule{Kind: optim.SGD, LR: .1})
	var mu sync.Mutex
	died := errors.New("died")
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(3)
		all := p.workers(t, strategy.LocalSGD, local(3, 8), net, nil)
		errs := make([]error, 3)
		var ranks sync.WaitGroup
		for r, w := range all {
			ranks.Go(func() {
				if r == 2 { // ends within the cycle, without a word
					errs[r] = errors.Join(w.Step().Run(t.Context(), 0, 5), died)
					_ = w.end.Close()
					return
				}
				err := w.Run(t.Context(), 0, 16)
				mu.Lock()
				errs[r] = err
				mu.Unlock()
			})
		}
		ranks.Wait()
		for r, w := range all {
			_ = w.Close()
			if r == 2 {
				continue
			}
			// Rank 1 waits for rank 0, which has failed: of all errors the first counts.
			te, ok := errors.AsType[*exec.TaskError](errs[r])
			if !ok || te.Step != 7 || te.Kind != plan.Collective || !slices.Equal(te.Peers, []int{2 - 2*r}) {
				t.Errorf("rank %d: %v, want an error of the averaging after step 7 that names rank %d", r, errs[r], 2-2*r)
			}
		}
		for _, e := range net.Endpoints() {
			_ = e.Close()
		}
	})
}
