package gate

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/ps/consistency"
)

// push takes a piece of a contribution.
func (g *Gate) push(p *peer, ev *Event) error {
	seq := ev.Seq
	if seq.Clock < p.clock {
		return g.repeated(p, ev)
	}
	if err := g.checkPush(p, ev); err != nil {
		return err
	}
	o := &p.open
	word, bit := int(seq.Piece)/64, uint64(1)<<(seq.Piece%64)
	if word < len(o.got) && o.got[word]&bit != 0 {
		g.duplicate(p, ev, consistency.Pending)
		return nil
	}
	if o.pieces == 0 {
		o.base = ev.Base
		p.counts.Pushed++
	}
	for len(o.got) <= word {
		o.got = append(o.got, 0)
	}
	o.got[word] |= bit
	o.pieces++
	o.base = min(o.base, ev.Base)
	if seq.Last {
		o.last, o.ballot = int(seq.Piece), ev.Ballot
	}
	g.act(Action{Kind: ActionKeep, Worker: p.worker, Request: ev.Request, Clock: seq.Clock, Piece: seq.Piece, Outcome: consistency.Pending})
	if o.last < 0 || o.pieces <= o.last {
		g.act(Action{Kind: ActionReply, Worker: p.worker, Request: ev.Request, Clock: seq.Clock, Piece: seq.Piece, Outcome: consistency.Pending})
		g.say("piece %d of rank %d's clock %d is kept", seq.Piece, p.worker, seq.Clock)
		return nil
	}
	g.close(p)
	g.act(Action{Kind: ActionReply, Worker: p.worker, Request: ev.Request, Clock: seq.Clock, Piece: seq.Piece, Outcome: p.outcome(seq.Clock)})
	g.wake()
	return nil
}

// checkPush refuses what no correct worker sends.
func (g *Gate) checkPush(p *peer, ev *Event) error {
	o, seq := &p.open, ev.Seq
	switch w := ev.Ballot.Weight; {
	case p.standing == left:
		return fmt.Errorf("%w: rank %d pushes clock %d after it had left", ErrUsage, p.worker, seq.Clock)
	case seq.Clock > p.clock:
		return fmt.Errorf("%w: rank %d pushes clock %d before its clock %d is whole", ErrUsage, p.worker, seq.Clock, p.clock)
	case seq.Clock == math.MaxInt64:
		return fmt.Errorf("%w: rank %d pushes clock %d, the greatest number", ErrUsage, p.worker, seq.Clock)
	case seq.Piece >= PiecesMax:
		return fmt.Errorf("%w: rank %d pushes piece %d of clock %d, the limit is %d pieces", ErrUsage, p.worker, seq.Piece, seq.Clock, PiecesMax)
	case o.last >= 0 && (int(seq.Piece) > o.last || seq.Last && int(seq.Piece) != o.last):
		return fmt.Errorf("%w: rank %d pushes piece %d of clock %d, of which piece %d was the last", ErrUsage, p.worker, seq.Piece, seq.Clock, o.last)
	case seq.Last && o.last < 0 && o.beyond(int(seq.Piece)):
		return fmt.Errorf("%w: rank %d says that piece %d of clock %d is the last, and had pushed a later one", ErrUsage, p.worker, seq.Piece, seq.Clock)
	case ev.Base < 0 || ev.Base > p.seen:
		return fmt.Errorf("%w: rank %d pushes clock %d made of version %d, the newest that shard %d has served to it is %d",
			ErrUsage, p.worker, seq.Clock, ev.Base, g.shard, p.seen)
	case seq.Last && (w < 0 || math.IsNaN(w) || math.IsInf(w, 0)):
		return fmt.Errorf("%w: rank %d pushes clock %d with weight %v", ErrUsage, p.worker, seq.Clock, w)
	case g.lead() && p.whole.there:
		return fmt.Errorf("%w: rank %d pushes clock %d while its clock %d is undecided: it has to be ready with that, and to read, before",
			ErrUsage, p.worker, seq.Clock, p.whole.clock)
	}
	return nil
}

// beyond reports whether a piece after this one has come.
func (o *open) beyond(piece int) bool {
	for i := piece + 1; i < 64*len(o.got); i++ {
		if o.got[i/64]&(1<<(i%64)) != 0 {
			return true
		}
	}
	return false
}

// repeated answers a push of a clock that is closed.
func (g *Gate) repeated(p *peer, ev *Event) error {
	c := ev.Seq.Clock
	outcome := p.outcome(c)
	if c < 0 || outcome == consistency.Unknown && c >= p.clock-OutcomesKept {
		return fmt.Errorf("%w: rank %d pushes clock %d, which shard %d passed over when the rank joined at a later one", ErrUsage, p.worker, c, g.shard)
	}
	g.duplicate(p, ev, outcome)
	return nil
}

