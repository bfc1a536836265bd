package simtest

import (
	"time"

	"github.com/gangline/gangline/coord"
)

// member is a process of one generation: a worker or a server.
type member struct {
	c    *cluster
	co   *coordinator
	rank int
	gen  uint32

	first       int64 // the step it begins with
	accepted    bool
	started     bool
	failed      bool
	done        bool // has said so to the coordinator
	dead        bool
	pausedUntil time.Duration
	handled     int // events

	worker *worker
	store  *store
	early  []func() // what came before the start
}

// after makes something happen in the process, if it lives then.
func (m *member) after(d time.Duration, do func()) {
	m.c.add(&event{at: m.c.now + d, m: m, do: do})
}

// boot is what needs no other rank: the checkpoint to go on from, the plan.
func (m *member) boot() {
	c := m.c
	var err error
	from := c.disk.latest()
	if from != nil {
		m.first, err = from.step(c.problem)
	}
	if err == nil {
		if m.rank < c.s.workers {
			m.worker, err = newWorker(m, from)
		} else {
			m.store, err = newStore(m, from)
		}
	}
	if err != nil {
		c.violate("rank %d cannot begin: %v", m.rank, err)
		return
	}
	role := "worker"
	if m.store != nil {
		role = "server"
	}
	m.accepted = true
	m.say(coord.Hello{World: c.s.world(), Member: coord.Member{
		ID: role, Rank: m.rank, Role: role, Host: "host", PID: m.rank, Digest: m.digest(),
	}})
}

// say sends something to the coordinator.
func (m *member) say(ev coord.Event) { m.co.hear(m.rank, ev) }

// beat says every quarter of the limit that the process lives.
func (m *member) beat() {
	m.after(heartbeatLimit/4, func() {
		m.say(coord.Heard{Rank: m.rank})
		m.beat()
	})
}

// start begins the work: all ranks have joined.
func (m *member) start() {
	m.started = true
	if m.worker != nil {
		m.worker.proceed()
	}
	for _, do := range m.early {
		do()
	}
	m.early = nil
}

// take gets a message of this generation. What other ranks send before this one
// has heard of the start waits in the endpoint.
func (m *member) take(from int, tag uint32, body any) {
	do := func() {
		if m.worker != nil {
			m.worker.take(from, tag, body)
		} else {
			m.store.take(from, body)
		}
	}
	if m.started {
		do()
		return
	}
	m.early = append(m.early, do)
}

// missed learns that the connection to a rank broke.
func (m *member) missed(peer int) {
	if m.finished() {
		return
	}
	if m.store != nil {
		if !m.store.lost(peer) {
			return // it had said good bye, or is a server
		}
	}
	m.fail("connection lost", peer)
}

// fail reports an error, once; peer is the rank that may have caused it. A
// failed process does nothing more, but waits for the verdict.
func (m *member) fail(text string, peer int) {
	if m.failed {
		return
	}
	m.failed = true
	m.stop()
	m.say(coord.Fail{Rank: m.rank, Peer: peer, Text: text})
}

// finish reports that the rank has nothing left to do.
func (m *member) finish() {
	m.done = true
	m.say(coord.Done{Rank: m.rank})
}

// finished reports whether the coordinator has heard that the rank is done, so
// that its end means nothing.
func (m *member) finished() bool {
	_, done := m.co.core.Reports()[m.rank]
	return done || m.co.core.Phase() == coord.Ended
}

// kill ends the process at once.
func (m *member) kill() {
	m.dead = true
	m.stop()
}

// stop ends what blocks.
func (m *member) stop() {
	if m.worker != nil {
		m.worker.port.cancel()
	}
}
