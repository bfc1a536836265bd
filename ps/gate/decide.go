package gate

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/ps/consistency"
)

// ready takes a worker's word that all shards have its contribution.
func (g *Gate) ready(p *peer, ev *Event) error {
	clock := ev.Seq.Clock
	switch {
	case !g.lead():
		return fmt.Errorf("%w: rank %d is ready at shard %d, which does not lead (kind %s)", ErrUsage, p.worker, g.shard, g.model.Kind)
	case clock < 0 || clock >= p.clock:
		return fmt.Errorf("%w: rank %d is ready with clock %d, of which shard %d has not everything", ErrUsage, p.worker, clock, g.shard)
	case ev.Base < 0 || ev.Base > g.version:
		return fmt.Errorf("%w: rank %d is ready with clock %d made of version %d, the lead is at %d", ErrUsage, p.worker, clock, ev.Base, g.version)
	}
	c := &p.whole
	if !c.there || c.clock != clock || c.ready {
		outcome := p.outcome(clock)
		if outcome == consistency.Unknown && clock >= p.clock-OutcomesKept {
			return fmt.Errorf("%w: rank %d is ready with clock %d, which it never pushed", ErrUsage, p.worker, clock)
		}
		g.answerReady(p, ev)
		g.say("rank %d's clock %d is %v", p.worker, clock, outcome)
		return nil
	}
	if ev.Base < g.version { // another shard served it an older version
		c.there = false
		g.drop(p, clock, consistency.Late)
		g.say("rank %d's clock %d was made of version %d on some shard, the lead is at %d: late", p.worker, clock, ev.Base, g.version)
	} else {
		c.ready = true
		g.say("rank %d's clock %d is on all shards", p.worker, clock)
		g.decide()
	}
	g.answerReady(p, ev)
	g.wake()
	return nil
}

func (g *Gate) answerReady(p *peer, ev *Event) {
	g.act(Action{Kind: ActionReply, Worker: p.worker, Request: ev.Request, Clock: ev.Seq.Clock, Outcome: p.outcome(ev.Seq.Clock)})
}

// quorum returns how many contributions make the version: those that are wanted,
// or all that are there or can still come if those are fewer.
func (g *Gate) quorum() (need, there int) {
	can := 0
	for i := range g.peers {
		p := &g.peers[i]
		switch {
		case p.whole.there && p.whole.ready:
			there++
			can++
		case p.standing == live || p.standing == lost && g.model.Waits():
			can++
		}
	}
	if g.model.Kind == consistency.Quorum {
		return min(g.model.K, can), there
	}
	return can, there
}

// decide ends the version if its quorum is there.
func (g *Gate) decide() {
	if !g.lead() {
		return
	}
	need, there := g.quorum()
	if there == 0 || there < need {
		return
	}
	var of []*peer
	var set []contribution
	for i := range g.peers {
		if p := &g.peers[i]; p.whole.there && p.whole.ready {
			of, set = append(of, p), append(set, p.whole)
		}
	}
	v := g.verdict(of, set)
	g.say("%d of %d", there, need)
	g.carryOut(v)
}

// verdict makes the verdict on a set, by the contract of normalisation.
func (g *Gate) verdict(of []*peer, set []contribution) consistency.Verdict {
	v := consistency.Verdict{Version: g.version, Rate: 1}
	var weights, weighing float64
	for i, c := range set {
		m := consistency.Member{Worker: of[i].worker, Clock: c.clock, Base: c.base, Weight: c.Weight, Scale: 1}
		if g.model.Scale == consistency.Mean {
			m.Scale = 0
			if c.Weight > 0 {
				m.Scale = 1 / c.Weight
			}
		}
		v.Set = append(v.Set, m)
		weights += c.Weight
		v.Loss += c.Loss
		if c.Weight > 0 {
			weighing++
		}
		if !c.Finite {
			v.Faulty = append(v.Faulty, m.Worker)
		}
	}
	switch g.model.Scale { //nolint:exhaustive // Weighted is the default
	case consistency.Mean:
		v.Total = weighing
	case consistency.Sum:
		v.Total = 1
	default:
		v.Total = weights
	}
	v.Skipped = weighing == 0 || len(v.Faulty) > 0
	return v
}

