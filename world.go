package gangline

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/stream"
)

const (
	watchEvery = 20 * time.Millisecond // the deadlines of all calls are looked at so often
	// heldUp is how long this process was stopped itself, if the watch comes so late;
	// what came meanwhile is read within afterHeldUp.
	heldUp      = 500 * time.Millisecond
	afterHeldUp = 300 * time.Millisecond
)

// world is this process's part in the job.
type world struct {
	cfg      Config
	address  string // where it listens for streams over tcp; "" if all are on this host
	member   *crew.Member
	hosts    []string // of the ranks, as the coordinator knows them
	session  *coord.Session
	endpoint transport.Endpoint
	closers  []func() error

	//nolint:containedctx // it ends when the job does
	ctx    context.Context
	cancel context.CancelCauseFunc

	running sync.WaitGroup
	stop    chan struct{}

	mu       sync.Mutex
	groups   []*Group
	made     map[string]int // how often a group of these members was made
	departed []departed
	err      error // why the job is over
}

// departed is a rank that is done, and how far it came in a group.
type departed struct {
	rank     int
	group    string
	sequence uint64
}

func newWorld(cfg Config) *world {
	w := &world{cfg: cfg, made: map[string]int{}, stop: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	return w
}

// rank of this process.
func (w *world) rank() int { return w.cfg.Place.Rank }

// end makes err the reason why the job is over, if there is none yet, and wakes all.
func (w *world) end(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	err = w.err
	w.mu.Unlock()
	w.cancel(err)
}

// over returns why the job is over, nil if it is not.
func (w *world) over() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// broken says whether the job is over by an error, rather than because this rank has
// closed its group.
func (w *world) broken() bool {
	err := w.over()
	return err != nil && !errors.Is(err, ErrClosed)
}

// open makes the group of members, which all of them do.
func (w *world) open(ctx context.Context, name string, members []int) (*Group, error) {
	g := &Group{
		world: w, name: name, members: members, index: slices.Index(members, w.rank()),
		slots: make(chan struct{}, QueueMax), wake: make(chan struct{}, 1), quit: make(chan struct{}), runners: map[runnerKey]runner{},
	}
	g.idle = sync.NewCond(&g.mu)
	g.ctx, g.cancel = context.WithCancelCause(w.ctx)
	tag, err := w.tag(name)
	if err != nil {
		return nil, err
	}
	streams, err := w.streams(ctx, tag, members)
	if err != nil {
		return nil, w.unopened(fmt.Errorf("group %s: %w", name, err))
	}
	g.streams = crew.NewWatched(streams, members, w.rank())
	g.ended = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups = append(w.groups, g)
	return g, nil
}

// unopened ends the job by a group that a member cannot open, since others wait in it; it
// returns why the job is over.
func (w *world) unopened(err error) error {
	if over := w.over(); over != nil {
		return over
	}
	said := newError(w.rank(), crew.Outside(w.session, crew.Blame(err), crew.VerdictTime(crew.VerdictWait)), err)
	w.end(said)
	return said
}

// tag is what a group's messages travel under on the endpoint: the same on all
// members, and unlike that of any other group of this rank.
func (w *world) tag(name string) (uint32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.groups) >= GroupsMax {
		return 0, fmt.Errorf("more than %d groups: close some", GroupsMax)
	}
	tag := tagOf(name)
	for _, g := range w.groups {
		if tagOf(g.name) == tag {
			return 0, fmt.Errorf("the names of groups %s and %s fall together: make the group in another order", g.name, name)
		}
	}
	return tag, nil
}

func tagOf(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum32() | 1         // 0 is taken by what is older than groups
}

// newName is the name of a group that is about to be made.
func (w *world) newName(members []int) string {
	var b strings.Builder
	for i, r := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, r)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := b.String()
	w.made[name]++
	if n := w.made[name]; n > 1 {
		name = fmt.Sprintf("%s (%d)", name, n)
	}
	return name
}

// forget drops a closed group.
func (w *world) forget(g *Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups = slices.DeleteFunc(w.groups, func(o *Group) bool { return o == g })
}

// all returns the groups that are open.
func (w *world) all() []*Group {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.groups)
}

// departures are the ranks that are done.
func (w *world) departures() []departed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.departed
}

// stand is where this rank stands in its groups, for the coordinator.
func (w *world) stand() []coord.Call {
	var calls []coord.Call
	for _, g := range w.all() {
		calls = append(calls, g.stand())
	}
	return calls
}

// left notes that a rank is done: calls that it does not take part in cannot end.
func (w *world) left(rank int, calls []coord.Call) {
	w.mu.Lock()
	for _, c := range calls {
		w.departed = append(w.departed, departed{rank, c.Group, c.Sequence})
	}
	w.mu.Unlock()
	for _, g := range w.all() {
		g.mu.Lock()
		err := g.missed()
		g.mu.Unlock()
		if err != nil {
			g.cancel(err)
		}
	}
}

// watch ends calls whose deadline comes, or whose ctx has ended. One ticker for all
// costs a call nothing.
func (w *world) watch() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	last := time.Now()
	patient := last
	for {
		select {
		case <-w.stop:
			return
		case <-w.ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		if now.Sub(last) > heldUp { // this process was stopped: first see what has come
			patient = now.Add(afterHeldUp)
		}
		last = now
		if now.Before(patient) {
			continue
		}
		for _, g := range w.all() {
			if err := g.overdue(now); err != nil {
				g.cancel(err)
			}
		}
	}
}

// verdict reports a call in trouble and returns why the job is over. It is the same
// on all ranks, unless the coordinator does not answer.
func (w *world) verdict(g *Group, cause error, wait time.Duration) error {
	t := coord.Trouble{Kind: crew.KindOf(cause), Group: g.name, Calls: w.stand()}
	text := crew.Blame(cause)
	if late, ok := errors.AsType[*overdueError](cause); ok {
		t.Kind, text = coord.Overdue, late
	} else if gone, ok := errors.AsType[*departedError](cause); ok {
		text = coord.Blame(gone.rank, gone)
	} else if given, ok := errors.AsType[*givenUpError](cause); ok {
		text = given
	}
	said := newError(w.rank(), crew.Verdict(w.session, text, t, wait), cause)
	w.end(said)
	return said
}

// aborted is the end of the job by the coordinator, or by its loss.
func (w *world) aborted(cause error) {
	if abort, ok := errors.AsType[*coord.AbortError](cause); ok {
		cause = newError(w.rank(), abort, nil)
	}
	w.end(cause)
}

// messages are streams as messages of the endpoint.
func (w *world) messages(tag uint32, members []int) transport.Streams {
	return transport.NewMessageStreams(w.endpoint, w.rank(), members, tag, 0)
}

// streams opens the streams of a group: by the shortest path between each two
// members, or, on systems that have none, as messages of the endpoint.
func (w *world) streams(ctx context.Context, tag uint32, members []int) (transport.Streams, error) {
	s, err := w.member.Streams(ctx, tag, members, stream.Auto, w.address)
	if errors.Is(err, errors.ErrUnsupported) {
		return w.messages(tag, members), nil
	}
	return s, err
}
