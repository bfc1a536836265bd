package exec_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/trace"
	"github.com/gangline/gangline/transport/mem"
)

// All ranks end with the parameter that a loop by hand gives, for one rank and
// several, windows of one and more, over uneven links; results come in step
// order and are the same on all ranks.
func TestLearn(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		for window := 1; window <= 3; window++ {
			synctest.Test(t, func(t *testing.T) { checkLearn(t, ranks, window) })
		}
	}
}

func checkLearn(t *testing.T, ranks, window int) {
	const steps = 7
	l := newLearn(ranks, window)
	w := mem.NewNetwork(ranks, mem.Options{Link: uneven})
	if ranks == 1 {
		closeAll(w)
		w = nil
	}
	var cfgs []exec.Config
	for r := range ranks {
		cfg := l.config(r, w)
		var next int64
		cfg.OnStep = func(step int64, got exec.Result) {
			n := float64(ranks)
			want := exec.Result{Weight: n * (n + 1) / 2, Loss: n*10*float64(step) + n*(n-1)/2}
			if d := cmp.Diff(want, got); d != "" || step != next {
				t.Errorf("rank %d: step %d where %d is due: %s", r, step, next, d)
			}
			next++
		}
		cfg.Trace = trace.NewRecorder(1000)
		cfgs = append(cfgs, cfg)
	}
	execs, errs := runAll(t, w, steps, cfgs...)
	must(t, errs)
	want := l.want(steps, nil)
	for r, e := range execs {
		if w != nil {
			// An all-reduce a step opens with a frame each way, which is no payload.
			st, bytes := w.Endpoint(r).Stats(), int64(2*128*steps)
			for _, s := range cfgs[r].Trace.Spans() {
				bytes += s.Bytes
			}
			if bytes != st.BytesSent+st.BytesReceived {
				t.Errorf("rank %d: spans and openings have %d bytes, the endpoint %d + %d", r, bytes, st.BytesSent, st.BytesReceived)
			}
		}
		got := cfgs[r].State["w"].F64()
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Errorf("%d ranks, window %d: rank %d has w = %v, want %v", ranks, window, r, got, want)
			}
		}
		if e.Value("w") != cfgs[r].State["w"] || e.Value("total").Scalar() == 0 || e.Value("nothing") != nil {
			t.Errorf("rank %d: Value does not find its values", r)
		}
		account := exec.Account{State: "w", Pushed: steps, Applied: steps}
		if d := cmp.Diff([]exec.Account{account}, e.Accounts()); d != "" {
			t.Error(d)
		}
	}
}

