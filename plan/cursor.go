package plan

import (
	"fmt"
	"slices"
)

// Ready is one task of one step that may run now.
type Ready struct {
	Task int
	Step int64
}

// Cursor says which tasks of one rank may run: the pure machine that executor,
// simulator and checker share, so that what is proved is what is run.
//
// Start gives the first tasks; after each Done come those that it made
// runnable. Every task of every step [first, last) comes exactly once, a lane
// never has more than one that has not ended, and nothing is allocated once the
// cursor is built (but what the caller's slice needs to grow).
//
// It works by watching: a lane whose next task has to wait is put on the list
// of the one thing it waits for (a task, or the window), looks on from there
// when that has happened, and never looks back, because what has ended stays
// ended. So each Dep is looked at once a step: O(tasks + deps) a step in all,
// some ten nanoseconds each.
type Cursor struct {
	tasks       []cursorTask
	lanes       []cursorLane
	deps        []Dep // of all tasks, one after the other
	window      int64
	first, last int64
	oldest      int64 // the first step of which a task has not ended
	open        []int // tasks not ended, by step modulo window
	gate        int   // the first lane that waits for the window, or none
}

type cursorTask struct {
	lane         int
	depLo, depHi int   // its part of deps
	next         int64 // the step it runs next: those before have ended
	waiter       int   // the first lane that waits for it, or none
}

type cursorLane struct {
	tasks   []int // in order
	pos     int   // the next task, or the one that runs
	step    int64
	dep     int // dependencies before this one are met
	running bool
	link    int // the next lane on the same list, or none
}

const none = -1

// NewCursor makes a cursor over one rank's list for steps [first, last). It
// panics on a list that package check refuses for its dependencies.
func NewCursor(tasks []Task, window int, first, last int64) *Cursor {
	if window < 1 {
		panic(fmt.Sprintf("plan: cursor with window %d", window))
	}
	lane, lanes := Lanes(tasks)
	c := &Cursor{
		tasks:  make([]cursorTask, len(tasks)),
		lanes:  make([]cursorLane, len(lanes)),
		window: int64(window),
		open:   make([]int, window),
	}
	for i := range tasks {
		for _, d := range tasks[i].After {
			if d.Task < 0 || d.Task >= len(tasks) || d.Lag < 0 || d.Lag == 0 && d.Task >= i {
				panic(fmt.Sprintf("plan: task %d (%s) waits for %d~%d", i, tasks[i].Name, d.Task, d.Lag))
			}
		}
		c.tasks[i] = cursorTask{lane: lane[i], depLo: len(c.deps), depHi: len(c.deps) + len(tasks[i].After)}
		c.deps = append(c.deps, tasks[i].After...)
		c.lanes[lane[i]].tasks = append(c.lanes[lane[i]].tasks, i)
	}
	c.Reset(first, last)
	return c
}

// Lanes lists the lanes of a task list in order of appearance; of is the index
// of each task's.
func Lanes(tasks []Task) (of []int, lanes []Lane) {
	of = make([]int, len(tasks))
	for i := range tasks {
		if of[i] = slices.Index(lanes, tasks[i].Lane); of[i] < 0 {
			of[i] = len(lanes)
			lanes = append(lanes, tasks[i].Lane)
		}
	}
	return of, lanes
}

// Reset begins again, for steps [first, last): what ran before is forgotten.
func (c *Cursor) Reset(first, last int64) {
	c.first, c.last, c.oldest, c.gate = first, max(first, last), first, none
	for i := range c.open {
		c.open[i] = len(c.tasks)
	}
	for i := range c.tasks {
		c.tasks[i].next, c.tasks[i].waiter = first, none
	}
	for i := range c.lanes {
		l := &c.lanes[i]
		l.pos, l.step, l.running, l.link = 0, first, false, none
		l.dep = c.tasks[l.tasks[0]].depLo
	}
	if len(c.tasks) == 0 {
		c.oldest = c.last
	}
}

// Start appends the tasks that may run before anything has ended.
func (c *Cursor) Start(to []Ready) []Ready {
	for i := range c.lanes {
		to = c.look(i, to)
	}
	return to
}

// Done says that a task has ended and appends those that may run because of
// it. It panics if the task was not given out, or has ended already.
func (c *Cursor) Done(task int, step int64, to []Ready) []Ready {
	t := &c.tasks[task]
	l := &c.lanes[t.lane]
	if !l.running || l.tasks[l.pos] != task || l.step != step {
		panic(fmt.Sprintf("plan: task %d of step %d was not running", task, step))
	}
	t.next = step + 1
	l.running = false
	if l.pos++; l.pos == len(l.tasks) {
		l.pos = 0
		l.step++
	}
	l.dep = c.tasks[l.tasks[l.pos]].depLo
	to = c.look(t.lane, to)
	to = c.wake(&t.waiter, to)

	// Steps end in order, because every lane walks through them in order.
	left := &c.open[(step-c.first)%c.window]
	if *left--; *left == 0 {
		*left = len(c.tasks)
		c.oldest++
		to = c.wake(&c.gate, to)
	}
	return to
}

// Finished reports whether every task of every step has ended.
func (c *Cursor) Finished() bool { return c.oldest == c.last }

// Running appends the tasks that were given out and have not ended: what a
// rank that makes no progress waits in.
func (c *Cursor) Running(to []Ready) []Ready {
	for i := range c.lanes {
		if l := &c.lanes[i]; l.running {
			to = append(to, Ready{l.tasks[l.pos], l.step})
		}
	}
	return to
}

// look gives out the next task of a lane, or puts the lane on the list of the
// first thing that the task still waits for.
func (c *Cursor) look(lane int, to []Ready) []Ready {
	l := &c.lanes[lane]
	if l.step >= c.last {
		return to
	}
	if l.step >= c.oldest+c.window {
		l.link, c.gate = c.gate, lane
		return to
	}
	task := l.tasks[l.pos]
	for end := c.tasks[task].depHi; l.dep < end; l.dep++ {
		d := &c.deps[l.dep]
		// Steps before the first count as ended: next begins at first.
		if on := &c.tasks[d.Task]; on.next <= l.step-int64(d.Lag) {
			l.link, on.waiter = on.waiter, lane
			return to
		}
	}
	l.running = true
	return append(to, Ready{task, l.step})
}

// wake lets every lane of a list look again. The list is taken first: a lane
// may wait for the same task of a later step and come straight back.
func (c *Cursor) wake(list *int, to []Ready) []Ready {
	lane := *list
	*list = none
	for lane != none {
		next := c.lanes[lane].link
		to = c.look(lane, to)
		lane = next
	}
	return to
}
