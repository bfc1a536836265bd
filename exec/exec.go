// Package exec runs one rank's part of a plan.
//
// New binds every task to an op (one file a kind: feed.go, compute.go, ...)
// with its tensors, program or runner; Run then drives a range of steps. There are as
// many goroutines as lanes; a plan.Cursor behind a mutex says what may run next. A
// goroutine that ends a task goes on with one of those that it made runnable, of
// whatever lane, and wakes others for the rest: where tasks follow each other over
// several lanes, as a Commit between gradient and update does, nobody has to be woken.
// Nothing is allocated once warm.
//
// # Values
//
// Parameters and slots exist once and are found by name in Config.State, so
// that the executors of several plans share them. Every other value exists
// once for each step in flight: step t uses copy t mod Window. Lives of a value that
// cannot overlap, as those of activations in micro-batches, share memory.
//
// # Failures
//
// The first error ends the run: whatever else the rank does is cancelled, and
// Run returns that error as a *TaskError with rank, step and task, after the
// last goroutine is quiet. A watchdog does the same for a task that takes
// longer than Config.Deadline, and says for whom it waited and for how long
// nothing was heard of them. An executor that failed cannot run again.
package exec

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/exec/internal/ledger"
	"github.com/gangline/gangline/exec/internal/memory"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/trace"
	"github.com/gangline/gangline/transport"
)

// Feeder fills a step's inputs.
type Feeder interface {
	// Feed fills the values of the plan's Feed task, in its order, with this
	// rank's part of a step; dynamic ones are resized. Steps come in order.
	Feed(step int64, out []*tensor.Tensor) error
}

// Stores is a worker's way to the parameter servers.
type Stores interface {
	// Push gives gradient sums of a step to a store.
	Push(ctx context.Context, store int, step int64, parts []ps.Part) error
	// Pull reads parameters or rows from a store, as a step must see them.
	Pull(ctx context.Context, store int, step int64, parts []ps.Part) error
	// Committed says what the workers agreed on: the total weight of a step,
	// 0 if it changes nothing.
	Committed(step int64, weight float64)
}

// Calls hears when this rank begins a call of a group (a Collective or a Commit), and when
// it has ended well; what it is all members say alike. It must return at once.
type Calls interface {
	Begin(group int, step int64, what string)
	End(group int)
}

// Result is what the ranks agreed on at the end of a step.
type Result struct {
	// Weight and Loss are sums over all ranks; the loss over those of which it
	// is finite.
	Weight, Loss float64
	// Skipped says that the step changed nothing: its weight is 0.
	Skipped bool
	// Faulty are the ranks whose own weight or loss was not finite or, if there
	// is none, those with gradients that were not; of gradients that were summed
	// before, that is all of them.
	Faulty []int
	// Overflow says that it was a gradient that was not finite, of finite losses.
	Overflow bool
	// Scale is what the loss was multiplied by before its gradients were taken; 0: nothing.
	Scale float64
}

// Config is what an executor needs. Plan and what its tasks use are required.
type Config struct {
	Rank int
	Plan *plan.Plan
	// Step holds the segments that Compute tasks name, and Backend compiles them.
	Step    *graph.Step
	Backend compute.Backend
	// Endpoint connects the ranks; nil if the plan never leaves this one.
	Endpoint transport.Endpoint
	// Streams are those of the plan's groups, in their order, which collectives of a
	// group run on; nil for a group without, whose collectives are messages of the
	// Endpoint. Executors that share streams must not run at the same time.
	Streams []transport.Streams
	// Calls hears of the calls of groups of several ranks; may be nil.
	Calls  Calls
	Feeder Feeder
	Stores Stores
	// Trace takes a span a task; nil records none.
	Trace *trace.Recorder
	// Deadline bounds one task; 0 is no bound.
	Deadline time.Duration
	// Now is the clock of spans; nil is the time since 1970, running monotonic.
	Now func() time.Duration
	// State holds parameters and slots by name; New adds those that are
	// missing, as zeros. Executors that share it must not run at the same time.
	State map[string]*tensor.Tensor
	// OnStep is told of each step in order, after all its tasks have ended. A
	// plan without a Commit has an empty Result.
	OnStep func(step int64, r Result)
	// OnOutput may read the values of each step, in order, before they are
	// reused: get returns nil for a name that this rank has not. An error ends
	// the run. It is called before OnStep, while other tasks may run.
	OnOutput func(step int64, get func(name string) *tensor.Tensor) error
}

