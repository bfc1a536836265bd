package coord

import (
	"fmt"
	"strings"
	"time"

	"github.com/gangline/gangline/coord/verdict"
)

func (c *Core) join(now time.Duration, ev Hello) ([]Action, string) {
	if reason := c.objection(ev); reason != "" {
		if c.phase == Gathering && len(c.refusals) < maxRefusals {
			c.refusals = append(c.refusals, reason)
		}
		return []Action{Refuse{Reason: reason}}, "refused: " + reason
	}
	c.members[ev.Rank] = seat{Member: ev.Member, joined: true, planned: !ev.Follows, heard: now}
	c.joined++
	actions := append([]Action{Accept{Rank: ev.Rank}}, c.tell(ev.Rank)...)
	if c.joined < c.cfg.World || len(c.unplanned()) > 0 {
		return actions, fmt.Sprintf("%s joined, %d of %d", c.who(ev.Rank), c.joined, c.cfg.World)
	}
	return c.begin(actions)
}

// tell gives rank 0's note to those that wait for it, now that a rank has joined.
func (c *Core) tell(joined int) (actions []Action) {
	for rank := range c.members {
		s := &c.members[rank]
		if s.joined && s.Follows && c.members[0].joined && (rank == joined || joined == 0) {
			actions = append(actions, Tell{Rank: rank, Note: c.members[0].Note})
		}
	}
	return actions
}

