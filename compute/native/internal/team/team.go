// Package team spreads the parts of one computation over goroutines that stay
// for the next.
package team

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Team spreads the parts of one kernel over goroutines. It hires them at the
// first spread of a Run and lets them go when the last Run or Hold ends, so that
// a backend at rest holds none. Between two spreads they wait awake for a moment,
// since the next kernel is microseconds away, and then asleep.
//
// What a part computes must not depend on who computes it; then results do not
// depend on the number of goroutines. Spreads of programs that run at the same
// time take turns.
type Team struct {
	size    int          // goroutines, with the caller's
	held    atomic.Int64 // Runs and Holds that go on
	run     func()       // a worker, as a value made once: starting it allocates nothing
	done    sync.WaitGroup
	ranks   atomic.Int64 // the next worker takes it
	workers []sleeper

	busy  sync.Mutex // held during a spread and a dismissal; guards all below
	hired bool
	first int64 // the round before the hiring

	round atomic.Int64 // begun so far; a round is a spread or the dismissal
	leave bool         // what workers read once they saw a round, as all below
	work  Parts
	parts int64
	next  atomic.Int64 // part to be taken
	left  atomic.Int64 // workers that have not finished the round
	broke atomic.Pointer[PanicError]
}

// PanicError is what Spread panics with if a part did on a goroutine other than the
// caller's: what went wrong, and where.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (p *PanicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// sleeper is where one worker waits.
type sleeper struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// Parts is work in parts: Part computes part i; worker, below Size, says whose
// scratch memory to use.
type Parts interface{ Part(i, worker int) }

// awake is how often a waiting goroutine looks before it gives way: about 50 µs,
// several times what it takes to wake a sleeping one, so that it outlasts what
// lies between two segments of a step.
const awake = 1 << 16

// Size is how many goroutines there are, the caller's among them.
func (t *Team) Size() int { return t.size }

// New makes a team of so many goroutines, the caller's among them; at least that.
func New(size int) *Team {
	t := &Team{size: max(1, size)}
	t.workers = make([]sleeper, t.size-1)
	for i := range t.workers {
		t.workers[i].wake = make(chan struct{}, 1)
	}
	t.run = t.worker
	return t
}

// Spread computes parts 0 to n-1 of w and returns when all are done. If a part
// panics, so does Spread, once no goroutine works any more; the team stays usable.
func (t *Team) Spread(n int, w Parts) {
	t.busy.Lock()
	defer t.busy.Unlock()
	if t.size == 1 || n <= 1 {
		for i := range n {
			w.Part(i, 0)
		}
		return
	}
	t.work, t.parts = w, int64(n)
	t.next.Store(0)
	t.left.Store(int64(t.size - 1))
	if !t.hired {
		t.hired, t.leave, t.first = true, false, t.round.Load()
		t.ranks.Store(0)
		t.done.Add(t.size - 1)
		for range t.workers {
			go t.run()
		}
	}
	t.signal()
	defer t.finish()
	t.take(0)
}

// finish waits for the workers.
func (t *Team) finish() {
	for i := 0; t.left.Load() > 0; i++ {
		if i > awake {
			runtime.Gosched()
		}
	}
	t.work = nil
	if p := t.broke.Swap(nil); p != nil {
		panic(p)
	}
}

// signal starts a round and wakes who sleeps.
func (t *Team) signal() {
	t.round.Add(1)
	for i := range t.workers {
		if w := &t.workers[i]; w.asleep.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
}

// Hold keeps the goroutines, once hired, until as many calls of Release.
func (t *Team) Hold() { t.held.Add(1) }

// Release ends the goroutines if nobody holds them any more, and waits for them.
func (t *Team) Release() {
	if t.held.Add(-1) > 0 {
		return
	}
	t.busy.Lock()
	defer t.busy.Unlock()
	if !t.hired || t.held.Load() > 0 {
		return
	}
	t.hired, t.leave = false, true
	t.signal()
	t.done.Wait()
}

func (t *Team) worker() {
	defer t.done.Done()
	rank := int(t.ranks.Add(1))
	for seen := t.first; ; {
		seen = t.await(seen, &t.workers[rank-1])
		if t.leave {
			return
		}
		t.help(rank)
	}
}

// help computes parts as a worker, whose panic is handed to the caller.
func (t *Team) help(rank int) {
	defer func() {
		if r := recover(); r != nil {
			t.broke.CompareAndSwap(nil, &PanicError{r, debug.Stack()})
		}
		t.left.Add(-1)
	}()
	t.take(rank)
}

// await returns the number of the round after the one seen.
func (t *Team) await(seen int64, w *sleeper) int64 {
	for range awake {
		if r := t.round.Load(); r != seen {
			return r
		}
	}
	w.asleep.Store(true)
	// A round may have begun before that line, and its signal have seen nobody
	// asleep; if it did see this worker, there is a token to be taken.
	if t.round.Load() == seen || !w.asleep.CompareAndSwap(true, false) {
		<-w.wake
	}
	return t.round.Load()
}

// take computes parts until none is left.
func (t *Team) take(worker int) {
	for {
		i := t.next.Add(1) - 1
		if i >= t.parts {
			return
		}
		t.work.Part(int(i), worker)
	}
}
