package gangline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/tensor"
)

// Group is this rank's place among ranks that call together. Its methods may be called
// from several goroutines; but the order of the calls must be the same on all
// members, which two goroutines that call on one group do not know.
type Group struct {
	world   *world
	name    string
	members []int // in the group of all
	index   int
	streams *crew.Watched
	runners map[runnerKey]runner // of whose turn it is
	chooser *cost.Chooser        // of algorithms, once there was an all-reduce; of whose turn it is
	hosts   [][]int              // indices of the members by host, with it

	//nolint:containedctx // it ends when no call can be made any more
	ctx    context.Context
	cancel context.CancelCauseFunc
	slots  chan struct{} // one for each call that waits
	wake   chan struct{} // calls wait, and it is the driver's turn
	quit   chan struct{} // the driver shall end

	mu       sync.Mutex
	busy     bool // somebody drives
	idle     *sync.Cond
	waiters  int // goroutines that wait for a call to end
	queue    []*Handle
	driver   bool // runs
	closed   bool
	sequence uint64
	current  *call // of number sequence; the last one if it is not open
	opened   bool
	began    time.Time
	ended    time.Time
	deadline time.Time
	patience time.Time
	running  sync.WaitGroup
}

// call is what is to be done.
type call struct {
	ctx    context.Context //nolint:containedctx // of the caller, for as long as the call lasts
	key    runnerKey
	values *tensor.Tensor // nil: none
	out    *tensor.Tensor // of an all-to-all
	within time.Duration
}

// Handle is a call that was started.
type Handle struct {
	group *Group
	call  call
	done  chan struct{}
	err   error // valid when done is closed
}

