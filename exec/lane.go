package exec

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/trace"
)

// lingerTime is how long a goroutine that ran a task of a device looks for more before
// it sleeps, and lingerLooks how often, should the clock stand still.
const (
	lingerTime  = 60 * time.Microsecond
	lingerLooks = 1000
)

// work is a task of a step that a goroutine may run.
type work struct {
	ctx context.Context //nolint:containedctx // of the Run that gave the work out
	plan.Ready
	// cause is what the task that made this one runnable was.
	cause trace.Category
	// next says that the goroutine ran the task before it on the same lane just now.
	next bool
}

// lane is what a plan.Lane does: one task at a time.
type lane struct {
	name   string
	device bool
	// started is when the current task began, in ns and one more, so that 0 is
	// no task.
	started atomic.Int64
	// quiet is when the last task ended; behind Exec.mu.
	quiet time.Duration
}

// serve runs what it is woken for, and what that makes runnable, until Close. There
// are as many goroutines that serve as lanes, so there is one for every task that may
// run, whoever runs it.
func (e *Exec) serve() {
	for w := range e.wake {
		e.waiting(-1)
		for more := true; more; {
			t := &e.tasks[w.Task]
			start := e.now()
			t.lane.started.Store(int64(start) + 1)
			err := e.perform(t, w)
			w, more = e.finish(t, w, start, err)
			if !more && t.lane.device && e.lingers {
				w, more = e.linger()
			}
		}
	}
}

// perform runs a task. A call of a group that fails stays open: a verdict looks there.
func (e *Exec) perform(t *task, w work) error {
	if t.call != "" {
		e.cfg.Calls.Begin(t.plan.Group, w.Step, t.call)
	}
	err := t.run(w.ctx, w.Step, int(w.Step%e.window))
	if t.call != "" && err == nil {
		e.cfg.Calls.End(t.plan.Group)
	}
	return err
}

// callOf is what a task is to the group that it is a call of: "" if to none, or if nobody
// wants to know.
func (e *Exec) callOf(t *plan.Task) string {
	call := t.Kind == plan.Collective || t.Kind == plan.Commit
	if !call || e.cfg.Calls == nil || len(e.cfg.Plan.Groups[t.Group]) < 2 {
		return ""
	}
	return fmt.Sprintf("plan %s, task %v %q", e.cfg.Plan.Name, t.Kind, t.Name)
}

// mayLinger reports whether goroutines of this plan linger: not where they would keep
// the only processor, nor where ranks or servers are waited for, which may want it.
func mayLinger(p *plan.Plan, rank int) bool {
	return runtime.GOMAXPROCS(0) > 1 && !slices.ContainsFunc(p.Ranks[rank], func(t plan.Task) bool {
		switch t.Kind {
		case plan.Collective, plan.Commit:
			return len(p.Groups[t.Group]) > 1
		case plan.Send, plan.Recv, plan.Pull, plan.Push:
			return true
		case plan.Feed, plan.Compute, plan.Add:
		}
		return false
	})
}

// linger looks for work for a moment, about as long as waking a goroutine takes: what a
// device waits for, its input, is often about to come.
func (e *Exec) linger() (work, bool) {
	begin := e.now()
	for i := 0; i < lingerLooks && e.now()-begin < lingerTime; i++ {
		for range 64 {
			select {
			case w, open := <-e.wake:
				if open {
					e.waiting(-1)
				}
				return w, open
			default:
			}
		}
	}
	return work{}, false
}

// give has another goroutine run a task. The cursor gives a lane one task at a time,
// so that the capacity of wake, one a lane, never blocks who gives.
func (e *Exec) give(w work) {
	e.waiting(1)
	e.wake <- w
}

// waiting tells the backend of tasks that wait for a processor.
func (e *Exec) waiting(more int) {
	if e.crowded != nil {
		e.crowded.Waiting(more)
	}
}

