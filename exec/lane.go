package exec

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/trace"
)

// work is a task of a step that a lane may run.
type work struct {
	ctx context.Context //nolint:containedctx // of the Run that gave the work out
	plan.Ready
}

// lane runs the tasks of one plan.Lane, one at a time.
type lane struct {
	name   string
	device bool
	// wake brings work. The cursor gives a lane one task at a time, so a
	// capacity of 1 never blocks who wakes it.
	wake chan work
	// started is when the current task began, in ns and one more, so that 0 is
	// no task.
	started atomic.Int64
	// quiet is when the last task ended; behind Exec.mu.
	quiet time.Duration
}

// serve runs what the lane is woken for until Close.
func (e *Exec) serve(l *lane) {
	for w := range l.wake {
		for woken, more := true, true; more; woken = false {
			t := &e.tasks[w.Task]
			start := e.now()
			l.started.Store(int64(start) + 1)
			err := t.run(w.ctx, w.Step, int(w.Step%e.window))
			w, more = e.finish(t, w, woken, start, err)
		}
	}
}

// finish records the end of a task, wakes the lanes whose tasks it made
// runnable and returns the next task of its own lane, if that is one of them.
func (e *Exec) finish(t *task, w work, woken bool, start time.Duration, err error) (work, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := t.lane
	l.started.Store(0)
	if woken {
		e.waited(l, w.Step, start)
	}
	e.count(t, w.Step, start)
	if err != nil {
		e.fail(t, e.taskError(t, w.Step, start, err))
	}
	c := int(w.Step % e.window)
	if !e.failed {
		e.books.ended(t.ledger, c, &e.results[c])
		if e.left[c]--; e.left[c] == 0 {
			e.endStep(t, w.Step, c)
		}
	}
	next, more := work{}, false
	e.active--
	if !e.failed {
		e.ready = e.cursor.Done(w.Task, w.Step, e.ready[:0])
		e.active += len(e.ready)
		for _, r := range e.ready {
			if other := e.tasks[r.Task].lane; other != l {
				other.wake <- work{w.ctx, r}
			} else {
				next, more = work{w.ctx, r}, true
			}
		}
	}
	if e.active == 0 {
		e.idle <- struct{}{}
	}
	return next, more
}

// endStep hands a step's outcome to the callbacks. It is called with e.mu held
// and gives it up meanwhile: the last task of the step counts as not ended, so
// no value of the step is reused, and no later step ends.
func (e *Exec) endStep(t *task, step int64, c int) {
	e.left[c] = len(e.tasks)
	e.last = step
	e.steps++
	r := e.results[c]
	e.mu.Unlock()
	var err error
	if e.cfg.OnOutput != nil {
		err = e.cfg.OnOutput(step, e.gets[c])
	}
	if err == nil && e.cfg.OnStep != nil {
		e.cfg.OnStep(step, r)
	}
	e.mu.Lock()
	if err != nil {
		e.fail(t, fmt.Errorf("exec: rank %d: step %d: output: %w", e.cfg.Rank, step, err))
	}
}

// count adds up a task's time and records its span.
func (e *Exec) count(t *task, step int64, start time.Duration) {
	end := e.now()
	t.lane.quiet = end
	e.times.Add(t.category, end-start)
	if e.cfg.Trace == nil {
		return
	}
	t.span.Step, t.span.Start, t.span.End, t.span.Bytes = step, int64(start), int64(end), t.moved()
	e.cfg.Trace.Record(&t.span)
}

// waited counts the time since the lane's last task as waiting, if the lane is
// a device.
func (e *Exec) waited(l *lane, step int64, now time.Duration) {
	if !l.device || now <= l.quiet {
		return
	}
	e.times.Wait += now - l.quiet
	if e.cfg.Trace != nil {
		e.cfg.Trace.Record(&trace.Span{
			Rank: e.cfg.Rank, Step: step, Task: -1, Lane: l.name, Name: "wait", Category: trace.Wait,
			Start: int64(l.quiet), End: int64(now),
		})
	}
}