// Wait returns the result of the call: when this rank's part is done, or the error
// that it had. If ctx ends first, it returns the cause of that, and the call goes on.
// It may be called again.
func (h *Handle) Wait(ctx context.Context) error {
	select {
	case <-h.done:
		return h.err
	default:
	}
	h.group.waiting(1)
	defer h.group.waiting(-1)
	select {
	case <-h.done:
		return h.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waiting counts who waits.
func (g *Group) waiting(n int) {
	g.mu.Lock()
	g.waiters += n
	g.mu.Unlock()
}

// Done is closed when the call has ended.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Rank is this rank's number in the group, from 0.
func (g *Group) Rank() int { return g.index }

// Size is the number of ranks in the group.
func (g *Group) Size() int { return len(g.members) }

// Ranks are the members, as they are numbered in the group of all.
func (g *Group) Ranks() []int { return slices.Clone(g.members) }

// String names the group as errors do.
func (g *Group) String() string { return g.name }

// Group makes a group of some members of this one, which are given by their numbers
// here; each of them, and nobody else, must call it, with the same ranks. Members are
// numbered anew, in ascending order. It costs a round of messages between the members
// and streams between each two of them. Ranks that make several groups with each
// other must make them in the same order, as with calls. ctx bounds it, and the
// timeout of calls; a member that cannot open its streams in time ends the job, as a call
// would.
func (g *Group) Group(ctx context.Context, ranks ...int) (*Group, error) {
	w := g.world
	members := make([]int, 0, len(ranks))
	for _, r := range ranks {
		if r < 0 || r >= len(g.members) {
			return nil, fmt.Errorf("gangline: group of ranks %v: rank %d is not in a group of %d", ranks, r, len(g.members))
		}
		members = append(members, g.members[r])
	}
	slices.Sort(members)
	if len(slices.Compact(slices.Clone(members))) != len(members) || !slices.Contains(members, w.rank()) {
		return nil, fmt.Errorf("gangline: group of ranks %v: each once, and this one (%d) among them", ranks, g.index)
	}
	if err := w.over(); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithCancelCause(w.ctx)
	defer cancel(nil)
	patience := crew.Patience(w.cfg.Timeout)
	timer := time.AfterFunc(patience, func() { cancel(fmt.Errorf("not done within %v", patience)) })
	defer timer.Stop()
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()
	sub, err := w.open(bounded, w.newName(members), members) //nolint:contextcheck // bounded ends with ctx, too
	if _, said := errors.AsType[*Error](err); said {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("gangline: rank %d: %w", w.rank(), errors.Join(err, context.Cause(ctx)))
	}
	return sub, nil
}

// Fail ends the job on all ranks, with err as the reason, and returns what every rank
// gets. It is for errors of the program that leave the others waiting.
func (g *Group) Fail(err error) error {
	w := g.world
	if over := w.over(); over != nil {
		return over
	}
	verdict := w.session.Fail(err)
	if abort, ok := errors.AsType[*coord.AbortError](verdict); ok {
		verdict = newError(w.rank(), abort, err)
	}
	w.end(verdict)
	return verdict
}

// Close leaves the group, after the calls that were begun. The group of all leaves the
// job: it waits until all ranks do so, as long as Config.Timeout at most, since others may
// still be in their last call; its error says who is lost meanwhile. After an error of a call it is nil.
// Nothing is left when it returns: no goroutine, file or memory shared. After an error it
// waits for no other rank, but where this process coordinates: then for those that live to
// hear the verdict, two seconds at most.
func (g *Group) Close() error {
	g.mu.Lock()
	was := g.closed
	g.closed = true
	g.mu.Unlock()
	if was {
		return nil
	}
	g.drain()
	w := g.world
	if g.name != allName {
		w.forget(g)
		g.shut()
		return nil
	}
	var err error
	if w.over() == nil {
		ctx, cancel := context.WithTimeoutCause(w.ctx, w.cfg.Timeout, fmt.Errorf("not all ranks have closed within %v", w.cfg.Timeout))
		defer cancel()
		if err = w.session.Done(ctx, nil); err != nil {
			if abort, ok := errors.AsType[*coord.AbortError](err); ok {
				err = newError(w.rank(), abort, nil)
				w.end(err)
			} else {
				err = fmt.Errorf("gangline: rank %d: close: %w", w.rank(), err)
			}
		}
	}
	w.end(ErrClosed)
	for _, o := range w.all() {
		if o != g {
			o.mu.Lock()
			was, o.closed = o.closed, true
			o.mu.Unlock()
			if was { // by another goroutine, just now
				continue
			}
			o.drain()
		}
		o.shut()
	}
	if left := w.leave(); left != nil {
		w.cfg.Logger.Debug("leave", "rank", w.rank(), "error", left)
	}
	return err
}

// shut ends the driver and closes the streams, when nobody drives.
func (g *Group) shut() {
	g.cancel(ErrClosed)
	close(g.quit)
	g.running.Wait()
	if g.world.broken() {
		crew.Abort(g.streams)
	} else if err := g.streams.Close(); err != nil {
		g.world.cfg.Logger.Debug("close streams", "group", g.name, "error", err)
	}
}

// Chunk returns which elements of a slice of n are this rank's part in a Gather,
// AllGather, Scatter or ReduceScatter: from lo up to hi. Parts differ by one element
// at most.
func (g *Group) Chunk(n int) (lo, hi int) {
	return collective.Bound(g.index, len(g.members), n), collective.Bound(g.index+1, len(g.members), n)
}

// stand is where this rank stands in the group.
func (g *Group) stand() coord.Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := coord.Call{Group: g.name, Members: g.members, Sequence: g.sequence, Open: g.opened, Since: time.Since(g.ended)}
	if g.current != nil {
		c.What = g.current.String()
	}
	if g.opened {
		c.Since, c.Waits, c.Waited = time.Since(g.began), g.streams.Waits(), g.waiters > 0
	}
	return c
}

// missed returns an error if the open call misses a rank that is done. g.mu is held.
func (g *Group) missed() error {
	if !g.opened {
		return nil
	}
	for _, d := range g.world.departures() {
		if d.group == g.name && d.sequence < g.sequence {
			return &departedError{rank: d.rank}
		}
	}
	return nil
}

// overdue returns an error if the open call is to be given up now.
func (g *Group) overdue(now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opened {
		return nil
	}
	if now.After(g.patience) {
		return &overdueError{within: g.deadline.Sub(g.began)}
	}
	if err := g.current.ctx.Err(); err != nil {
		return &givenUpError{cause: context.Cause(g.current.ctx)}
	}
	return nil
}
