package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/transport"
)

const (
	// checksPerDeadline is how often the watchdog looks in the time of a deadline, and
	// lookEvery how long it does not look at most: a task is noticed so late.
	checksPerDeadline = 4
	lookEvery         = 200 * time.Millisecond
	// heldUp is how long this process was stopped itself, if a look comes so late; what
	// came meanwhile is read within afterHeldUp.
	heldUp      = 500 * time.Millisecond
	afterHeldUp = 300 * time.Millisecond
)

// TaskError is the error of one task.
type TaskError struct {
	Rank int
	Step int64
	Task int // its index in the rank's list
	Name string
	Kind plan.Kind
	Lane string
	// Group is that of a call of a group, whose Kind is Collective or Commit.
	Group int
	// Peers are the ranks that the task waited for, if it waited.
	Peers []int
	// Waited is how long the task had run, and Began when that was.
	Waited time.Duration
	Began  time.Time
	// Silent is how long nothing had come from the first of Peers; negative if
	// nothing ever came.
	Silent time.Duration
	// Err is the cause; it is ErrDeadline if the task took too long.
	Err error
}

// Error implements error.
func (e *TaskError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d: step %d: task %d %v %q on %s", e.Rank, e.Step, e.Task, e.Kind, e.Name, e.Lane)
	if len(e.Peers) > 0 {
		fmt.Fprintf(&b, ": waited %v for rank %v", e.Waited.Round(time.Microsecond), strings.Trim(fmt.Sprint(e.Peers), "[]"))
		if e.Silent < 0 {
			b.WriteString(", of which nothing was ever heard")
		} else {
			fmt.Fprintf(&b, ", silent for %v", e.Silent.Round(time.Microsecond))
		}
	} else if errors.Is(e.Err, ErrDeadline) {
		fmt.Fprintf(&b, ": has run for %v", e.Waited.Round(time.Microsecond))
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Err }

// taskError describes the end of a task by err, with the peer that err names
// or, failing that, the one that the plan names.
func (e *Exec) taskError(t *task, step int64, start time.Duration, err error) *TaskError {
	waited := e.now() - start
	te := &TaskError{
		Rank: e.cfg.Rank, Step: step, Task: t.span.Task, Name: t.plan.Name, Kind: t.plan.Kind, Lane: t.lane.name, Group: t.plan.Group,
		Waited: waited, Began: time.Now().Add(-waited), Err: err,
	}
	var pe *transport.PeerError
	switch {
	case errors.As(err, &pe):
		te.Peers = []int{pe.Peer}
	case t.plan.Kind == plan.Send || t.plan.Kind == plan.Recv:
		te.Peers = []int{t.plan.Peer}
	default:
		return te
	}
	te.Silent = e.silent(te.Peers[0])
	return te
}

// silent is how long nothing came from a rank, or -1 if nothing ever did.
func (e *Exec) silent(peer int) time.Duration {
	if e.cfg.Endpoint == nil {
		return -1
	}
	var last time.Time
	hear := func(s transport.Stats) {
		if peer >= 0 && peer < len(s.LastHeard) && s.LastHeard[peer].After(last) {
			last = s.LastHeard[peer]
		}
	}
	hear(e.cfg.Endpoint.Stats())
	for _, s := range e.cfg.Streams {
		if s != nil {
			hear(s.Stats())
		}
	}
	if last.IsZero() {
		return -1
	}
	return time.Since(last)
}

// fail ends the run with its first error, and completes an error of the
// watchdog with what the task says when it comes back. e.mu is held.
func (e *Exec) fail(t *task, err error) {
	if !e.failed {
		e.failed, e.err = true, err
		e.cancel(err)
		return
	}
	if t == nil || e.culprit != t {
		return
	}
	e.culprit = nil
	late, _ := e.err.(*TaskError) //nolint:errorlint // made by the watchdog, never wrapped
	back, ok := err.(*TaskError)  //nolint:errorlint // made by finish, never wrapped
	if late == nil || !ok {
		return
	}
	late.Peers, late.Silent = back.Peers, back.Silent
	if late.Err = back.Err; !errors.Is(back.Err, ErrDeadline) {
		late.Err = fmt.Errorf("%w: %w", ErrDeadline, back.Err)
	}
}

// watch starts the watchdog of a run, if there is a deadline, and returns what
// stops it.
func (e *Exec) watch(ctx context.Context) (stop func()) {
	if e.cfg.Deadline <= 0 {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(min(e.cfg.Deadline/checksPerDeadline, lookEvery), time.Millisecond))
		defer tick.Stop()
		last, patient := time.Now(), time.Time{}
		for {
			select {
			case <-tick.C:
				now := time.Now()
				if now.Sub(last) > heldUp {
					patient = now.Add(afterHeldUp)
				}
				if last = now; now.After(patient) {
					e.look()
				}
			case <-ctx.Done():
				return
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// look fails the run if a task is past its deadline: the one that began first.
func (e *Exec) look() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed {
		return
	}
	var t *task
	var step int64
	var since time.Duration
	now := e.now()
	for _, r := range e.cursor.Running(nil) {
		began := e.tasks[r.Task].lane.started.Load()
		start := time.Duration(began - 1)
		if began != 0 && now-start >= e.cfg.Deadline && (t == nil || start < since) {
			t, step, since = &e.tasks[r.Task], r.Step, start
		}
	}
	if t == nil {
		return
	}
	te := e.taskError(t, step, since, ErrDeadline)
	e.culprit, e.failed, e.err = t, true, te
	e.cancel(ErrDeadline)
}
