package gate

import (
	"fmt"
	"time"

	"github.com/gangline/gangline/ps/consistency"
)

// read answers a read, or lets it wait.
func (g *Gate) read(p *peer, ev *Event) error {
	r := read{request: ev.Request, clock: ev.Seq.Clock, version: ev.Version}
	if r.clock < 0 || r.clock-1 > p.clock {
		return fmt.Errorf("%w: rank %d reads for clock %d, shard %d has %d of it", ErrUsage, p.worker, r.clock, g.shard, p.clock)
	}
	why := g.hold(p, r)
	if why == "" {
		g.serve(p, r)
		return nil
	}
	if len(p.reads) >= ReadsMax {
		return fmt.Errorf("%w: rank %d has %d reads that wait, the limit is %d", ErrUsage, p.worker, len(p.reads), ReadsMax)
	}
	p.reads = append(p.reads, r)
	g.say("rank %d's read for clock %d waits: %s", p.worker, r.clock, why)
	return nil
}

// hold says why a read has to wait, or nothing.
func (g *Gate) hold(p *peer, r read) string {
	switch {
	case r.version > g.version:
		return fmt.Sprintf("it wants version %d, shard %d is at %d", r.version, g.shard, g.version)
	case p.standing == left:
		return ""
	case p.clock < r.clock:
		return fmt.Sprintf("its own clock %d is not whole", r.clock-1)
	case g.lead() && p.whole.there:
		return fmt.Sprintf("its own clock %d is undecided", p.whole.clock)
	case g.model.Kind == consistency.SSP:
		if slowest, clock := g.slowest(); clock < r.clock-g.model.Slack {
			return fmt.Sprintf("rank %d has %d clocks, the slack is %d", slowest, clock, g.model.Slack)
		}
	}
	return ""
}

// slowest returns the live worker with the fewest clocks; there is one, as who
// asks is live.
func (g *Gate) slowest() (consistency.Worker, int64) {
	var at *peer
	for i := range g.peers {
		if p := &g.peers[i]; p.standing == live && (at == nil || p.clock < at.clock) {
			at = p
		}
	}
	return at.worker, at.clock
}

func (g *Gate) serve(p *peer, r read) {
	p.seen = max(p.seen, g.version)
	g.counts.reads++
	a := Action{Kind: ActionServe, Worker: p.worker, Request: r.request, Clock: r.clock}
	if n := len(g.verdicts); n > 0 {
		a.Verdict = g.verdicts[n-1]
	}
	g.act(a)
	g.say("rank %d reads version %d for clock %d", p.worker, g.version, r.clock)
}

// wake serves all reads that waited for what has happened.
func (g *Gate) wake() {
	for i := range g.peers {
		p := &g.peers[i]
		kept := p.reads[:0]
		for _, r := range p.reads {
			if g.hold(p, r) == "" {
				g.serve(p, r)
			} else {
				kept = append(kept, r)
			}
		}
		p.reads = kept
	}
}

// unread refuses a worker's reads that wait.
func (g *Gate) unread(p *peer, err error) {
	for _, r := range p.reads {
		g.counts.refused++
		g.act(Action{Kind: ActionRefuse, Worker: p.worker, Request: r.request, Clock: r.clock, Err: err})
	}
	p.reads = p.reads[:0]
}

// unfinish drops what a worker can no longer bring to an end: a clock that is not
// whole and, at the lead, one that it was not ready with. Elsewhere the lead may
// have it in a set, so there it waits for the verdict.
func (g *Gate) unfinish(p *peer) {
	g.expireOpen(p)
	if g.lead() && !p.whole.ready {
		g.expire(p)
	}
}

// changed lets go on what waited for a worker whose standing has changed.
func (g *Gate) changed() {
	g.decide()
	g.wake()
}

func (g *Gate) lose(p *peer, how string) {
	if p.standing == lost {
		g.say("rank %d is known to be lost", p.worker)
		return
	}
	p.standing = lost
	g.say("rank %d %s", p.worker, how)
	g.unread(p, fmt.Errorf("rank %d %w", p.worker, ErrLost))
	g.unfinish(p)
	g.changed()
}

func (g *Gate) leave(p *peer) {
	p.standing = left
	g.say("rank %d has no more data", p.worker)
	g.unfinish(p)
	g.changed()
}

func (g *Gate) join(now time.Duration, p *peer, ev *Event) error {
	// More than any run has, and far from where numbers end.
	const clockMax = 1 << 62
	to := ev.Seq.Clock
	if to < 0 || to > clockMax {
		return fmt.Errorf("%w: rank %d joins at clock %d", ErrUsage, p.worker, to)
	}
	g.unread(p, fmt.Errorf("rank %d joined anew", p.worker))
	g.unfinish(p)
	for c := max(p.clock, to-OutcomesKept); c < to; c++ {
		p.note(c, consistency.Unknown)
	}
	p.clock = max(p.clock, to)
	p.standing, p.heard = live, now
	g.say("rank %d joins at clock %d", p.worker, p.clock)
	g.changed()
	return nil
}

// tick finds out who has been silent too long. Who waits for an answer is not
// silent: its time begins when it has it. Where the lead decides, only it judges.
func (g *Gate) tick(now time.Duration) {
	if g.ended || g.model.Deadline == 0 || g.model.Synchronous() && !g.lead() {
		return
	}
	for i := range g.peers {
		p := &g.peers[i]
		if len(p.reads) > 0 {
			p.heard = now
		}
		if silent := now - p.heard; p.standing == live && silent > g.model.Deadline {
			g.act(Action{Kind: ActionLost, Worker: p.worker, Clock: p.clock})
			g.lose(p, fmt.Sprintf("was silent for %v, the deadline is %v", silent, g.model.Deadline))
		}
	}
}

func (g *Gate) end() {
	if g.ended {
		return
	}
	for i := range g.peers {
		p := &g.peers[i]
		g.unread(p, ErrEnded)
		g.expireOpen(p)
		g.expire(p)
	}
	g.ended = true
	g.say("the run ends at version %d", g.version)
}
