package team

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// tally counts what it is asked for, and who is at work.
type tally struct {
	parts []atomic.Int64
	size  int
	at    *[16]atomic.Bool // by worker
	wrong atomic.Int64
	bad   func(i, worker int) // may panic
}

func (c *tally) Part(i, worker int) {
	if worker < 0 || worker >= c.size || !c.at[worker].CompareAndSwap(false, true) {
		c.wrong.Add(1)
		return
	}
	defer c.at[worker].Store(false)
	if c.bad != nil {
		c.bad(i, worker)
	}
	c.parts[i].Add(1)
}

// spread spreads n parts and sees that each is computed once, by a worker that
// does nothing else.
func spread(t *testing.T, team *Team, n int, at *[16]atomic.Bool) {
	t.Helper()
	c := &tally{parts: make([]atomic.Int64, n), size: team.Size(), at: at}
	team.Spread(n, c)
	for i := range c.parts {
		if got := c.parts[i].Load(); got != 1 {
			t.Errorf("part %d of %d was computed %d times", i, n, got)
		}
	}
	if c.wrong.Load() > 0 {
		t.Errorf("%d parts got a worker that there is not, or that was busy", c.wrong.Load())
	}
}

// hired reports whether goroutines wait for work.
func hired(team *Team) bool {
	team.busy.Lock()
	defer team.busy.Unlock()
	return team.hired
}

// TestSpread has teams of any size compute any number of parts, none among them.
func TestSpread(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, size := range []int{-1, 0, 1, 2, 8} {
		team, at := New(size), &[16]atomic.Bool{}
		if got, want := team.Size(), max(1, size); got != want {
			t.Errorf("a team of %d has size %d, want %d", size, got, want)
		}
		for range 3 {
			team.Hold()
			for _, n := range []int{0, 1, 2, 100} {
				spread(t, team, n, at)
			}
			if got, want := hired(team), size > 1; got != want {
				t.Errorf("a team of %d that is held has workers: %t", size, got)
			}
			team.Release()
			if hired(team) {
				t.Errorf("a team of %d that nobody holds has workers", size)
			}
		}
	}
}

// meeting is parts that all wait for each other, so that each has a goroutine to
// itself.
type meeting struct {
	all   sync.WaitGroup
	taken []atomic.Int64 // by worker
}

func (m *meeting) Part(_, worker int) {
	m.taken[worker].Add(1)
	m.all.Done()
	m.all.Wait()
}

// TestWorkersAreDistinct proves that goroutines that work at the same time are
// different workers, with scratch memory of their own.
func TestWorkersAreDistinct(t *testing.T) {
	defer goleak.VerifyNone(t)
	team := New(4)
	for range 3 {
		team.Hold()
		m := &meeting{taken: make([]atomic.Int64, 4)}
		m.all.Add(4)
		team.Spread(4, m)
		for w := range m.taken {
			if got := m.taken[w].Load(); got != 1 {
				t.Errorf("worker %d had %d parts, want 1", w, got)
			}
		}
		team.Release()
	}
}

// TestHoldsInAnyOrder proves that workers stay exactly as long as anybody holds
// the team, in whatever order holds end, and that they come back after.
func TestHoldsInAnyOrder(t *testing.T) {
	defer goleak.VerifyNone(t)
	team, at := New(3), &[16]atomic.Bool{}
	for range 3 {
		team.Hold() // an executor
		for range 2 {
			team.Hold() // a program
			spread(t, team, 7, at)
			team.Hold() // another executor
			team.Release()
			if !hired(team) {
				t.Error("workers left though somebody holds the team")
			}
			team.Release()
			spread(t, team, 4, at)
		}
		if !hired(team) {
			t.Error("workers left though somebody holds the team")
		}
		team.Release()
		if hired(team) {
			t.Error("workers stay though nobody holds the team")
		}
	}
	team.Hold()
	team.Release() // with nobody hired
	spread(t, team, 1, at)
	if hired(team) {
		t.Error("one part hired workers")
	}
}

