package exec_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run is what a test's segment does.
type run func(step int64, in, out []*tensor.Tensor) error

// Run implements compute.Program.
func (f run) Run(step int64, in, out []*tensor.Tensor) error { return f(step, in, out) }

// draft is a plan made by hand, with its segments as functions. One draft makes
// the plan of all ranks; what differs between them, the functions know by rank.
type draft struct {
	plan.Plan
	step graph.Step
	runs map[string]func(rank int) run
}

func newDraft(ranks, window int) *draft {
	d := &draft{runs: map[string]func(int) run{}}
	d.Name, d.Window = "draft", window
	d.Ranks = make([][]plan.Task, ranks)
	all := make([]int, ranks)
	for r := range all {
		all[r] = r
	}
	d.Groups = [][]int{all}
	return d
}

// value adds a float64 value (int64 for keys); state is the parameter it is of.
func (d *draft) value(name string, c plan.Class, state int, shape ...int) plan.Ref {
	t := tensor.F64
	if c == plan.Key {
		t = tensor.I64
	}
	if c == plan.Param {
		state = len(d.Values)
	}
	d.Values = append(d.Values, plan.Value{Name: name, DType: t, Shape: shape, Class: c, State: state})
	return plan.Ref{Value: len(d.Values) - 1}
}

// seg adds a segment, which updates a parameter or none.
func (d *draft) seg(name string, update int, in, out []plan.Ref, f func(rank int) run) int {
	s := graph.Segment{Name: name}
	node := func(r plan.Ref) *graph.Node {
		return &graph.Node{Name: d.Values[r.Value].Name, DType: d.Values[r.Value].DType}
	}
	for _, r := range in {
		s.In = append(s.In, node(r))
	}
	for _, r := range out {
		s.Out = append(s.Out, node(r))
	}
	d.step.Segments = append(d.step.Segments, s)
	d.Segs = append(d.Segs, plan.Seg{Name: name, Update: update})
	d.runs[name] = f
	return len(d.Segs) - 1
}

// compute is a task that runs a new segment on the device.
func (d *draft) compute(name string, in, out []plan.Ref, f func(rank int) run) plan.Task {
	return plan.Task{
		Kind: plan.Compute, Name: name, Seg: d.seg(name, plan.NoState, in, out, f), In: in, Out: out,
		Lane: plan.Lane{Kind: plan.Device},
	}
}

// add gives a task to some ranks, after the named tasks of their lists.
func (d *draft) add(ranks []int, t plan.Task, after ...string) {
	for _, r := range ranks {
		c := t
		c.After = nil
		for _, name := range after {
			i := d.find(r, name)
			c.After = append(c.After, plan.Dep{Task: i})
		}
		d.Ranks[r] = append(d.Ranks[r], c)
	}
}

// find is the index of a task in a rank's list.
func (d *draft) find(r int, name string) int {
	for i, t := range d.Ranks[r] {
		if t.Name == name {
			return i
		}
	}
	panic("no task " + name)
}

// backend compiles the segments of a draft for a rank.
type backend struct {
	d    *draft
	rank int
}

func (backend) Name() string { return "draft" }

func (b backend) Compile(s *graph.Segment) (compute.Program, error) {
	f := b.d.runs[s.Name]
	if f == nil {
		return nil, errors.New("no such segment")
	}
	return f(b.rank), nil
}

// feedFunc implements exec.Feeder.
type feedFunc func(step int64, out []*tensor.Tensor) error

func (f feedFunc) Feed(step int64, out []*tensor.Tensor) error { return f(step, out) }

// config is a rank of a draft over a network, which may be nil.
func (d *draft) config(rank int, w *mem.Network) exec.Config {
	cfg := exec.Config{Rank: rank, Plan: &d.Plan, Step: &d.step, Backend: backend{d, rank}, State: map[string]*tensor.Tensor{}}
	if w != nil {
		cfg.Endpoint = w.Endpoint(rank)
	}
	return cfg
}

// runAll makes an executor for each config, runs steps [0, steps) on all at the
// same time, closes everything and returns the executors and their errors.
func runAll(t *testing.T, w *mem.Network, steps int64, cfgs ...exec.Config) ([]*exec.Exec, []error) {
	t.Helper()
	errs := make([]error, len(cfgs))
	execs := make([]*exec.Exec, len(cfgs))
	done := make(chan bool)
	for i, cfg := range cfgs {
		e, err := exec.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		execs[i] = e
		go func() {
			if errs[i] = e.Run(t.Context(), 0, steps); errs[i] != nil && cfg.Endpoint != nil {
				_ = cfg.Endpoint.Close() // as whoever drives a rank does, so that its peers learn of it
			}
			done <- true
		}()
	}
	for range cfgs {
		<-done
	}
	for _, e := range execs {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	closeAll(w)
	return execs, errs
}

func closeAll(w *mem.Network) {
	if w == nil {
		return
	}
	for _, e := range w.Endpoints() {
		_ = e.Close()
	}
}

func must(t *testing.T, errs []error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", i, err)
		}
	}
}