// finish records the end of a task, and returns the one that its goroutine goes on
// with, if there is any.
func (e *Exec) finish(t *task, w work, start time.Duration, err error) (work, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := t.lane
	l.started.Store(0)
	if !w.next {
		e.waited(l, w.Step, start, w.cause)
	}
	e.count(t, w.Step, start)
	if err != nil {
		e.fail(t, e.taskError(t, w.Step, start, err))
	}
	c := int(w.Step % e.window)
	if !e.failed {
		e.books.Ended(t.ledger, c, e.results[c].Skipped)
		if e.left[c]--; e.left[c] == 0 {
			e.endStep(t, w.Step, c)
		}
	}
	next, more := work{}, false
	e.active--
	if !e.failed {
		e.ready = e.cursor.Done(w.Task, w.Step, e.ready[:0])
		e.takeFed()
		e.active += len(e.ready)
		next, more = e.share(w.ctx, t)
	}
	if e.active == 0 {
		e.idle <- struct{}{}
	}
	return next, more
}

// takeFed ends a Feed among the tasks that were made runnable at once, if its batch is
// there: a moment's work, for which nobody is to be woken.
func (e *Exec) takeFed() {
	i := slices.IndexFunc(e.ready, func(r plan.Ready) bool { return e.feed != nil && r.Task == e.feed.task })
	if i < 0 {
		return
	}
	r := e.ready[i]
	c := int(r.Step % e.window)
	if e.left[c] == 1 { // the end of the step is for who has time
		return
	}
	if taken, err := e.feed.take(r.Step, c); !taken || err != nil {
		return
	}
	e.left[c]--
	e.ready = e.cursor.Done(r.Task, r.Step, slices.Delete(e.ready, i, i+1))
	e.takeFed()
}

// share returns the task that the goroutine of t goes on with, of those that t made
// runnable, and gives the others to other goroutines, which take microseconds to
// wake. So it keeps what the step is likely to wait for: a task of a device, be it of
// t's lane or not, before another of t's lane, before any.
func (e *Exec) share(ctx context.Context, t *task) (work, bool) {
	kept, best := -1, 0
	for i, r := range e.ready {
		l, urgent := e.tasks[r.Task].lane, 1
		if l.device {
			urgent += 2
		}
		if l == t.lane {
			urgent++
		}
		if urgent > best {
			kept, best = i, urgent
		}
	}
	var next work
	for i, r := range e.ready {
		w := work{ctx: ctx, Ready: r, cause: t.category}
		if i != kept {
			e.give(w)
			continue
		}
		next = w
		next.next = e.tasks[r.Task].lane == t.lane
	}
	return next, kept >= 0
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
	if t.plan.Kind == plan.Feed {
		return // see fed
	}
	e.record(t, step, start, end)
}

// fed records that a batch was fed, whenever it is taken.
func (e *Exec) fed(o *feed, step int64, start time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record(&e.tasks[o.task], step, start, e.now())
}

func (e *Exec) record(t *task, step int64, start, end time.Duration) {
	e.times.Add(t.category, end-start)
	if e.cfg.Trace == nil {
		return
	}
	t.span.Step, t.span.Start, t.span.End, t.span.Bytes = step, int64(start), int64(end), t.moved()
	e.cfg.Trace.Record(&t.span)
}

// waited counts the time since the lane's last task as waiting, if the lane is
// a device, and as waiting for input if it was a Feed that ended it.
func (e *Exec) waited(l *lane, step int64, now time.Duration, cause trace.Category) {
	if !l.device || now <= l.quiet {
		return
	}
	name := "wait"
	if cause == trace.Input {
		name = trace.WaitInputName
		e.times.WaitInput += now - l.quiet
	}
	e.times.Wait += now - l.quiet
	if e.cfg.Trace != nil {
		e.cfg.Trace.Record(&trace.Span{
			Rank: e.cfg.Rank, Step: step, Task: -1, Lane: l.name, Name: name, Category: trace.Wait,
			Start: int64(l.quiet), End: int64(now),
		})
	}
}