// unplanned are the ranks that have joined without a plan.
func (c *Core) unplanned() (ranks []int) {
	for rank := range c.members {
		if s := &c.members[rank]; s.joined && !s.planned {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// plan takes the digest of a rank that follows.
func (c *Core) plan(now time.Duration, ev Plan) ([]Action, string) {
	if c.phase == Ended {
		return nil, c.late(fmt.Sprintf("the plan of rank %d", ev.Rank))
	}
	s := &c.members[ev.Rank]
	if s.planned {
		return c.abort(&AbortError{
			Rank: ev.Rank, Kind: Failed,
			Text: fmt.Sprintf("%s broke the protocol: it planned while %s, and had a plan before", c.who(ev.Rank), c.phase),
		})
	}
	s.heard, s.planned, s.Digest = now, true, ev.Digest
	if c.joined < c.cfg.World || len(c.unplanned()) > 0 {
		return nil, fmt.Sprintf("%s has its plan", c.who(ev.Rank))
	}
	return c.begin(nil)
}

// begin starts the generation, if all plans are equal.
func (c *Core) begin(actions []Action) ([]Action, string) {
	if text := c.mismatch(); text != "" {
		more, why := c.abort(&AbortError{Rank: c.differs(), Kind: Mismatch, Text: text})
		return append(actions, more...), why
	}
	c.phase, c.started = Running, c.last
	return append(actions, Start{Members: c.Members()}),
		fmt.Sprintf("generation %d starts: all %d ranks joined with plan %s", c.cfg.Generation, c.cfg.World, digestWord(c.members[0].Digest))
}

// objection returns why a member may not join, "" if it may.
func (c *Core) objection(ev Hello) string {
	who := describe(ev.Member)
	switch {
	case c.phase == Ended && c.cause != nil:
		return fmt.Sprintf("%s came after generation %d was over: %s", who, c.cfg.Generation, c.cause.Text)
	case c.phase == Ended:
		return fmt.Sprintf("%s came after generation %d was done", who, c.cfg.Generation)
	case ev.World != c.cfg.World:
		return fmt.Sprintf("%s was started for a world of %d, this one has %d", who, ev.World, c.cfg.World)
	case ev.Rank < 0 || ev.Rank >= c.cfg.World:
		return fmt.Sprintf("%s is not in the world: ranks are 0 to %d", who, c.cfg.World-1)
	case ev.Rank == 0 && ev.Follows:
		return who + " follows, but rank 0 is whom others follow"
	case c.members[ev.Rank].joined:
		return fmt.Sprintf("%s: the rank is taken by %s", who, c.who(ev.Rank))
	}
	return ""
}

// differs returns the first rank whose digest is not that of rank 0.
func (c *Core) differs() int {
	for rank := range c.members {
		if c.members[rank].Digest != c.members[0].Digest {
			return rank
		}
	}
	return NoRank
}

// mismatch returns which ranks have which digests, "" if all are equal.
func (c *Core) mismatch() string {
	if c.differs() == NoRank {
		return ""
	}
	var digests []string
	ranks := make(map[string][]int)
	for rank := range c.members {
		d := c.members[rank].Digest
		if len(ranks[d]) == 0 {
			digests = append(digests, d)
		}
		ranks[d] = append(ranks[d], rank)
	}
	var parts []string
	for _, d := range digests {
		parts = append(parts, fmt.Sprintf("%s plan %s", haveRanks(ranks[d]), digestWord(d)))
	}
	return fmt.Sprintf("the ranks' plans differ: %s; all ranks need the same job, data and program", strings.Join(parts, ", "))
}

func (c *Core) hear(now time.Duration, rank int) ([]Action, string) {
	if c.phase == Ended {
		return nil, c.late(fmt.Sprintf("a message of rank %d", rank))
	}
	c.members[rank].heard = now
	return nil, fmt.Sprintf("heard rank %d", rank)
}

func (c *Core) fail(now time.Duration, ev Fail) ([]Action, string) {
	cause := &AbortError{Rank: ev.Rank, Kind: Failed, Text: fmt.Sprintf("%s failed: %s", c.who(ev.Rank), ev.Text)}
	if c.phase == Ended {
		return nil, c.late(cause.Text)
	}
	c.members[ev.Rank].heard = now
	if ev.Group != "" {
		return c.accuse(now, ev, cause)
	}
	if ev.Peer < 0 || ev.Peer >= c.cfg.World || ev.Peer == ev.Rank {
		return c.abort(cause)
	}
	cause.Missing = c.gone(now, ev.Peer, "was waited for")
	return c.suspectUntil(suspicion{due: now + PeerGrace, weight: weightPeer, cause: cause, blames: ev.Peer})
}

func (c *Core) finish(now time.Duration, ev Done) ([]Action, string) {
	if c.phase == Ended {
		return nil, c.late(fmt.Sprintf("the report of rank %d", ev.Rank))
	}
	s := &c.members[ev.Rank]
	if c.phase != Running || s.done {
		return c.abort(&AbortError{
			Rank: ev.Rank, Kind: Failed,
			Text: fmt.Sprintf("%s broke the protocol: done while %s, done before: %t", c.who(ev.Rank), c.phase, s.done),
		})
	}
	s.heard, s.done, s.report, s.calls = now, true, ev.Report, ev.Calls
	c.done++
	if c.done < c.cfg.World {
		return c.depart(now, ev)
	}
	c.phase = Ended
	c.suspect = nil
	return []Action{End{}}, fmt.Sprintf("generation %d ends: all %d ranks are done", c.cfg.Generation, c.cfg.World)
}

// depart tells the others that a rank is done, if there are calls that it will miss.
func (c *Core) depart(now time.Duration, ev Done) ([]Action, string) {
	why := fmt.Sprintf("%s is done, %d of %d", c.who(ev.Rank), c.done, c.cfg.World)
	if c.trial != nil {
		return c.settleIfAll(now, why)
	}
	if len(ev.Calls) == 0 {
		return nil, why
	}
	return []Action{Left{Rank: ev.Rank, Calls: ev.Calls}}, why
}

func (c *Core) lose(now time.Duration, ev Lost) ([]Action, string) {
	if c.phase == Ended || c.members[ev.Rank].done {
		return nil, fmt.Sprintf("%s left after it was done or the generation was over", c.who(ev.Rank))
	}
	if c.owns(ev.Rank) {
		return nil, fmt.Sprintf("%s left after it failed", c.who(ev.Rank))
	}
	cause := &AbortError{Rank: ev.Rank, Kind: StreamLost, Text: fmt.Sprintf("%s was lost: %s", c.who(ev.Rank), ev.Text), Missing: c.gone(now, ev.Rank, ev.Text)}
	if c.cfg.LostGrace <= 0 {
		return c.abort(cause)
	}
	return c.suspectUntil(suspicion{due: now + c.cfg.LostGrace, weight: weightStream, cause: cause, blames: NoRank})
}

func (c *Core) exit(now time.Duration, ev Exited) ([]Action, string) {
	if c.phase == Ended || c.members[ev.Rank].done {
		return nil, ev.Text + ", after it was done or the generation was over"
	}
	if c.owns(ev.Rank) {
		return c.abort(c.believed(now))
	}
	return c.abort(&AbortError{
		Rank: ev.Rank, Kind: ProcessExited, Text: ev.Text + " before it was done", Missing: c.gone(now, ev.Rank, ev.Text),
	})
}

// gone lists a rank that is lost.
func (c *Core) gone(now time.Duration, rank int, why string) []Absent {
	return []Absent{{Rank: rank, Silent: now - c.members[rank].heard, Text: why}}
}

// believed is what the standing suspicion comes to.
func (c *Core) believed(now time.Duration) *AbortError {
	if c.suspect.tried {
		return c.judge(now)
	}
	return c.suspect.cause
}

// owns says whether the standing suspicion is an error of rank's own: that says
// more than the loss which follows it.
func (c *Core) owns(rank int) bool {
	return c.suspect != nil && c.suspect.cause.Kind == Failed && c.suspect.cause.Rank == rank
}

func (c *Core) tick(now time.Duration) ([]Action, string) {
	due, some := c.Deadline()
	if !some || now < due {
		return nil, "nothing is due"
	}
	if s := c.suspect; s != nil && now >= s.due {
		if late := now - s.due; late > evidenceMoment {
			s.due = now + evidenceMoment
			return nil, fmt.Sprintf("the tick came %v late: better evidence may still be unread", late)
		}
		return c.abort(c.believed(now))
	}
	if actions, why := c.silent(now); actions != nil {
		return actions, why
	}
	if c.phase == Gathering && now >= c.cfg.JoinTimeout {
		return c.abort(c.missing())
	}
	return nil, "nothing is due"
}

// heldUp says for how long nothing came, if that is so long that this process
// was stopped rather than the members: one that lives beats four times in a
// limit. What came meanwhile is then still unread, in no order, so no limit ends
// within the next eighth of one. It is 0 if nothing is strange.
//
// If all members are dead, nothing comes either; they are then named an eighth
// of a limit late.
func (c *Core) heldUp(now time.Duration) time.Duration {
	quiet, limit := now-c.last, c.cfg.HeartbeatTimeout
	c.last = now
	if c.phase == Ended || c.joined == 0 || quiet <= limit/2 {
		return 0
	}
	moment := limit / 8
	for rank := range c.members {
		c.members[rank].heard = max(c.members[rank].heard, now-limit+moment)
	}
	if c.phase == Gathering && now-c.cfg.JoinTimeout > limit/2 {
		c.cfg.JoinTimeout = now + moment
	}
	return quiet
}

// silent aborts because of the rank that was silent longest, if over the limit.
func (c *Core) silent(now time.Duration) ([]Action, string) {
	worst := NoRank
	for rank := range c.members {
		s := &c.members[rank]
		if !s.joined || s.done || now-s.heard < c.cfg.HeartbeatTimeout {
			continue
		}
		if worst == NoRank || s.heard < c.members[worst].heard {
			worst = rank
		}
	}
	if worst == NoRank {
		return nil, ""
	}
	return c.abort(&AbortError{
		Rank: worst, Kind: Silent, Missing: c.gone(now, worst, "silent"),
		Text: fmt.Sprintf("%s was lost: silent for %v, the limit is %v",
			c.who(worst), (now - c.members[worst].heard).Round(time.Millisecond), c.cfg.HeartbeatTimeout),
	})
}

func (c *Core) missing() *AbortError {
	var ranks []int
	for rank := range c.members {
		if !c.members[rank].joined {
			ranks = append(ranks, rank)
		}
	}
	did := "did not join"
	if len(ranks) == 0 {
		ranks, did = c.unplanned(), "joined but had no plan"
	}
	text := fmt.Sprintf("%s of %d %s within %v", verdict.Ranks(ranks), c.cfg.World, did, c.cfg.JoinTimeout)
	if len(c.refusals) > 0 {
		text += "; refused: " + strings.Join(c.refusals, "; ")
	}
	e := &AbortError{Rank: ranks[0], Kind: Missing, Text: text}
	for _, rank := range ranks {
		e.Missing = append(e.Missing, Absent{Rank: rank, Silent: c.cfg.JoinTimeout, Text: did})
	}
	return e
}

// suspectUntil keeps the heavier suspicion, due at the earlier of both times. Of
// two that blame others, that of the rank which the first one blames stands
// nearer to the cause: if 1 waits for 0 and 0 for 2, then it is about 2.
func (c *Core) suspectUntil(s suspicion) ([]Action, string) {
	why := "held for better evidence: " + s.cause.Text
	if c.suspect == nil {
		c.suspect = &s
		return nil, why
	}
	s.due = min(c.suspect.due, s.due)
	nearer := s.weight == c.suspect.weight && s.cause.Rank == c.suspect.blames
	if s.weight > c.suspect.weight || nearer {
		c.suspect = &s
	}
	c.suspect.due = s.due
	return nil, why
}

func (c *Core) abort(cause *AbortError) ([]Action, string) {
	if c.phase == Ended {
		return nil, c.late(cause.Text)
	}
	c.phase, c.cause, c.suspect, c.trial = Ended, cause, nil, nil
	return []Action{Abort{Cause: cause}}, fmt.Sprintf("generation %d is over: %s", c.cfg.Generation, cause.Text)
}

func (c *Core) late(what string) string {
	return fmt.Sprintf("too late, generation %d is over: %s", c.cfg.Generation, what)
}

func (c *Core) who(rank int) string {
	if c.members[rank].joined {
		return describe(c.members[rank].Member)
	}
	return fmt.Sprintf("rank %d", rank)
}

// describe names a member for people.
func describe(m Member) string {
	if m.Role == "" {
		return fmt.Sprintf("rank %d (host %s, pid %d)", m.Rank, m.Host, m.PID)
	}
	return fmt.Sprintf("rank %d (%s, host %s, pid %d)", m.Rank, m.Role, m.Host, m.PID)
}

func digestWord(digest string) string {
	if digest == "" {
		return "(none)"
	}
	return digest
}

func haveRanks(ranks []int) string {
	if len(ranks) == 1 {
		return verdict.Ranks(ranks) + " has"
	}
	return verdict.Ranks(ranks) + " have"
}