// A value that is not finite on one rank skips the step on all, names the
// rank, and its gradient is accounted for as dropped. Where the sum is checked
// in place of the gradient, so that every rank finds fault with it, the loss
// tells whose it was.
func TestSkipIsAgreed(t *testing.T) {
	for _, c := range []struct {
		bad    float64
		inLoss bool
	}{{math.NaN(), false}, {math.Inf(1), false}, {math.Inf(-1), false}, {math.NaN(), true}} {
		synctest.Test(t, func(t *testing.T) {
			const ranks, steps, culprit, at = 3, 5, 1, 2
			l := newLearn(ranks, 2)
			l.spoil = func(rank int, step int64, grad, loss []float64) {
				if rank == culprit && step == at {
					grad[1] = c.bad
					if c.inLoss {
						loss[0] = c.bad
					}
				}
			}
			if c.inLoss {
				for r := range ranks {
					l.Ranks[r][3].In[2] = l.sum
				}
			}
			w := mem.NewNetwork(ranks)
			var cfgs []exec.Config
			for r := range ranks {
				cfg := l.config(r, w)
				cfg.OnStep = func(step int64, got exec.Result) {
					if got.Skipped != (step == at) || got.Skipped && (got.Weight != 0 || !slices.Equal(got.Faulty, []int{culprit}) || math.IsNaN(got.Loss)) {
						t.Errorf("rank %d step %d: %+v", r, step, got)
					}
				}
				cfgs = append(cfgs, cfg)
			}
			execs, errs := runAll(t, w, steps, cfgs...)
			must(t, errs)
			want := l.want(steps, func(s int64) bool { return s == at })
			for r := range ranks {
				got := cfgs[r].State["w"].F64()
				if math.Abs(got[0]-want[0]) > 1e-12 || math.Abs(got[1]-want[1]) > 1e-12 {
					t.Errorf("rank %d has w = %v, want %v", r, got, want)
				}
				account := exec.Account{State: "w", Pushed: steps, Applied: steps - 1, Dropped: 1}
				if d := cmp.Diff([]exec.Account{account}, execs[r].Accounts()); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// With a window of two, reading the next batch hides behind computing this one:
// n steps of a second each take n+1 seconds, not 2n.
func TestFeedRunsAhead(t *testing.T) {
	for window, want := range map[int]time.Duration{1: 10 * time.Second, 2: 6 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := newLearn(1, window)
			l.forward = func(int, int64) error { time.Sleep(time.Second); return nil }
			cfg := l.config(0, nil)
			feeder := cfg.Feeder
			cfg.Feeder = feedFunc(func(step int64, out []*tensor.Tensor) error {
				time.Sleep(time.Second)
				return feeder.Feed(step, out)
			})
			cfg.Trace = trace.NewRecorder(100)
			start := time.Now()
			execs, errs := runAll(t, nil, 5, cfg)
			must(t, errs)
			if took := time.Since(start); took != want {
				t.Errorf("window %d: 5 steps took %v, want %v", window, took, want)
			}
			got, steps := execs[0].Times()
			times := trace.Breakdown{Compute: 5 * time.Second, Input: 5 * time.Second, Wait: want - 5*time.Second}
			if d := cmp.Diff(times, got); d != "" || steps != 5 {
				t.Errorf("window %d: %d steps: %s", window, steps, d)
			}
			sum := trace.Sum(cfg.Trace.Spans())
			if d := cmp.Diff([]trace.RankBreakdown{{Rank: 0, Breakdown: got}}, sum); d != "" {
				t.Errorf("spans say otherwise than Times: %s", d)
			}
		})
	}
}

// A dependency on an earlier step holds back a task that nothing else does.
func TestLag(t *testing.T) {
	for lag, want := range map[int]string{0: "a0 b0 a1 b1 a2 b2", 1: "a0 a1 b0 a2 b1 b2"} {
		synctest.Test(t, func(t *testing.T) {
			d := newDraft(1, 3)
			var mu sync.Mutex
			var order []string
			log := func(name string, took time.Duration) func(int) run {
				return func(int) run {
					return func(step int64, _, _ []*tensor.Tensor) error {
						time.Sleep(took)
						mu.Lock()
						defer mu.Unlock()
						order = append(order, fmt.Sprint(name, step))
						return nil
					}
				}
			}
			a, b := d.compute("a", nil, nil, log("a", time.Second)), d.compute("b", nil, nil, log("b", 1500*time.Millisecond))
			b.Lane.ID = 1
			d.add([]int{0}, a)
			d.add([]int{0}, b, "a")
			// a of step t waits for b of step t-1-lag: one at a time, or two.
			d.Ranks[0][0].After = []plan.Dep{{Task: 1, Lag: 1 + lag}}
			_, errs := runAll(t, nil, 3, d.config(0, nil))
			must(t, errs)
			if got := strings.Join(order, " "); got != want {
				t.Errorf("lag %d: %s, want %s", lag, got, want)
			}
		})
	}
}

// The error of a task names rank, step and task, ends the run on this rank and
// unwinds what waits for others; the executor cannot run again.
func TestErrorNamesTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLearn(2, 2)
		broken := errors.New("label 12 outside [0, 10)")
		l.forward = func(rank int, step int64) error {
			if rank == 1 && step == 3 {
				return broken
			}
			return nil
		}
		w := mem.NewNetwork(2)
		cfgs := []exec.Config{l.config(0, w), l.config(1, w)}
		for i := range cfgs {
			cfgs[i].Deadline = time.Minute
		}
		start := time.Now()
		e, err := exec.New(cfgs[1])
		if err != nil {
			t.Fatal(err)
		}
		other := make(chan error)
		go func() {
			_, errs := runAll(t, nil, 9, cfgs[0])
			other <- errs[0]
		}()
		err = e.Run(t.Context(), 0, 9)
		te, _ := taskError(t, err)
		if !errors.Is(err, broken) || te.Rank != 1 || te.Step != 3 || te.Name != "forward" || te.Kind != plan.Compute || te.Task != 1 {
			t.Errorf("%v (%+v)", err, te)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("the rank took %v to unwind", took)
		}
		if again := e.Run(t.Context(), 0, 1); !errors.Is(again, exec.ErrFailed) || !errors.Is(again, broken) {
			t.Errorf("second run: %v", again)
		}
		if a := e.Accounts()[0]; a.Pushed != 3 || a.Pushed != a.Applied+a.Dropped+a.Pending {
			t.Errorf("account %+v", a)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		w.Kill(1)
		te, pe := taskError(t, <-other)
		if pe == nil || pe.Peer != 1 || !slices.Equal(te.Peers, []int{1}) {
			t.Errorf("the other rank: %v", te)
		}
		closeAll(w)
	})
}

// Run can be called again, from where it ended, and executors of two plans
// share their state.
func TestRunsAndSharedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLearn(1, 2)
		cfg := l.config(0, nil)
		a, err := exec.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		cfg.State = map[string]*tensor.Tensor{"w": cfg.State["w"]}
		b, err := exec.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []struct {
			e           *exec.Exec
			first, last int64
		}{{a, 0, 3}, {b, 3, 3}, {b, 3, 4}, {a, 4, 9}} {
			if err := r.e.Run(t.Context(), r.first, r.last); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(l.want(9, nil), cfg.State["w"].F64()); d != "" {
			t.Error(d)
		}
		if err := a.Run(t.Context(), 5, 4); err == nil {
			t.Error("a run that ends before it starts")
		}
		for range 2 {
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				t.Error(err)
			}
		}
		if err := a.Run(t.Context(), 0, 1); !errors.Is(err, exec.ErrClosed) {
			t.Errorf("run after Close: %v", err)
		}
	})
}