func (g *Gate) duplicate(p *peer, ev *Event, outcome consistency.Outcome) {
	g.counts.duplicates++
	g.act(Action{
		Kind: ActionReply, Worker: p.worker, Request: ev.Request, Clock: ev.Seq.Clock, Piece: ev.Seq.Piece,
		Outcome: outcome, Duplicate: true,
	})
	g.say("rank %d repeats clock %d, piece %d: %v", p.worker, ev.Seq.Clock, ev.Seq.Piece, outcome)
}

// close ends the open clock, which is whole, and decides about it or lets it wait.
func (g *Gate) close(p *peer) {
	c := contribution{there: true, clock: p.clock, base: p.open.base, Ballot: p.open.ballot}
	p.shut()
	switch {
	case !g.model.Synchronous():
		g.admit(p, c)
	case c.base < g.version:
		g.drop(p, c.clock, consistency.Late)
		g.say("rank %d's clock %d was made of version %d, the shard is at %d: late", p.worker, c.clock, c.base, g.version)
	default:
		// At the lead, nothing is whole here. Elsewhere a worker gives a second
		// contribution to one version only if the lead has dropped the first: it
		// was older on another shard, or its worker joined anew. No verdict will
		// name it.
		if p.whole.there {
			g.drop(p, p.whole.clock, consistency.Late)
		}
		c.ready = g.lead() && g.shards == 1
		p.whole = c
		p.note(c.clock, consistency.Pending)
		g.say("rank %d's clock %d is whole", p.worker, c.clock)
		g.decide()
	}
}

// shut makes the open clock a closed one.
func (p *peer) shut() {
	clear(p.open.got)
	p.open = open{got: p.open.got[:0], last: -1}
	p.clock++
	p.note(p.clock-1, consistency.Unknown)
}

// admit applies or drops a contribution under asp and ssp.
func (g *Gate) admit(p *peer, c contribution) {
	staleness := g.version - c.base
	if lag := g.model.MaxVersionLag; lag != consistency.Unbounded && staleness > lag {
		g.drop(p, c.clock, consistency.Late)
		g.say("rank %d's clock %d is %d versions behind, the bound is %d: late", p.worker, c.clock, staleness, lag)
		return
	}
	v := g.verdict([]*peer{p}, []contribution{c})
	if v.Skipped {
		p.end(c.clock, consistency.Skipped)
		g.counts.skipped++
		g.act(Action{Kind: ActionSkip, Worker: p.worker, Clock: c.clock, Outcome: consistency.Skipped, Verdict: v, Staleness: staleness})
		g.say("rank %d's clock %d is not finite, or weighs nothing: skipped", p.worker, c.clock)
		return
	}
	if g.model.Stale == consistency.Inverse {
		v.Rate = 1 / float64(1+staleness)
	}
	p.end(c.clock, consistency.Applied)
	p.stale[staleness]++
	g.counts.applied++
	g.act(Action{Kind: ActionApply, Worker: p.worker, Clock: c.clock, Outcome: consistency.Applied, Verdict: v, Staleness: staleness})
	g.version++
	g.say("rank %d's clock %d is version %d, %d behind", p.worker, c.clock, g.version, staleness)
}

// drop ends a contribution whose clock is closed.
func (g *Gate) drop(p *peer, clock int64, outcome consistency.Outcome) {
	p.end(clock, outcome)
	g.act(Action{Kind: ActionDrop, Worker: p.worker, Clock: clock, Outcome: outcome})
}

// expire drops what is whole and undecided.
func (g *Gate) expire(p *peer) {
	if p.whole.there {
		g.drop(p, p.whole.clock, consistency.Expired)
		p.whole = contribution{}
	}
}

// expireOpen drops what is not whole, and closes its clock.
func (g *Gate) expireOpen(p *peer) {
	if p.open.pieces > 0 {
		clock := p.clock
		p.shut()
		g.drop(p, clock, consistency.Expired)
	}
}

func (p *peer) end(clock int64, outcome consistency.Outcome) {
	p.counts.End(outcome)
	p.note(clock, outcome)
}

func (p *peer) note(clock int64, outcome consistency.Outcome) {
	p.outcomes[clock%OutcomesKept] = outcome
}

// outcome returns what is known of a clock.
func (p *peer) outcome(clock int64) consistency.Outcome {
	switch {
	case clock == p.clock && p.open.pieces > 0:
		return consistency.Pending
	case clock < 0 || clock >= p.clock:
		return consistency.Unknown
	case p.whole.there && clock == p.whole.clock: // may be far behind, after a join
		return consistency.Pending
	case clock < p.clock-OutcomesKept:
		return consistency.Unknown
	}
	return p.outcomes[clock%OutcomesKept]
}
