package exec_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// A rank that never comes is named, within the deadline and a quarter, by what
// waits for it: a collective, a commit, a receive and a send.
func TestDeadlineNamesTheMissingRank(t *testing.T) {
	const deadline = 8 * time.Second
	for kind, task := range map[string]func(*draft) plan.Task{
		"collective": func(d *draft) plan.Task {
			g := d.value("g", plan.Grad, plan.NoState, 4000)
			return plan.Task{Kind: plan.Collective, Op: plan.AllReduce, In: []plan.Ref{g}, Out: []plan.Ref{g}, Lane: plan.Lane{Kind: plan.Group}}
		},
		"commit": func(d *draft) plan.Task {
			a, b := d.value("a", plan.Scalar, plan.NoState), d.value("b", plan.Scalar, plan.NoState)
			return plan.Task{Kind: plan.Commit, In: []plan.Ref{a, b}, Out: []plan.Ref{a, b}, Lane: plan.Lane{Kind: plan.Group}}
		},
		"recv": func(d *draft) plan.Task {
			return plan.Task{Kind: plan.Recv, Peer: 1, Out: []plan.Ref{d.value("v", plan.Act, plan.NoState, 4)}, Lane: plan.LinkLane(1, true)}
		},
		"send": func(d *draft) plan.Task {
			return plan.Task{Kind: plan.Send, Peer: 1, In: []plan.Ref{d.value("v", plan.Act, plan.NoState, 4)}, Lane: plan.LinkLane(1, false)}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDraft(2, 1)
			it := task(d)
			it.Name = "the one"
			d.add([]int{0}, it)
			w := mem.NewNetwork(2)
			w.Pause(1)
			cfg := d.config(0, w)
			cfg.Deadline = deadline
			start := time.Now()
			_, errs := runAll(t, w, 3, cfg)
			te, _ := taskError(t, errs[0])
			took := time.Since(start)
			if !errors.Is(te, exec.ErrDeadline) || te.Name != "the one" || te.Kind.String() != kind || !slices.Equal(te.Peers, []int{1}) {
				t.Errorf("%s: %v", kind, te)
			}
			if !te.Began.Equal(start) {
				t.Errorf("%s: began %v after the run", kind, te.Began.Sub(start))
			}
			if took < deadline || took > deadline*5/4 || te.Waited < deadline || te.Silent < deadline {
				t.Errorf("%s: after %v: waited %v, silent %v", kind, took, te.Waited, te.Silent)
			}
			if !strings.Contains(te.Error(), "rank 0: step 0: task 0 "+kind+` "the one"`) || !strings.Contains(te.Error(), "for rank 1, silent for 8") {
				t.Errorf("%s: %v", kind, te)
			}
		})
	}
}

// A task of this rank alone that takes too long is named too, and one that
// takes just less than the deadline is left alone.
func TestDeadlineOfCompute(t *testing.T) {
	for took, late := range map[time.Duration]bool{3 * time.Second: false, 9 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLearn(1, 2)
			l.forward = func(int, int64) error { time.Sleep(took); return nil }
			cfg := l.config(0, nil)
			cfg.Deadline = 4 * time.Second
			_, errs := runAll(t, nil, 4, cfg)
			if !late {
				must(t, errs)
				return
			}
			te, _ := taskError(t, errs[0])
			if !errors.Is(te, exec.ErrDeadline) || te.Name != "forward" || te.Peers != nil {
				t.Errorf("%v", te)
			}
		})
	}
}

// When a rank dies in mid-run, every other rank ends long before the deadline:
// those that waited for it name it, those that waited for them name them.
func TestKilledRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ranks, victim = 3, 2
		l := newLearn(ranks, 2)
		w := mem.NewNetwork(ranks, mem.Options{Link: uneven})
		l.forward = func(rank int, step int64) error {
			if rank == victim && step == 4 {
				w.Kill(victim)
			}
			return nil
		}
		var cfgs []exec.Config
		for r := range ranks {
			cfg := l.config(r, w)
			cfg.Deadline = time.Minute
			cfgs = append(cfgs, cfg)
		}
		start := time.Now()
		_, errs := runAll(t, w, 9, cfgs...)
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		named := 0
		for r, err := range errs {
			te, pe := taskError(t, err)
			if te.Rank != r || pe == nil || r == victim && !errors.Is(err, transport.ErrClosed) {
				t.Errorf("rank %d: %v", r, err)
			}
			lost := pe.Peer == victim && errors.Is(err, transport.ErrPeerLost)
			if r != victim && (!lost && !errors.Is(err, transport.ErrPeerClosed) || te.Step < 3) {
				t.Errorf("rank %d: %v", r, err)
			}
			if r != victim && lost {
				named++
			}
		}
		if named == 0 {
			t.Error("nobody named the victim")
		}
	})
}

// An error beside a deadline does not hide it: the first one is reported, and
// the task that ran late completes it.
func TestFirstErrorWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDraft(2, 1)
		d.add([]int{0}, plan.Task{Kind: plan.Recv, Name: "wait", Peer: 1, Out: []plan.Ref{d.value("v", plan.Act, plan.NoState, 4)}, Lane: plan.LinkLane(1, true)})
		second := errors.New("second")
		d.add([]int{0}, d.compute("slow", nil, nil, func(int) run {
			return func(int64, []*tensor.Tensor, []*tensor.Tensor) error {
				time.Sleep(5 * time.Second)
				return second
			}
		}))
		w := mem.NewNetwork(2)
		cfg := d.config(0, w)
		cfg.Deadline = 4 * time.Second
		_, errs := runAll(t, w, 1, cfg)
		te, pe := taskError(t, errs[0])
		if te.Name != "wait" || errors.Is(te, second) || !errors.Is(te, exec.ErrDeadline) || pe == nil || pe.Peer != 1 {
			t.Errorf("%v", te)
		}
	})
}
