// Package mem is the transport in one process: ranks are endpoints of one
// Network, messages are copies.
//
// It waits on channels only, so it works under testing/synctest: links may have
// delay and bandwidth, which then cost virtual time, and faults come where the
// test wants them. With neither, a message costs a lock, a copy and a wake-up,
// and nothing is allocated once warm.
//
// # Time
//
// A message leaves its sender when the receive is posted and the link is free;
// it takes the link for bytes / BytesPerSecond, which is when Send returns, and
// arrives Delay later. A posted receive is known at the other end at once:
// real credits take one more Delay unless posted early.
//
// # Faults
//
// Kill ends a rank as a crash would, Cut breaks one pair's connection, Pause
// stops a rank's traffic until Resume. Options.Fault does the same at a given
// message.
package mem

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gangline/gangline/transport"
)

// MaxRanks bounds a network: it keeps a link for every pair.
const MaxRanks = 1024

// Link describes the way from one rank to another.
type Link struct {
	Delay          time.Duration // from last byte out to last byte in; 0 is at once
	BytesPerSecond float64       // 0 is without limit
}

// Message is what a fault function is told of a message about to leave.
type Message struct {
	From, To int
	Tag      uint32
	Bytes    int
}

// Fault is what happens to a message in place of its delivery.
type Fault int

// Faults.
const (
	// None: the message is delivered.
	None Fault = iota
	// Cut: the connection of the two ranks breaks, the message is gone.
	Cut
	// KillSender: the sender dies.
	KillSender
	// KillReceiver: the receiver dies.
	KillReceiver
	// PauseSender: the sender pauses before the message leaves.
	PauseSender
	// PauseReceiver: the receiver pauses before the message leaves.
	PauseReceiver
)

// Options of a network. The zero value is a network without time or faults.
type Options struct {
	// Link describes the way from one rank to another; nil is without delay
	// or limit. It is called once a pair, when the network is made.
	Link func(from, to int) Link
	// Fault is asked about every message at the start of its Send; nil is
	// None. It is called by the senders' goroutines.
	Fault func(Message) Fault
}

// Network connects the ranks 0 to n-1 of one process. Its methods may be called
// from any goroutine.
type Network struct {
	endpoints []*Endpoint
	links     []*link // from*n + to
	fault     func(Message) Fault

	mu     sync.Mutex // held while ranks stop, pause or resume
	paused []bool
}

// NewNetwork returns a network of n ranks; at most one Options is used. It
// panics if n is below 1 or above MaxRanks.
func NewNetwork(n int, options ...Options) *Network {
	if n < 1 || n > MaxRanks {
		panic(fmt.Sprintf("mem: network of %d ranks, want 1 to %d", n, MaxRanks))
	}
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	w := &Network{
		endpoints: make([]*Endpoint, n),
		links:     make([]*link, n*n),
		fault:     o.Fault,
		paused:    make([]bool, n),
	}
	start := time.Now()
	for rank := range n {
		w.endpoints[rank] = &Endpoint{network: w, rank: rank, heard: make([]time.Time, n)}
	}
	for from := range n {
		for to := range n {
			if from == to {
				continue
			}
			l := &link{from: w.endpoints[from], to: w.endpoints[to]}
			if o.Link != nil {
				l.Link = o.Link(from, to)
			}
			w.links[from*n+to] = l
			w.endpoints[from].heard[to] = start
		}
	}
	return w
}

// Endpoint returns the endpoint of rank, the same one every time.
func (w *Network) Endpoint(rank int) *Endpoint { return w.endpoints[rank] }

// Endpoints returns all endpoints in order of rank.
func (w *Network) Endpoints() []transport.Endpoint {
	out := make([]transport.Endpoint, len(w.endpoints))
	for i, e := range w.endpoints {
		out[i] = e
	}
	return out
}

// Kill ends rank as a crash would: what is under way is gone, and every wait
// and later operation of others with it fails with transport.ErrPeerLost. Its
// own fail with transport.ErrClosed.
func (w *Network) Kill(rank int) {
	w.stop(rank, fmt.Errorf("rank %d was killed: %w", rank, transport.ErrClosed), transport.ErrPeerLost)
}

// Cut breaks the connection of ranks a and b: each has lost the other.
func (w *Network) Cut(a, b int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touch(a)
	w.touch(b)
	w.link(a, b).fail(transport.ErrPeerLost, transport.ErrPeerLost, true)
	w.link(b, a).fail(transport.ErrPeerLost, transport.ErrPeerLost, true)
}

// Pause stops all traffic from and to rank until Resume, as a stopped process
// or a dead switch would. Nothing fails; LastHeard tells.
func (w *Network) Pause(rank int) { w.setPaused(rank, true) }

// Resume ends a Pause; what waited leaves in order.
func (w *Network) Resume(rank int) { w.setPaused(rank, false) }

func (w *Network) setPaused(rank int, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused[rank] == on {
		return
	}
	if on {
		w.touch(rank)
	}
	w.paused[rank] = on
	for other := range w.endpoints {
		if other != rank {
			w.link(rank, other).setPaused(on)
			w.link(other, rank).setPaused(on)
		}
	}
}

// stop ends all operations of rank with own and those of others with it with
// theirs. A crash (theirs is ErrPeerLost) takes with it what is under way.
func (w *Network) stop(rank int, own, theirs error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.endpoints[rank]
	if e.stopped.Load() {
		return
	}
	w.touch(rank)
	e.stopped.Store(true)
	crash := errors.Is(theirs, transport.ErrPeerLost)
	for other := range w.endpoints {
		if other != rank {
			w.link(rank, other).fail(own, theirs, crash)
			w.link(other, rank).fail(theirs, own, true)
		}
	}
}

// touch notes that rank and the others hear each other no longer than until
// now. It comes before a change that may end that. w.mu is held.
func (w *Network) touch(rank int) {
	now := time.Now()
	for other, e := range w.endpoints {
		if other != rank && w.hears(other, rank) {
			e.heard[rank] = now
			w.endpoints[rank].heard[other] = now
		}
	}
}

// hears says whether rank would hear from peer now, had peer anything to say.
// w.mu is held.
func (w *Network) hears(rank, peer int) bool {
	if w.paused[rank] || w.paused[peer] || w.endpoints[rank].stopped.Load() || w.endpoints[peer].stopped.Load() {
		return false
	}
	return !w.link(peer, rank).broken()
}

func (w *Network) link(from, to int) *link { return w.links[from*len(w.endpoints)+to] }

// apply does what the fault function asked for; the Send then meets its effect.
func (w *Network) apply(f Fault, from, to int) {
	switch f {
	case None:
	case Cut:
		w.Cut(from, to)
	case KillSender:
		w.Kill(from)
	case KillReceiver:
		w.Kill(to)
	case PauseSender:
		w.Pause(from)
	case PauseReceiver:
		w.Pause(to)
	default:
		panic(fmt.Sprintf("mem: unknown fault %d", f))
	}
}
