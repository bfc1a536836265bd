//go:build unix

package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/transport"
)

const (
	// spinDefault is about what the peer takes for two blocks through a socket, and longer than
	// most ranks of a step come after the first: to be woken takes 50 us of a virtual machine.
	spinDefault = 200 * time.Microsecond
	politeAfter = 3 * time.Microsecond // of spinning, the peer may be waiting for this very core
	looks       = 64                   // at memory, between two at the clock
	// keptLong is a slice of another process, rather than a peer's answer or a batch that this
	// one reads ahead.
	keptLong = 600 * time.Microsecond
	// After that so many waits are slept through, twice as many each time, and half as many
	// again when it did not happen: once it may have been the host of a virtual machine.
	crowdedLeast = 4
	crowdedMost  = 64
	yields       = 4 // where there is no core to spare
	linger       = time.Second
)

// Group is a rank's streams with the members of a group. Open makes it.
type Group struct {
	cfg     Config
	spin    time.Duration // 0 is not to spin
	slice   time.Duration // of sleep
	crowded int           // waits that are to sleep at once
	spell   int           // how many there were the last time
	block   int           // see Block
	bodies  []body        // of the members but this one, in their order
	byRank  map[int]body
	polled  []unix.PollFd // one for each of bodies
	closed  atomic.Bool
	parking sync.Mutex // held by Park, and by Close
}

var _ transport.BlockStreams = (*Group)(nil)

// To implements transport.Streams.
func (g *Group) To(peer int) transport.Stream {
	if b, ok := g.byRank[peer]; ok {
		return b
	}
	return nil
}

// Block implements transport.BlockStreams.
func (g *Group) Block() int { return g.block }

// Path returns how the bytes of this rank and peer cross; Auto if they do not.
func (g *Group) Path(peer int) Path {
	if b, ok := g.byRank[peer]; ok {
		return b.base().path
	}
	return Auto
}

// Stats implements transport.Streams. Messages are not counted, there are none.
// LastHeard is when the last Park for a peer's bytes began before which bytes of that peer
// were read, so it is never before they came, and before the wait for those that are missing.
func (g *Group) Stats() transport.Stats {
	s := transport.Stats{LastHeard: make([]time.Time, g.cfg.World)}
	for _, b := range g.bodies {
		l := b.base()
		s.BytesSent += l.sent.Load()
		s.BytesReceived += l.received.Load()
		s.LastHeard[l.peer] = l.lastHeard()
	}
	s.LastHeard[g.cfg.Rank] = time.Now()
	return s
}