// Errors that callers tell apart with errors.Is.
var (
	// ErrDeadline: a task took longer than Config.Deadline.
	ErrDeadline = errors.New("deadline exceeded")
	// ErrClosed: the executor was closed.
	ErrClosed = errors.New("executor closed")
	// ErrFailed: the executor failed before and cannot run again.
	ErrFailed = errors.New("executor failed before")
)

// task is a plan's task, bound.
type task struct {
	op
	plan     *plan.Task
	lane     *lane
	span     trace.Span // what does not change from step to step
	category trace.Category
	ledger   ledger.Entry
	call     string // what it is to its group; "" if it is no call
}

// Exec runs one rank's plan. Run and Value are for one goroutine at a time;
// Close, Times and Accounts are safe at any time.
type Exec struct {
	cfg    Config
	now    func() time.Duration
	window int64
	tasks  []task
	lanes  []*lane
	values *memory.Values
	feed   *feed // nil: nothing is fed
	gets   []func(name string) *tensor.Tensor

	buckets []*bucket // what is summed by a codec

	wake    chan work     // tasks for goroutines that have none
	lingers bool          // goroutines look for more work for a moment
	crowded compute.Crowd // the backend, if it wants to know of them
	runs    sync.Mutex    // held by Run
	serving sync.WaitGroup
	idle    chan struct{}

	mu      sync.Mutex
	cursor  *plan.Cursor
	ready   []plan.Ready
	left    []int // tasks not ended, by copy
	results []Result
	active  int // tasks given to lanes and not ended
	cancel  context.CancelCauseFunc
	failed  bool
	closed  bool
	err     error
	culprit *task // the task that err is about, if it has not returned yet
	times   trace.Breakdown
	steps   int64
	books   *ledger.Ledger
	last    int64 // the last step that ended
}

// New binds a rank's tasks. It fails, naming the task, if something they need
// is missing or does not fit. The executor holds goroutines until Close.
func New(cfg Config) (*Exec, error) {
	if cfg.Plan == nil || cfg.Rank < 0 || cfg.Rank >= len(cfg.Plan.Ranks) {
		return nil, fmt.Errorf("exec: no plan for rank %d", cfg.Rank)
	}
	p := cfg.Plan
	if p.Window < 1 {
		return nil, fmt.Errorf("exec: rank %d: plan %q has window %d", cfg.Rank, p.Name, p.Window)
	}
	list := p.Ranks[cfg.Rank]
	e := &Exec{
		cfg: cfg, now: cfg.Now, window: int64(p.Window), tasks: make([]task, len(list)),
		idle: make(chan struct{}, 1), left: make([]int, p.Window), results: make([]Result, p.Window), last: -1,
	}
	if e.now == nil {
		base := time.Now()
		epoch := time.Duration(base.UnixNano())
		e.now = func() time.Duration { return epoch + time.Since(base) }
	}
	alloc := transport.Ordinary
	if cfg.Endpoint != nil {
		alloc = cfg.Endpoint.Alloc
	}
	e.values = memory.New(p, cfg.Rank, cfg.State, alloc)
	e.books = ledger.New(p, list)
	if err := e.bind(list); err != nil {
		return nil, fmt.Errorf("exec: rank %d: plan %q: %w", cfg.Rank, p.Name, err)
	}
	for c := range p.Window {
		e.gets = append(e.gets, func(name string) *tensor.Tensor { return e.values.ByName(name, c) })
	}
	e.cursor = plan.NewCursor(list, p.Window, 0, 0)
	e.wake = make(chan work, len(e.lanes))
	e.crowded, _ = cfg.Backend.(compute.Crowd)
	e.lingers = mayLinger(p, cfg.Rank)
	for range e.lanes {
		e.serving.Go(e.serve)
	}
	if e.feed != nil {
		e.serving.Go(e.feed.serve)
	}
	return e, nil
}

// bind makes the ops and the lanes.
func (e *Exec) bind(list []plan.Task) error {
	lanes := map[plan.Lane]*lane{}
	b := binder{e: e, programs: map[programKey]compute.Program{}, parts: map[*tensor.Tensor]*tensor.Tensor{}, early: findEarly(e.cfg.Plan, list)}
	for i := range list {
		t := &list[i]
		l := lanes[t.Lane]
		if l == nil {
			l = &lane{name: t.Lane.String(), device: t.Lane.Kind == plan.Device}
			lanes[t.Lane] = l
			e.lanes = append(e.lanes, l)
		}
		o, err := b.bind(t)
		if err != nil {
			return fmt.Errorf("task %d %v %q: %w", i, t.Kind, t.Name, err)
		}
		if f, ok := o.(*feed); ok {
			f.task = i
		}
		c := categoryOf(e.cfg.Plan, t)
		e.tasks[i] = task{
			op: o, plan: t, lane: l, category: c, ledger: e.books.EntryOf(e.cfg.Plan, t), call: e.callOf(t),
			span: trace.Span{Rank: e.cfg.Rank, Task: i, Kind: t.Kind.String(), Lane: l.name, Name: t.Name, Category: c},
		}
	}
	return nil
}