// learn is data-parallel training of one parameter w of two elements by
// all-reduce: at step t rank r has the gradient (t+1, r+1) with weight r+1 and
// loss 10t+r, and the update subtracts gradient / weight.
type learn struct {
	*draft
	w                                            plan.Ref
	forward                                      func(rank int, step int64) error // called in forward, may be nil
	spoil                                        func(rank int, step int64, grad, loss []float64)
	grad, weight, loss, sum, totalWeight, totalL plan.Ref
}

func newLearn(ranks, window int) *learn {
	l := &learn{draft: newDraft(ranks, window)}
	all := l.Groups[0]
	l.w = l.value("w", plan.Param, 0, 2)
	x := l.value("x", plan.Act, plan.NoState, tensor.Dynamic)
	l.grad = l.value("dw", plan.Grad, l.w.Value, 2)
	l.sum = l.value("dw.sum", plan.Grad, l.w.Value, 2)
	l.weight, l.loss = l.value("weight", plan.Scalar, plan.NoState), l.value("loss", plan.Scalar, plan.NoState)
	l.totalWeight, l.totalL = l.value("total", plan.Scalar, plan.NoState), l.value("totalloss", plan.Scalar, plan.NoState)
	group := plan.Lane{Kind: plan.Group}

	l.add(all, plan.Task{Kind: plan.Feed, Name: "feed", Out: []plan.Ref{x}, Lane: plan.Lane{Kind: plan.Reader}})
	l.add(all, l.compute("forward", []plan.Ref{l.w, x}, []plan.Ref{l.grad, l.weight, l.loss}, l.runForward), "feed")
	l.add(all, plan.Task{
		Kind: plan.Collective, Op: plan.AllReduce, Name: "sum dw", Tag: 1, Lane: group,
		In: []plan.Ref{l.grad}, Out: []plan.Ref{l.sum},
	}, "forward")
	l.add(all, plan.Task{
		Kind: plan.Commit, Name: "commit", Tag: 2, Lane: group,
		In: []plan.Ref{l.weight, l.loss, l.grad}, Out: []plan.Ref{l.totalWeight, l.totalL},
	}, "sum dw")
	in, out := []plan.Ref{l.w, l.sum, l.totalWeight}, []plan.Ref{l.w}
	update := l.compute("update w", in, out, func(int) run { return updateW })
	l.Segs[update.Seg].Update = l.w.Value
	l.add(all, update, "commit")
	return l
}

func (l *learn) runForward(rank int) run {
	return func(step int64, in, out []*tensor.Tensor) error {
		if n := in[1].Elems(); n != int(step%3) {
			return fmt.Errorf("step %d was fed %d elements", step, n)
		}
		if l.forward != nil {
			if err := l.forward(rank, step); err != nil {
				return err
			}
		}
		out[0].F64()[0], out[0].F64()[1] = float64(step+1), float64(rank+1)
		out[1].SetScalar(float64(rank + 1))
		out[2].SetScalar(float64(10*step) + float64(rank))
		if l.spoil != nil {
			l.spoil(rank, step, out[0].F64(), out[2].F64())
		}
		return nil
	}
}

func updateW(_ int64, in, out []*tensor.Tensor) error {
	if total := in[2].Scalar(); total != 0 {
		for i, g := range in[1].F64() {
			out[0].F64()[i] -= g / total
		}
	}
	return nil
}

// config completes the draft's with a feeder of step mod 3 elements.
func (l *learn) config(rank int, w *mem.Network) exec.Config {
	cfg := l.draft.config(rank, w)
	cfg.Feeder = feedFunc(func(step int64, out []*tensor.Tensor) error {
		out[0].Resize(int(step % 3))
		return nil
	})
	return cfg
}

// want is w after the steps, but for those skipped.
func (l *learn) want(steps int64, skip func(int64) bool) []float64 {
	n := float64(len(l.Ranks))
	total := n * (n + 1) / 2
	w := make([]float64, 2)
	for s := range steps {
		if skip == nil || !skip(s) {
			w[0] -= n * float64(s+1) / total
			w[1] -= total / total
		}
	}
	return w
}

// uneven gives each pair of ranks a delay of its own.
func uneven(from, to int) mem.Link {
	return mem.Link{Delay: time.Duration(1+(from*7+to*3)%5) * time.Millisecond}
}

// taskError unwraps a *exec.TaskError and a *transport.PeerError, if there is one.
func taskError(t *testing.T, err error) (*exec.TaskError, *transport.PeerError) {
	t.Helper()
	var te *exec.TaskError
	if !errors.As(err, &te) {
		t.Fatalf("error %v names no task", err)
	}
	var pe *transport.PeerError
	errors.As(err, &pe)
	return te, pe
}