// Park implements transport.Streams. A member that is lost ends it with a
// *transport.PeerError, even if it is neither in nor out: a collective of the group
// cannot end without it.
func (g *Group) Park(ctx context.Context, in, out transport.Stream) error {
	a, err := g.own(in)
	if err != nil {
		return err
	}
	b, err := g.own(out)
	if err != nil {
		return err
	}
	g.parking.Lock()
	defer g.parking.Unlock()
	if !g.closed.Load() && ready(a, b) {
		return nil
	}
	begin := time.Now()
	if a != nil {
		a.base().note(begin.UnixNano())
	}
	for !g.closed.Load() {
		if g.watch(a, b, begin) {
			return nil
		}
		if err := g.lost(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if g.doze(ctx, a, b) {
			return nil
		}
		begin = time.Time{} // do not spin again
	}
	return transport.ErrClosed
}

// own returns the body of a stream, nil of nil.
func (g *Group) own(s transport.Stream) (body, error) {
	if s == nil {
		return nil, nil
	}
	b, ok := s.(body)
	if !ok || b.base().g != g {
		return nil, errors.New("streams: park on a stream of another group")
	}
	return b, nil
}

func ready(in, out body) bool {
	return in != nil && in.readable() || out != nil && out.writable()
}

// watch looks for a while.
func (g *Group) watch(in, out body, begin time.Time) bool {
	if ready(in, out) {
		return true
	}
	if begin.IsZero() {
		return false
	}
	if g.spin == 0 {
		for range yields {
			yield()
			if g.look(in, out) {
				return true
			}
		}
		return false
	}
	for waited := time.Duration(0); waited < g.spin; waited = time.Since(begin) {
		if waited > politeAfter && !g.polite(begin, waited) {
			return false
		}
		if g.look(in, out) {
			return true
		}
	}
	return false
}

// look takes about a tenth of a microsecond, or a system call or two.
func (g *Group) look(in, out body) bool {
	from, reads := in.(*socket)
	polls := needsPoll(out)
	if reads || polls {
		return reads && from.try() || polls && g.poll(0, in, out) || ready(in, out)
	}
	for range looks {
		if ready(in, out) {
			return true
		}
	}
	return false
}

func needsPoll(b body) bool {
	_, ok := b.(*socket)
	return ok
}

// polite lets others have this core, if it does any good: where one of them kept it for
// long there is more to do than cores, and to sleep for a while is better, since a
// sleeper that is woken comes first. At a load of 20 on two cores, 4 KiB to another
// process and back took 27 us in place of 58 over shared memory, and 72 in place of 137
// over tcp.
func (g *Group) polite(begin time.Time, waited time.Duration) bool {
	if g.crowded > 0 {
		g.crowded--
		return false
	}
	yield()
	if time.Since(begin)-waited > keptLong {
		g.spell = min(max(2*g.spell, crowdedLeast), crowdedMost)
		g.crowded = g.spell
	} else {
		g.spell /= 2
	}
	return true
}

// doze sleeps until something happens, for one slice at most.
func (g *Group) doze(ctx context.Context, in, out body) bool {
	wait := g.slice
	if end, ok := ctx.Deadline(); ok {
		wait = max(0, min(wait, time.Until(end)+time.Millisecond-1))
	}
	g.tell(in, out, true)
	defer g.tell(in, out, false)
	if ready(in, out) { // what came before the peer could see that this rank sleeps
		return true
	}
	return g.poll(int(wait/time.Millisecond), in, out)
}

// tell says to the peers of in and out that this rank sleeps, or no more.
func (g *Group) tell(in, out body, asleep bool) {
	for i, b := range [2]body{in, out} {
		switch {
		case b == nil || i == 1 && out == in:
		case asleep:
			b.sleep(b == in, b == out)
		default:
			b.wake()
		}
	}
}

// poll waits for an event of any peer, ms milliseconds at most, and reports whether
// in or out is ready.
func (g *Group) poll(ms int, in, out body) bool {
	for i, b := range g.bodies {
		l := b.base()
		g.polled[i] = unix.PollFd{Fd: int32(l.sock)}
		if l.end != nil || l.err != nil {
			g.polled[i].Fd = -1
			continue
		}
		g.polled[i].Events = b.events(b == in, b == out)
	}
	var n int
	var err error
	if ms == 0 {
		n, err = pollNow(g.polled)
	} else {
		n, err = unix.Poll(g.polled, ms)
	}
	if err != nil || n == 0 { // interrupted: look again
		return ready(in, out)
	}
	hit := false
	for i, b := range g.bodies {
		found := g.polled[i].Revents
		if found == 0 {
			continue
		}
		b.heard(found)
		if needsPoll(b) {
			hit = hit || b == in && found&unix.POLLIN != 0 || b == out && found&unix.POLLOUT != 0
		}
	}
	return hit || ready(in, out)
}

// lost returns the error of a member that is lost.
func (g *Group) lost() error {
	for _, b := range g.bodies {
		if l := b.base(); l.lost() {
			return l.errorOf("wait for", l.end)
		}
	}
	return nil
}

// Close implements transport.Streams. It says bye to all peers and, where bytes could
// be destroyed otherwise, waits until they have closed too, a second at most.
func (g *Group) Close() error {
	if g.closed.Swap(true) {
		g.parking.Lock() // the first Close has ended when this is free
		defer g.parking.Unlock()
		return nil
	}
	g.parking.Lock()
	defer g.parking.Unlock()
	for _, b := range g.bodies {
		l := b.base()
		b.bye()
		l.err = l.errorOf("use stream with", transport.ErrClosed)
	}
	g.drain(time.Now().Add(linger))
	for _, b := range g.bodies {
		b.free()
	}
	return nil
}

// Abort ends the group as a crash would: no bye, the peers lose this rank. No call may
// be under way.
func (g *Group) Abort() {
	if g.closed.Swap(true) {
		return
	}
	g.parking.Lock()
	defer g.parking.Unlock()
	for _, b := range g.bodies {
		l := b.base()
		l.err = l.errorOf("use stream with", transport.ErrClosed)
		b.free()
	}
}

// drain drops what still comes, until all peers have ended.
func (g *Group) drain(deadline time.Time) {
	for {
		open := 0
		for i, b := range g.bodies {
			g.polled[i] = unix.PollFd{Fd: -1}
			if b.drop() {
				g.polled[i] = unix.PollFd{Fd: int32(b.base().sock), Events: unix.POLLIN}
				open++
			}
		}
		wait := time.Until(deadline)
		if open == 0 || wait <= 0 {
			return
		}
		_, _ = unix.Poll(g.polled, int(wait/time.Millisecond)+1) // the loop looks, whatever it returns
	}
}

// newGroup takes over the bodies, in the order of the members.
func newGroup(cfg Config, spin time.Duration, bodies []body) *Group {
	g := &Group{cfg: cfg, spin: spin, slice: sliceDefault, bodies: bodies, byRank: map[int]body{}, polled: make([]unix.PollFd, len(bodies))}
	now := time.Now().UnixNano()
	for _, b := range bodies {
		l := b.base()
		l.g = g
		l.heardAt.Store(now)
		g.byRank[l.peer] = b
	}
	return g
}

// String names the paths of a group, for the log.
func (g *Group) String() string {
	var by [TCP + 1]int
	for _, b := range g.bodies {
		by[b.base().path]++
	}
	return fmt.Sprintf("shm %d, unix %d, tcp %d", by[Shm], by[Unix], by[TCP])
}