// categoryOf says what a task's time is spent on.
func categoryOf(p *plan.Plan, t *plan.Task) trace.Category {
	switch t.Kind {
	case plan.Feed:
		return trace.Input
	case plan.Compute:
		if t.Seg >= 0 && t.Seg < len(p.Segs) && p.Segs[t.Seg].Update != plan.NoState {
			return trace.Update
		}
		return trace.Compute
	case plan.Add:
		return trace.Adding
	case plan.Send, plan.Recv, plan.Collective, plan.Pull, plan.Push, plan.Commit:
		return trace.Communication
	}
	return trace.Other
}

// Run runs steps [first, last) and returns when the last task has ended, or,
// after the first error, when all lanes are quiet.
func (e *Exec) Run(ctx context.Context, first, last int64) error {
	e.runs.Lock()
	defer e.runs.Unlock()
	if first < 0 || first > last {
		return fmt.Errorf("exec: rank %d: run of steps [%d, %d)", e.cfg.Rank, first, last)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if e.feed != nil {
		e.feed.begin(first, last)
		defer e.feed.quiet()
	}
	if err := e.begin(ctx, cancel, first, last); err != nil {
		return err
	}
	if h, ok := e.cfg.Backend.(compute.Holder); ok {
		defer h.Hold()()
	}
	stop := e.watch(ctx)
	select {
	case <-e.idle:
	case <-ctx.Done():
		e.mu.Lock()
		e.fail(nil, fmt.Errorf("exec: rank %d: run stopped: %w", e.cfg.Rank, context.Cause(ctx)))
		e.mu.Unlock()
		<-e.idle
	}
	stop()
	return e.end()
}

// begin gives the first tasks to their lanes.
func (e *Exec) begin(ctx context.Context, cancel context.CancelCauseFunc, first, last int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return fmt.Errorf("exec: rank %d: %w", e.cfg.Rank, ErrClosed)
	case e.failed:
		return fmt.Errorf("exec: rank %d: %w: %w", e.cfg.Rank, ErrFailed, e.err)
	}
	e.cancel = cancel
	e.cursor.Reset(first, last)
	for c := range e.left {
		e.left[c] = len(e.tasks)
	}
	now := e.now()
	for _, l := range e.lanes {
		l.quiet = now
	}
	e.ready = e.cursor.Start(e.ready[:0])
	e.active = len(e.ready)
	for _, r := range e.ready {
		e.give(work{ctx: ctx, Ready: r, cause: trace.Other})
	}
	if e.active == 0 {
		e.idle <- struct{}{}
	}
	return nil
}

// end closes the books of a run.
func (e *Exec) end() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for _, l := range e.lanes {
		e.waited(l, e.last, now, trace.Other)
	}
	if e.err == nil && !e.cursor.Finished() {
		e.failed = true
		e.err = fmt.Errorf("exec: rank %d: plan %q hangs after step %d: no task can run", e.cfg.Rank, e.cfg.Plan.Name, e.last)
	}
	return e.err
}

// Value returns a value by name as the last step left it, or nil if this rank
// has none of that name. It must not be called during a Run.
func (e *Exec) Value(name string) *tensor.Tensor {
	return e.values.ByName(name, int(max(e.last, 0)%e.window))
}

// Times returns where the time went so far, and the number of steps ended.
func (e *Exec) Times() (trace.Breakdown, int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.times, e.steps
}

// Close cancels a Run in progress and returns when no goroutine is left.
func (e *Exec) Close() error {
	e.mu.Lock()
	was := e.closed
	e.closed = true
	if e.active > 0 {
		e.fail(nil, fmt.Errorf("exec: rank %d: %w", e.cfg.Rank, ErrClosed))
	}
	e.mu.Unlock()
	if was {
		e.serving.Wait()
		return nil
	}
	e.runs.Lock()
	close(e.wake)
	if e.feed != nil {
		close(e.feed.kick)
	}
	e.runs.Unlock()
	e.serving.Wait()
	return nil
}
