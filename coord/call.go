package coord

import (
	"fmt"
	"time"

	"github.com/gangline/gangline/coord/verdict"
)

// Limits of what a rank says of its calls.
const (
	// MaxCalls bounds the groups of which a rank tells.
	MaxCalls = 64
	// VerdictGrace is how long the coordinator waits for ranks to say where they
	// stand, once one has reported a call in trouble.
	VerdictGrace = 400 * time.Millisecond
)

// Call is where a rank stands in one group.
type Call = verdict.Call

// Absent is a rank that others waited for in vain.
type Absent = verdict.Absent

// trial collects where the ranks stand after one has reported a call in trouble.
type trial struct {
	first   Fail
	answers []answer
	blames  map[int]int
}

// answer is where a rank stands.
type answer struct {
	given bool
	at    time.Duration
	calls []Call
}

// accuse opens a trial, or adds a report to the one that is open.
func (c *Core) accuse(now time.Duration, ev Fail, cause *AbortError) ([]Action, string) {
	var ask []Action
	why := fmt.Sprintf("%s reports what holds it up, too: %s", c.who(ev.Rank), ev.Text)
	if c.trial == nil {
		c.trial = &trial{first: ev, answers: make([]answer, c.cfg.World), blames: map[int]int{}}
		peer := NoRank
		if ev.Kind == Failed {
			peer = ev.Peer
		}
		_, why = c.suspectUntil(suspicion{due: now + VerdictGrace, weight: weightPeer, cause: cause, blames: peer, tried: true})
		ask = []Action{Ask{}}
	}
	c.trial.answers[ev.Rank] = answer{given: true, at: now, calls: ev.Calls}
	if ev.Kind == Failed && ev.Peer >= 0 && ev.Peer < c.cfg.World {
		c.trial.blames[ev.Peer]++
		c.trial.blames[ev.Rank]++
	}
	if actions, settled := c.settleIfAll(now, why); actions != nil {
		return actions, settled
	}
	return ask, why
}

// hearState takes a rank's answer to Ask.
func (c *Core) hearState(now time.Duration, ev State) ([]Action, string) {
	if c.phase == Ended {
		return nil, c.late(fmt.Sprintf("where rank %d stands", ev.Rank))
	}
	c.members[ev.Rank].heard = now
	why := fmt.Sprintf("%s said where it stands", c.who(ev.Rank))
	if c.trial == nil || c.trial.answers[ev.Rank].given {
		return nil, why
	}
	c.trial.answers[ev.Rank] = answer{given: true, at: now, calls: ev.Calls}
	return c.settleIfAll(now, why)
}

// settleIfAll ends the trial if every rank has answered: there is nothing more to
// learn, since a rank that is lost does not answer.
func (c *Core) settleIfAll(now time.Duration, why string) ([]Action, string) {
	for rank := range c.members {
		if s := &c.members[rank]; !s.done && !c.trial.answers[rank].given {
			return nil, why
		}
	}
	if c.suspect == nil || !c.suspect.tried { // there is better evidence than any answer
		return nil, why
	}
	return c.abort(c.judge(now))
}

// judge makes the verdict of a trial.
func (c *Core) judge(now time.Duration) *AbortError {
	first := c.trial.first
	e := verdict.Evidence{
		First:  verdict.Report{Rank: first.Rank, Peer: NoRank, Group: first.Group, Text: first.Text},
		Blames: c.trial.blames, Ranks: make([]verdict.Rank, c.cfg.World), Age: now - c.started,
	}
	if first.Peer >= 0 && first.Peer < c.cfg.World && first.Peer != first.Rank {
		e.First.Peer = first.Peer
	}
	e.First.Kind = map[Kind]verdict.Kind{Overdue: verdict.Overdue, Mismatch: verdict.Mismatch}[first.Kind] // else Failed
	for rank := range c.members {
		s, a := &c.members[rank], c.trial.answers[rank]
		e.Ranks[rank] = verdict.Rank{Name: c.who(rank), Answered: a.given, Calls: a.calls, Heard: now - s.heard, Asked: now - a.at}
		if s.done {
			e.Ranks[rank].Done, e.Ranks[rank].Calls, e.Ranks[rank].Asked = true, s.calls, now-s.heard
		}
	}
	v := e.Judge()
	kinds := map[verdict.Kind]Kind{verdict.Failed: Failed, verdict.Overdue: Overdue, verdict.Mismatch: Mismatch}
	return &AbortError{Rank: v.Rank, Kind: kinds[v.Kind], Text: v.Text, Missing: v.Missing, Differ: v.Differ}
}

// Rank is this rank's number.
func (s *Session) Rank() int { return s.cfg.Rank }

// Led says that rank 0 hosts the coordinator.
func (s *Session) Led() bool { return s.cfg.Led }
