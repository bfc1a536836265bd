package crew

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/transport"
)

// Board is where this rank stands in its groups, for the coordinator. It is safe for
// several goroutines.
type Board struct {
	mu    sync.Mutex
	seats []seat
}

// seat is a group.
type seat struct {
	name     string
	members  []int
	streams  *Watched
	sequence uint64
	open     bool
	step     int64
	what     string
	since    time.Time
}

// Add puts a group on the board: every member does, by the same name. Groups are numbered
// in this order.
func (b *Board) Add(name string, members []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seats = append(b.seats, seat{name: name, members: members, since: time.Now()})
}

// Watch notes that the calls of a group run on streams.
func (b *Board) Watch(group int, s *Watched) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seats[group].streams = s
}

// Begin is when this rank begins a call of a group: what it is all members say alike. It
// allocates nothing.
func (b *Board) Begin(group int, step int64, what string) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.seats[group]
	s.sequence++
	s.open, s.step, s.what, s.since = true, step, what, now
}

// End is when the call is done. One that failed stays open, for the verdict.
func (b *Board) End(group int) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.seats[group]
	s.open, s.since = false, now
	if s.streams != nil {
		s.streams.Forget()
	}
}

// Calls is where this rank stands.
func (b *Board) Calls() []coord.Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := make([]coord.Call, 0, len(b.seats))
	for i := range b.seats {
		s := &b.seats[i]
		c := coord.Call{Group: s.name, Members: s.members, Sequence: s.sequence, Open: s.open, Waited: s.open, Since: time.Since(s.since)}
		if s.sequence > 0 {
			c.What = fmt.Sprintf("step %d, %s", s.step, s.what)
		}
		if s.open && s.streams != nil {
			c.Waits = s.streams.Waits()
		}
		calls = append(calls, c)
	}
	return calls
}

// Name is that of a group.
func (b *Board) Name(group int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seats[group].name
}

// Watched are streams that know whom they wait for.
type Watched struct {
	transport.Streams
	peers map[transport.Stream]int

	mu      sync.Mutex
	in, out transport.Stream
}

// NewWatched watches streams of these members, of which this rank is me.
func NewWatched(s transport.Streams, members []int, me int) *Watched {
	w := &Watched{Streams: s, peers: map[transport.Stream]int{}}
	for _, r := range members {
		if r != me {
			w.peers[s.To(r)] = r
		}
	}
	return w
}

// Park implements transport.Streams.
func (w *Watched) Park(ctx context.Context, in, out transport.Stream) error {
	w.mu.Lock()
	w.in, w.out = in, out
	w.mu.Unlock()
	return w.Streams.Park(ctx, in, out)
}

// Forget is when nothing is waited for any more.
func (w *Watched) Forget() {
	w.mu.Lock()
	w.in, w.out = nil, nil
	w.mu.Unlock()
}

// Waits are the ranks of which bytes or room are waited for.
func (w *Watched) Waits() (ranks []int) {
	w.mu.Lock()
	in, out := w.in, w.out
	w.mu.Unlock()
	for _, awaited := range []transport.Stream{in, out} {
		if rank, ok := w.peers[awaited]; ok && !slices.Contains(ranks, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
