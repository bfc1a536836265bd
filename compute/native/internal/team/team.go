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
	leave atomic.Bool  // what workers read once they saw a round
	// inside is how many workers take part in a spread, or closed: a worker that
	// comes late is not waited for. What is below may be read inside.
	inside atomic.Int64
	work   Parts
	parts  int64
	next   atomic.Int64 // part to be taken
	broke  atomic.Pointer[PanicError]

	// crowd is how many goroutines of others want a processor; tight says that they
	// find none while all workers stay awake.
	crowd atomic.Int64
	tight bool
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

// closed is Team.inside between spreads.
const closed = -1

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
	t.inside.Store(closed)
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
	if !t.hired {
		t.hired, t.first, t.tight = true, t.round.Load(), runtime.GOMAXPROCS(0) <= t.size
		t.leave.Store(false)
		t.ranks.Store(0)
		t.done.Add(t.size - 1)
		for range t.workers {
			go t.run()
		}
	}
	t.inside.Store(0)
	t.signal()
	defer t.finish()
	t.take(0)
}

// finish waits for the workers that came, and lets no more come.
func (t *Team) finish() {
	for i := 0; !t.inside.CompareAndSwap(0, closed); i++ {
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

// gives reports whether a worker gives its processor up while it has nothing to do.
func (t *Team) gives(rank int) bool { return t.tight && t.crowd.Load() >= int64(rank) }

// Waiting says that so many more goroutines want a processor, or fewer. Where the
// workers could have all that there are, as many of them as that sleep instead of
// waiting awake.
func (t *Team) Waiting(more int) { t.crowd.Add(int64(more)) }

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
	t.hired = false
	t.leave.Store(true)
	t.signal()
	t.done.Wait()
}

func (t *Team) worker() {
	defer t.done.Done()
	rank := int(t.ranks.Add(1))
	for seen := t.first; ; {
		seen = t.await(seen, rank)
		if t.leave.Load() {
			return
		}
		if t.enter() {
			t.help(rank)
		}
	}
}

// enter takes part in the spread that goes on, if one does.
func (t *Team) enter() bool {
	for n := t.inside.Load(); n != closed; n = t.inside.Load() {
		if t.inside.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// help computes parts as a worker, whose panic is handed to the caller.
func (t *Team) help(rank int) {
	defer func() {
		if r := recover(); r != nil {
			t.broke.CompareAndSwap(nil, &PanicError{r, debug.Stack()})
		}
		t.inside.Add(-1)
	}()
	t.take(rank)
}

// await returns the number of the round after the one seen, or of a later one.
func (t *Team) await(seen int64, rank int) int64 {
	for range awake {
		if r := t.round.Load(); r != seen {
			return r
		}
		if t.gives(rank) {
			break
		}
	}
	w := &t.workers[rank-1]
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