// TestSpreadsTakeTurns has several goroutines use one team at the same time,
// some of which hold it for longer.
func TestSpreadsTakeTurns(t *testing.T) {
	defer goleak.VerifyNone(t)
	team, at := New(4), &[16]atomic.Bool{}
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for i := range 12 {
				team.Hold()
				for j := range 1 + k%3 {
					spread(t, team, (i+j)%9, at)
				}
				team.Release()
			}
		})
	}
	all.Wait()
	if hired(team) {
		t.Error("workers stay though nobody holds the team")
	}
}

// TestEnter: workers take part in a spread while it goes on, and never between two.
func TestEnter(t *testing.T) {
	team := New(3)
	if team.enter() {
		t.Error("a worker came before the first spread")
	}
	inside := tallyFunc(func() {
		if !team.enter() {
			t.Error("a worker was refused during a spread")
			return
		}
		team.inside.Add(-1)
	})
	team.Hold()
	defer team.Release()
	team.Spread(2, inside)
	if team.enter() {
		t.Error("a worker came after a spread")
	}
}

type tallyFunc func()

func (f tallyFunc) Part(int, int) { f() }

// TestWaiting: as many workers make room as there are goroutines that wait, if all
// workers could have all processors, and spread as before.
func TestWaiting(t *testing.T) {
	defer goleak.VerifyNone(t)
	team, at := New(4), &[16]atomic.Bool{}
	team.Hold()
	team.Waiting(3)
	team.Waiting(-1)
	for _, tight := range []bool{false, true} {
		team.tight = tight
		for rank := 1; rank < 4; rank++ {
			if got, want := team.gives(rank), tight && rank <= 2; got != want {
				t.Errorf("tight %t, 2 waiting: worker %d gives way: %t", tight, rank, got)
			}
		}
	}
	for _, n := range []int{9, 1, 100, 2} {
		spread(t, team, n, at)
	}
	team.Release()
}

var errPart = errors.New("part 5 is broken")

// TestPanic proves that a panic of a part reaches who asked for it, whoever
// computed the part, when nobody is at work any more, and that the team goes on.
func TestPanic(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, size := range []int{1, 3} {
		for _, byCaller := range []bool{true, false} {
			if size == 1 && !byCaller {
				continue
			}
			team, at := New(size), &[16]atomic.Bool{}
			team.Hold()
			var broken sync.WaitGroup
			broken.Add(1)
			var once sync.Once
			c := &tally{parts: make([]atomic.Int64, 2000), size: size, at: at, bad: func(_, worker int) {
				if (worker == 0) == byCaller {
					once.Do(func() {
						broken.Done()
						panic(errPart)
					})
				}
				broken.Wait() // so that it happens
			}}
			got := panicOf(func() { team.Spread(2000, c) })
			var p *PanicError
			switch err, _ := got.(error); {
			case byCaller && !errors.Is(err, errPart):
				t.Errorf("size %d: the panic is %v", size, got)
			case !byCaller && (!errors.As(err, &p) || fmt.Sprint(p.Value) != errPart.Error() || !strings.Contains(err.Error(), "TestPanic")):
				t.Errorf("size %d: the panic of another goroutine is %v", size, got)
			}
			for w := range at {
				if at[w].Load() {
					t.Errorf("worker %d is still at work", w)
				}
			}
			done := int64(0)
			for i := range c.parts {
				done += c.parts[i].Load()
			}
			if most := int64(len(c.parts) - 1); done > most {
				t.Errorf("%d parts of %d are done, one of which panicked", done, most+1)
			}
			for range 5 {
				spread(t, team, 9, at)
			}
			team.Release()
			if hired(team) {
				t.Error("workers stay after a panic")
			}
		}
	}
}

func panicOf(f func()) (r any) {
	defer func() { r = recover() }()
	f()
	return nil
}
