package plan

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawTasks draws a list with lanes and dependencies only.
func drawTasks(t *rapid.T) []Task {
	tasks := make([]Task, rapid.IntRange(0, 10).Draw(t, "tasks"))
	for i := range tasks {
		tasks[i].Lane = Lane{Kind: Store, ID: rapid.IntRange(0, 3).Draw(t, "lane")}
		for range rapid.IntRange(0, 3).Draw(t, "deps") {
			d := Dep{Lag: rapid.IntRange(0, 3).Draw(t, "lag")}
			if d.Lag == 0 {
				if i == 0 {
					continue
				}
				d.Task = rapid.IntRange(0, i-1).Draw(t, "earlier")
			} else {
				d.Task = rapid.IntRange(0, len(tasks)-1).Draw(t, "any")
			}
			tasks[i].After = append(tasks[i].After, d)
		}
	}
	return tasks
}

// oracle says what may run by looking at everything, every time.
type oracle struct {
	tasks       []Task
	window      int64
	first, last int64
	given       map[Ready]bool // true once ended
}

func (o *oracle) ended(task int, step int64) bool {
	return step < o.first || o.given[Ready{task, step}]
}

func (o *oracle) may(task int, step int64) bool {
	for i := range o.tasks {
		if !o.ended(i, step-o.window) {
			return false
		}
		if o.tasks[i].Lane == o.tasks[task].Lane {
			if i < task && !o.ended(i, step) || !o.ended(i, step-1) {
				return false
			}
		}
	}
	for _, d := range o.tasks[task].After {
		if !o.ended(d.Task, step-int64(d.Lag)) {
			return false
		}
	}
	return true
}

// next gives out all that may run.
func (o *oracle) next() []Ready {
	var ready []Ready
	for step := o.first; step < o.last; step++ {
		for i := range o.tasks {
			r := Ready{i, step}
			if _, given := o.given[r]; !given && o.may(i, step) {
				ready = append(ready, r)
			}
		}
	}
	for _, r := range ready {
		o.given[r] = false
	}
	return ready
}

func sortReady(r []Ready) []Ready {
	slices.SortFunc(r, func(a, b Ready) int { return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Task, b.Task)) })
	return r
}

// TestCursorAgainstOracle walks random lists in random order, and expects after
// every event exactly the tasks that the rules in the package comment allow:
// so each task once a step, in order, and all of them in the end.
func TestCursorAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := drawTasks(t)
		window := rapid.IntRange(1, 4).Draw(t, "window")
		first := rapid.Int64Range(0, 3).Draw(t, "first")
		last := first + rapid.Int64Range(0, 6).Draw(t, "steps")
		o := &oracle{tasks: tasks, window: int64(window), first: first, last: last, given: make(map[Ready]bool)}
		c := NewCursor(tasks, window, first, last)
		if rapid.Bool().Draw(t, "reset") {
			c.Reset(first+5, first+9)
			c.Start(nil)
			c.Reset(first, last)
		}
		running := c.Start(nil)
		if want := o.next(); !slices.Equal(sortReady(slices.Clone(running)), want) {
			t.Fatalf("start gave %v, want %v", running, want)
		}
		for len(running) > 0 {
			if got, want := sortReady(c.Running(nil)), sortReady(slices.Clone(running)); !slices.Equal(got, want) {
				t.Fatalf("running %v, want %v", got, want)
			}
			i := rapid.IntRange(0, len(running)-1).Draw(t, "ends")
			end := running[i]
			running = slices.Delete(running, i, i+1)
			o.given[end] = true
			got := c.Done(end.Task, end.Step, nil)
			if want := o.next(); !slices.Equal(sortReady(slices.Clone(got)), want) {
				t.Fatalf("after %v came %v, want %v", end, got, want)
			}
			running = append(running, got...)
			if len(running) > 0 == c.Finished() {
				t.Fatalf("finished is %v with %v running", c.Finished(), running)
			}
		}
		if want := len(tasks) * int(last-first); len(o.given) != want || !c.Finished() {
			t.Fatalf("%d tasks ran, want %d; finished: %v", len(o.given), want, c.Finished())
		}
	})
}

// TestCursorMisuse: a shell that loses count must not go on quietly.
func TestCursorMisuse(t *testing.T) {
	lane := Lane{Kind: Device}
	tasks := []Task{{Lane: lane}, {Lane: lane}}
	for name, misuse := range map[string]func(){
		"not given out":   func() { c := NewCursor(tasks, 2, 0, 9); c.Start(nil); c.Done(1, 0, nil) },
		"never started":   func() { NewCursor(tasks, 2, 0, 9).Done(0, 0, nil) },
		"ended twice":     func() { c := NewCursor(tasks, 2, 0, 9); c.Start(nil); c.Done(0, 0, nil); c.Done(0, 0, nil) },
		"reset":           func() { c := NewCursor(tasks, 2, 0, 9); c.Start(nil); c.Reset(0, 9); c.Done(0, 0, nil) },
		"another step":    func() { c := NewCursor(tasks, 2, 0, 9); c.Start(nil); c.Done(0, 1, nil) },
		"no such task":    func() { NewCursor(tasks, 2, 0, 9).Done(2, 0, nil) },
		"no window":       func() { NewCursor(tasks, 0, 0, 9) },
		"waits for later": func() { NewCursor([]Task{{Lane: lane, After: []Dep{{Task: 0}}}}, 1, 0, 9) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			misuse()
		})
	}
}

// wide is a list in the shape of an all-reduce step: n gradients on one lane,
// n reductions on another, a commit and n updates.
func wide(n int) []Task {
	var tasks []Task
	for i := range n {
		tasks = append(tasks, Task{Lane: Lane{Kind: Device}}, Task{Lane: Lane{Kind: Group}, After: []Dep{{Task: 2 * i}}})
	}
	tasks = append(tasks, Task{Lane: Lane{Kind: Group}, After: []Dep{{Task: 2*n - 2}}})
	for range n {
		tasks = append(tasks, Task{Lane: Lane{Kind: Device}, After: []Dep{{Task: 2 * n}}})
	}
	return tasks
}

// walk runs a cursor to its end, first in first out.
func walk(c *Cursor, queue []Ready) (ended int) {
	queue = c.Start(queue[:0])
	for ; len(queue) > 0; ended++ {
		r := queue[0]
		copy(queue, queue[1:])
		queue = c.Done(r.Task, r.Step, queue[:len(queue)-1])
	}
	return ended
}

func TestCursorAllocatesNothing(t *testing.T) {
	tasks := wide(20)
	c := NewCursor(tasks, 2, 0, 10)
	queue := make([]Ready, 0, 64)
	if n := testing.AllocsPerRun(10, func() {
		c.Reset(0, 10)
		walk(c, queue)
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func BenchmarkCursor(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(3*n+1), func(b *testing.B) {
			c := NewCursor(wide(n), 2, 0, 10)
			queue := make([]Ready, 0, 64)
			tasks := 0
			for b.Loop() {
				c.Reset(0, 10)
				tasks += walk(c, queue)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tasks), "ns/task")
		})
	}
}
