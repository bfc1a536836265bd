package exec

import (
	"runtime"
	"testing"
	"time"

	"github.com/gangline/gangline/plan"
)

// Goroutines linger where nobody else is waited for and a processor is to spare.
func TestMayLinger(t *testing.T) {
	commit := plan.Task{Kind: plan.Commit, Group: 0}
	for name, c := range map[string]struct {
		group []int
		tasks []plan.Task
		want  bool
	}{
		"alone":      {[]int{0}, []plan.Task{{Kind: plan.Feed}, {Kind: plan.Compute}, commit}, true},
		"two":        {[]int{0, 1}, []plan.Task{{Kind: plan.Compute}, commit}, false},
		"collective": {[]int{0, 1}, []plan.Task{{Kind: plan.Collective}}, false},
		"server":     {[]int{0}, []plan.Task{{Kind: plan.Pull}}, false},
		"peer":       {[]int{0}, []plan.Task{{Kind: plan.Send}}, false},
	} {
		p := &plan.Plan{Ranks: [][]plan.Task{c.tasks}, Groups: [][]int{c.group}}
		for _, cores := range []int{1, 2} {
			before := runtime.GOMAXPROCS(cores)
			got := mayLinger(p, 0)
			runtime.GOMAXPROCS(before)
			if want := c.want && cores > 1; got != want {
				t.Errorf("%s, %d cores: %t", name, cores, got)
			}
		}
	}
}

// Lingering takes work that is there, and ends without: by the clock, by count where
// the clock stands still, and when the executor closes.
func TestLinger(t *testing.T) {
	for name, now := range map[string]func() time.Duration{
		"clock": func() time.Duration { return time.Duration(time.Now().UnixNano()) }, "still": func() time.Duration { return 0 },
	} {
		e := &Exec{wake: make(chan work, 1), now: now}
		if _, more := e.linger(); more {
			t.Errorf("%s: work out of nothing", name)
		}
		e.wake <- work{Ready: plan.Ready{Task: 7}}
		if w, more := e.linger(); !more || w.Task != 7 {
			t.Errorf("%s: got %v %t", name, w, more)
		}
		close(e.wake)
		if _, more := e.linger(); more {
			t.Errorf("%s: work after the end", name)
		}
	}
}
