package simtest

import (
	"fmt"
	"time"

	"github.com/gangline/gangline/coord"
)

// coordinator runs one generation: coord.Core with streams to the members, and
// the launcher that sees processes end. Members reach it in order; what they
// say of a generation never reaches the core of another.
type coordinator struct {
	c            *cluster
	core         *coord.Core
	gen          uint32
	began        time.Duration
	tickAt       time.Duration // the earliest tick that is due
	stalledUntil time.Duration
	last         map[int]time.Duration // by rank: when the last it said arrives
	guilty       map[int]string        // ranks that really died or stopped, and how
}

// generation starts the processes of all ranks under a coordinator of their own.
func (c *cluster) generation() {
	c.gen++
	co := &coordinator{
		c: c, gen: c.gen, began: c.now, last: map[int]time.Duration{}, guilty: map[int]string{},
		core: coord.NewCore(coord.CoreConfig{
			World: c.s.world(), Generation: uint64(c.gen), JoinTimeout: joinLimit,
			HeartbeatTimeout: heartbeatLimit, LostGrace: lostGrace,
		}),
	}
	c.coordinator = co
	c.trouble = c.now
	for rank := range c.s.world() {
		m := &member{c: c, co: co, rank: rank, gen: c.gen}
		c.members[rank] = m
		m.after(c.control(), m.boot)
	}
	co.alarm()
}

// hear brings an event of a rank to the core, after those before it.
func (co *coordinator) hear(rank int, ev coord.Event) {
	at := max(co.c.now+co.c.control(), co.last[rank])
	co.last[rank] = at
	co.c.add(&event{at: at, do: func() { co.awake(0, func() { co.step(ev) }) }})
}

// awake does something at once, or late if the coordinator is stopped.
func (co *coordinator) awake(late time.Duration, do func()) {
	if co.c.now >= co.stalledUntil {
		do()
		return
	}
	co.c.after(co.stalledUntil-co.c.now+late, do)
}

// step is what coord.Server does around the core.
func (co *coordinator) step(ev coord.Event) {
	over := co.core.Phase() == coord.Ended
	actions, why := co.core.Step(co.c.now-co.began, ev)
	switch ev.(type) {
	case coord.Heard, coord.Tick: // too many to tell
	default:
		co.c.note("coordinator %d: %T: %s", co.gen, ev, why)
	}
	for _, a := range actions {
		if _, refusal := a.(coord.Refuse); over && !refusal {
			co.c.violate("the core of generation %d acts after its end: %T", co.gen, a)
		}
		co.act(a)
	}
	co.alarm()
}

// alarm has a tick come when the core asks for it.
func (co *coordinator) alarm() {
	due, some := co.core.Deadline()
	at := co.began + due
	if !some || co.tickAt > co.c.now && co.tickAt <= at {
		return
	}
	co.tickAt = max(at, co.c.now+1)
	tick := func() { co.step(coord.Tick{}) }
	// After a stop the timer and the streams are read in any order.
	co.c.add(&event{at: co.tickAt, do: func() { co.awake(time.Duration(co.c.rng.IntN(2)), tick) }})
}

func (co *coordinator) act(a coord.Action) {
	c := co.c
	switch a := a.(type) {
	case coord.Accept:
		c.members[a.Rank].beat()
	case coord.Refuse:
		// The stream ends; the process is ended with its generation.
	case coord.Start:
		c.checkFirsts()
		for _, m := range c.members {
			m.after(c.control(), m.start)
		}
	case coord.Abort:
		co.aborted(a.Cause)
	case coord.End:
		c.ended = true
	}
}

// aborted ends the generation: members hear of it and go, the launcher waits
// for all of them, and only then starts others. What they have sent stays on
// its way.
func (co *coordinator) aborted(cause *coord.AbortError) {
	c := co.c
	if cause.Rank == coord.NoRank || co.guilty[cause.Rank] == "" {
		c.violate("generation %d names rank %d (%s), but what happened is %v", co.gen, cause.Rank, cause.Text, co.guilty)
	}
	for _, m := range c.members {
		m.after(c.control(), m.kill)
	}
	c.after(50*time.Millisecond, func() {
		for _, m := range c.members {
			m.kill()
		}
		c.disk.lose(c.rng)
		c.restarts++
		c.after(c.control(), c.generation)
	})
}

// strike lets the faults of the scenario happen to a process that is about to
// do something. It reports whether the process is dead or stopped now.
func (c *cluster) strike(m *member) bool {
	hit := false
	for i := range c.s.faults {
		f := &c.s.faults[i]
		if c.struck[i] || f.rank != m.rank || f.gen != m.gen || float64(m.handled) < f.when*float64(c.usual[m.rank]) {
			continue
		}
		c.struck[i] = true
		c.trouble = max(c.trouble, c.now+f.lasts)
		switch f.kind {
		case crash:
			c.note("rank %d crashes", m.rank)
			m.crash()
			return true
		case pause:
			c.note("rank %d stops for %v", m.rank, f.lasts)
			m.pausedUntil = c.now + f.lasts
			if f.lasts >= longPause {
				m.co.guilty[m.rank] = "stopped"
			}
			hit = f.lasts > 0
		case clog:
			c.clogged[[2]int{f.rank, f.peer}] = c.now + f.lasts
		case stall:
			c.note("the coordinator stops for %v", f.lasts)
			m.co.stalledUntil = c.now + f.lasts
		}
	}
	return hit
}

// crash ends a process without a word. The launcher sees it exit, its streams
// break, and the other ranks miss it, in any order; but the launcher is sooner
// than coord.PeerGrace, which is what the coordinator counts on.
func (m *member) crash() {
	c, co := m.c, m.co
	m.kill()
	if m.finished() {
		return // nobody needs it any more
	}
	co.guilty[m.rank] = "crashed"
	soon := func(most time.Duration) time.Duration { return time.Duration(c.rng.Int64N(int64(most))) }
	if m.accepted {
		c.after(soon(480*time.Millisecond), func() { co.hear(m.rank, coord.Lost{Rank: m.rank, Text: "the stream broke"}) })
	}
	text := fmt.Sprintf("rank %d (pid %d) exited with status 1", m.rank, m.rank)
	c.after(soon(coord.PeerGrace-50*time.Millisecond), func() { co.awake(0, func() { co.step(coord.Exited{Rank: m.rank, Text: text}) }) })
	for _, o := range c.members {
		if o != m && !o.dead {
			o.after(soon(500*time.Millisecond), func() { o.missed(m.rank) })
		}
	}
}

// checkFirsts: all ranks go on from the same step.
func (c *cluster) checkFirsts() {
	for _, m := range c.members {
		if m.first != c.members[0].first {
			c.violate("rank %d begins with step %d, rank 0 with step %d", m.rank, m.first, c.members[0].first)
		}
	}
	c.rollback(c.members[0].first)
}

// digest is what the ranks compare when they join.
func (m *member) digest() string {
	return fmt.Sprintf("%s from step %d", m.c.problem.digest, m.first)
}
