package exec_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/tensor"
)

// crowded is a backend that counts what an executor says of tasks that wait.
type crowded struct {
	backend
	mu           sync.Mutex
	waiting      int
	woken, least int
}

func (c *crowded) Waiting(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += more
	c.woken += max(0, more)
	c.least = min(c.least, c.waiting)
}

// TestFeedAhead: small batches are fed in order, each once, several steps before they
// are needed but none beyond the Run, so that few steps wake anybody, though each goes
// over three lanes. Where one step is in flight, none is fed ahead.
func TestFeedAhead(t *testing.T) {
	for window, lead := range map[int]int64{1: 0, 2: 8} {
		// One wakes who feeds a step of each Run, and who feeds ahead at every fourth step
		// and at up to four of the last of each Run, when nothing is left to be fed.
		few := 3 + 41/4 + 1 + 3*4
		synctest.Test(t, func(t *testing.T) {
			l := newLearn(1, window)
			cfg := l.config(0, nil)
			back := &crowded{backend: backend{l.draft, 0}}
			cfg.Backend = back
			var fed []int64
			var most, end int64
			feeder := cfg.Feeder
			cfg.Feeder = feedFunc(func(step int64, out []*tensor.Tensor) error {
				if fed = append(fed, step); step >= end {
					t.Errorf("window %d: step %d is fed in a Run that ends before %d", window, step, end)
				}
				return feeder.Feed(step, out)
			})
			l.forward = func(_ int, step int64) error {
				time.Sleep(time.Second)
				synctest.Wait()
				most = max(most, fed[len(fed)-1]-step)
				return nil
			}
			e, err := exec.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			for _, end = range []int64{7, 40, 41} {
				if err := e.Run(t.Context(), int64(len(fed)), end); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took != 41*time.Second {
				t.Errorf("window %d: 41 steps took %v", window, took)
			}
			want := make([]int64, 41)
			for i := range want {
				want[i] = int64(i)
			}
			if !slices.Equal(fed, want) || most < lead {
				t.Errorf("window %d: fed %v, at most %d ahead, want 0 to 40 and %d ahead", window, fed, most, lead)
			}
			if back.waiting != 0 || back.least < 0 || window > 1 && back.woken > few {
				t.Errorf("window %d: %d tasks wait at the end, %d were given away, %d waited at least", window, back.waiting, back.woken, back.least)
			}
		})
	}
}

// TestFeedAheadFails: the error of a batch is that of its step, though it was found
// steps before, and the Feeder is not asked any more.
func TestFeedAheadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLearn(1, 2)
		l.forward = func(int, int64) error { time.Sleep(time.Second); return nil }
		cfg := l.config(0, nil)
		feeder := cfg.Feeder
		bad, last := errors.New("no such row"), int64(0)
		cfg.Feeder = feedFunc(func(step int64, out []*tensor.Tensor) error {
			if last = step; step == 5 {
				return bad
			}
			return feeder.Feed(step, out)
		})
		_, errs := runAll(t, nil, 20, cfg)
		te, _ := taskError(t, errs[0])
		if te.Step != 5 || te.Name != "feed" || !errors.Is(te, bad) || last != 5 {
			t.Errorf("the Feeder was last asked for step %d, and the error is %v", last, errs[0])
		}
	})
}