// OnOutput sees each step's values in order before they are reused, however
// slow it is; its error ends the run.
func TestOnOutput(t *testing.T) {
	for window := 1; window <= 3; window++ {
		synctest.Test(t, func(t *testing.T) {
			d := newDraft(1, window)
			x, y := d.value("x", plan.Act, plan.NoState, 1), d.value("y", plan.Act, plan.NoState, 1)
			d.add([]int{0}, plan.Task{Kind: plan.Feed, Name: "feed", Out: []plan.Ref{x}, Lane: plan.Lane{Kind: plan.Reader}})
			d.add([]int{0}, d.compute("double", []plan.Ref{x}, []plan.Ref{y}, func(int) run {
				return func(_ int64, in, out []*tensor.Tensor) error {
					out[0].SetScalar(2 * in[0].Scalar())
					return nil
				}
			}), "feed")
			cfg := d.config(0, nil)
			cfg.Feeder = feedFunc(func(step int64, out []*tensor.Tensor) error {
				out[0].SetScalar(float64(step))
				return nil
			})
			full := errors.New("disk full")
			var next int64
			cfg.OnOutput = func(step int64, get func(string) *tensor.Tensor) error {
				time.Sleep(time.Second)
				if y := get("y").Scalar(); step != next || y != float64(2*step) || get("z") != nil {
					t.Errorf("step %d where %d is due: y = %v", step, next, y)
				}
				if next++; next == 6 {
					return full
				}
				return nil
			}
			_, errs := runAll(t, nil, 9, cfg)
			if !errors.Is(errs[0], full) || next != 6 {
				t.Errorf("%v after %d steps", errs[0], next)
			}
		})
	}
}

// Cancelling the context, or closing the executor, ends a run that waits.
func TestCancel(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLearn(2, 2)
			w := mem.NewNetwork(2)
			e, err := exec.New(l.config(0, w))
			if err != nil {
				t.Fatal(err)
			}
			enough := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error)
			go func() { done <- e.Run(ctx, 0, 5) }()
			synctest.Wait()
			want := enough
			if closes {
				want = exec.ErrClosed
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
			cancel(enough)
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("close=%v: %v", closes, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			closeAll(w)
		})
	}
}