// carryOut ends the version by a verdict whose members are all there; what else
// was made of the version is late.
func (g *Gate) carryOut(v consistency.Verdict) {
	kind, outcome := ActionApply, consistency.Applied
	if v.Skipped {
		kind, outcome = ActionSkip, consistency.Skipped
		g.counts.skipped++
	} else {
		g.counts.applied++
	}
	g.act(Action{Kind: kind, Outcome: outcome, Verdict: v})
	g.version++
	for _, m := range v.Set {
		p := &g.peers[g.at[m.Worker]]
		p.whole = contribution{}
		p.end(m.Clock, outcome)
		if !v.Skipped {
			p.stale[0]++
		}
	}
	for i := range g.peers {
		if p := &g.peers[i]; p.whole.there {
			p.whole.there = false
			g.drop(p, p.whole.clock, consistency.Late)
		}
	}
	if len(g.verdicts) == verdictsKept {
		g.verdicts = slices.Delete(g.verdicts, 0, 1)
	}
	g.verdicts = append(g.verdicts, v)
	g.say("%v: version %d", outcome, g.version)
}

// hear takes the lead's verdict, from whoever brings it.
func (g *Gate) hear(v *consistency.Verdict) error {
	if !g.model.Synchronous() {
		return fmt.Errorf("%w: a verdict, under %s", ErrUsage, g.model.Kind)
	}
	if v.Version < g.version {
		for i := range g.verdicts {
			if old := &g.verdicts[i]; old.Version == v.Version && !same(old, v) {
				return fmt.Errorf("%w: conflicting verdicts on version %d: %v and %v", ErrUsage, v.Version, old.Set, v.Set)
			}
		}
		g.say("the verdict on version %d is known", v.Version)
		return nil
	}
	if g.lead() || v.Version > g.version {
		return fmt.Errorf("%w: a verdict on version %d, shard %d is at %d", ErrUsage, v.Version, g.shard, g.version)
	}
	of, set, err := g.members(v)
	if err != nil {
		return err
	}
	mine := g.verdict(of, set) // from what is stored here: the same, unless somebody errs
	if !same(&mine, v) {
		return fmt.Errorf("%w: the verdict on version %d divides by %v (skipped: %v), by what shard %d has stored it is %v (%v)",
			ErrUsage, v.Version, v.Total, v.Skipped, g.shard, mine.Total, mine.Skipped)
	}
	g.carryOut(mine)
	g.wake()
	return nil
}

// members finds the contributions of a verdict among what is stored.
func (g *Gate) members(v *consistency.Verdict) (of []*peer, set []contribution, err error) {
	if len(v.Set) == 0 {
		return nil, nil, fmt.Errorf("%w: a verdict on version %d without a set", ErrUsage, v.Version)
	}
	for i, m := range v.Set {
		if i > 0 && v.Set[i-1].Worker >= m.Worker {
			return nil, nil, fmt.Errorf("%w: the set of version %d is not ordered by rank: %v", ErrUsage, v.Version, v.Set)
		}
		at, ok := g.at[m.Worker]
		if !ok {
			return nil, nil, fmt.Errorf("%w: the set of version %d names rank %d, which is no worker", ErrUsage, v.Version, m.Worker)
		}
		p := &g.peers[at]
		if c := &p.whole; !c.there || c.clock != m.Clock || c.Weight != m.Weight {
			return nil, nil, fmt.Errorf("%w: the set of version %d names clock %d of rank %d with weight %v, which shard %d has not stored",
				ErrUsage, v.Version, m.Clock, m.Worker, m.Weight, g.shard)
		}
		of, set = append(of, p), append(set, p.whole)
	}
	return of, set, nil
}

func same(a, b *consistency.Verdict) bool {
	return a.Total == b.Total && a.Skipped == b.Skipped && slices.EqualFunc(a.Set, b.Set, func(x, y consistency.Member) bool {
		return x.Worker == y.Worker && x.Clock == y.Clock && x.Weight == y.Weight
	})
}
