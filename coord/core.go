package coord

import (
	"fmt"
	"time"
)

// Phase is where a generation stands.
type Phase uint8

// The phases, in the only order there is.
const (
	// Gathering waits for the ranks to join.
	Gathering Phase = iota
	// Running has all ranks, with equal digests.
	Running
	// Ended is over, well or not; nothing changes any more.
	Ended
)

// String returns the phase's name.
func (p Phase) String() string {
	switch p {
	case Gathering:
		return "gathering"
	case Running:
		return "running"
	case Ended:
		return "ended"
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// Member is one process of a generation.
type Member struct {
	// ID lasts over generations and restarts, if the member wants it to.
	ID   string
	Rank int
	// Role is a word for people and for routing: worker, server.
	Role string
	Host string
	PID  int
	// Addr is where other ranks reach it; the coordinator only passes it on.
	Addr string
	// Digest is of the member's plan.
	Digest string
	// Follows says that the member plans by the Note of rank 0: its digest comes
	// in a Plan.
	Follows bool
	// Note is what rank 0 has for those that follow; others' are not looked at.
	Note string
}

// Event is what can happen to a Core.
type Event interface{ isEvent() }

// The events.
type (
	// Hello is a member's wish to join, on a new stream.
	Hello struct {
		Member
		World int
	}
	// Plan is the digest of a member that follows.
	Plan struct {
		Rank   int
		Digest string
	}
	// Heard is that something arrived from an accepted rank.
	Heard struct{ Rank int }
	// Fail is an error that a rank reported. Peer is the rank whose loss may be
	// the cause of it, NoRank if there is none. Group is that of the call that is in
	// trouble, "" if no call is; Kind is then Failed, Overdue or Mismatch, and Calls are
	// as in State.
	Fail struct {
		Rank, Peer int
		Text       string
		Kind       Kind
		Group      string
		Calls      []Call
	}
	// State is where a rank stands in its groups: the answer to Ask.
	State struct {
		Rank  int
		Calls []Call
	}
	// Done is that a rank has nothing left to do, and where it stood in its groups.
	Done struct {
		Rank   int
		Report []byte
		Calls  []Call
	}
	// Lost is that a rank's stream ended before the generation did.
	Lost struct {
		Rank int
		Text string
	}
	// Exited is the end of a rank's process, seen by whoever started it. Text
	// is a whole sentence that names it.
	Exited struct {
		Rank int
		Text string
	}
	// Stop is the end of the generation by the owner of the coordinator.
	Stop struct{ Text string }
	// Tick is that time has passed.
	Tick struct{}
)

func (Hello) isEvent()  {}
func (Plan) isEvent()   {}
func (Heard) isEvent()  {}
func (State) isEvent()  {}
func (Fail) isEvent()   {}
func (Done) isEvent()   {}
func (Lost) isEvent()   {}
func (Exited) isEvent() {}
func (Stop) isEvent()   {}
func (Tick) isEvent()   {}

// Action is what a Core wants done.
type Action interface{ isAction() }

// The actions.
type (
	// Accept answers a Hello: the stream belongs to the rank from now on.
	Accept struct{ Rank int }
	// Refuse answers a Hello: the stream ends with the reason.
	Refuse struct{ Reason string }
	// Tell gives a rank that follows the note of rank 0.
	Tell struct {
		Rank int
		Note string
	}
	// Start tells every rank that the generation runs, with its members by rank.
	Start struct{ Members []Member }
	// Ask asks every rank where it stands.
	Ask struct{}
	// Left tells every other rank that one is done, and where it stood.
	Left struct {
		Rank  int
		Calls []Call
	}
	// Abort tells every accepted rank that the generation is over, and why.
	Abort struct{ Cause *AbortError }
	// End tells every rank that all are done.
	End struct{}
)

func (Accept) isAction() {}
func (Refuse) isAction() {}
func (Tell) isAction()   {}
func (Start) isAction()  {}
func (Ask) isAction()    {}
func (Left) isAction()   {}
func (Abort) isAction()  {}
func (End) isAction()    {}

// CoreConfig is what a Core needs to know.
type CoreConfig struct {
	World            int
	Generation       uint64
	JoinTimeout      time.Duration
	HeartbeatTimeout time.Duration
	// LostGrace is how long a broken stream waits for better evidence (the
	// exit status of the process) before it ends the generation.
	LostGrace time.Duration
}

// Core decides for one generation. It is a pure machine: time comes in as the
// duration since the coordinator started, decisions go out as actions with the
// sentence that says why.
//
// Evidence has a weight. A rank's own error, the exit of its process, silence,
// or a stop end the generation at once. An error that may be the consequence of
// another rank's loss waits for PeerGrace, and a broken stream for LostGrace,
// so that the dead rank is named and not the first one that stumbled over it. A call
// in trouble waits for VerdictGrace until all ranks have said where they stand: then
// those are named that did not come, or came to something else.
//
// Guarantees: (1) at most one of Abort and End is ever returned, once; (2) Start
// comes at most once, before End, and only with all ranks and equal digests;
// (3) after Ended no event changes anything.
type Core struct {
	cfg      CoreConfig
	phase    Phase
	members  []seat
	joined   int
	done     int
	refusals []string
	suspect  *suspicion
	trial    *trial
	cause    *AbortError
	started  time.Duration
	last     time.Duration // of the event before
}

type seat struct {
	Member
	joined bool
	// planned says that Digest is known.
	planned bool
	done    bool
	report  []byte
	calls   []Call // when it was done
	heard   time.Duration
}

type suspicion struct {
	weight int
	due    time.Duration
	cause  *AbortError
	// blames is the rank that an error blames, NoRank if none.
	blames int
	// tried says that the trial finds the cause.
	tried bool
}

// Weights of suspicions; the heavier one is believed.
const (
	weightPeer = 1 + iota
	weightStream
)

// PeerGrace is how long an error that blames another rank waits for evidence at
// first hand.
const PeerGrace = 400 * time.Millisecond

// evidenceMoment is how late a tick may come that ends the wait for evidence:
// after a later one, what came meanwhile is read first.
const evidenceMoment = PeerGrace / 4

// maxRefusals bounds how many refused joins are remembered for the error of a join timeout.
const maxRefusals = 8

// NewCore returns a machine that waits for cfg.World ranks from time 0 on.
func NewCore(cfg CoreConfig) *Core {
	return &Core{cfg: cfg, members: make([]seat, cfg.World)}
}

// Phase returns where the generation stands.
func (c *Core) Phase() Phase { return c.phase }

// Cause returns why the generation was aborted, nil if it was not.
func (c *Core) Cause() *AbortError { return c.cause }

// Reports returns what each done rank reported.
func (c *Core) Reports() map[int][]byte {
	reports := make(map[int][]byte)
	for rank := range c.members {
		if c.members[rank].done {
			reports[rank] = c.members[rank].report
		}
	}
	return reports
}

// Members returns who joined, by rank.
func (c *Core) Members() []Member {
	members := make([]Member, 0, len(c.members))
	for rank := range c.members {
		if c.members[rank].joined {
			members = append(members, c.members[rank].Member)
		}
	}
	return members
}

// Step takes one event and returns what to do and why. It costs O(World).
func (c *Core) Step(now time.Duration, event Event) ([]Action, string) {
	held := c.heldUp(now)
	switch ev := event.(type) {
	case Hello:
		return c.join(now, ev)
	case Plan:
		return c.plan(now, ev)
	case Heard:
		return c.hear(now, ev.Rank)
	case Fail:
		return c.fail(now, ev)
	case State:
		return c.hearState(now, ev)
	case Done:
		return c.finish(now, ev)
	case Lost:
		return c.lose(now, ev)
	case Exited:
		return c.exit(now, ev)
	case Stop:
		return c.abort(&AbortError{Rank: NoRank, Kind: Stopped, Text: ev.Text})
	case Tick:
		if held > 0 {
			return nil, fmt.Sprintf("nothing came for %v: the coordinator itself may have been held up, all ranks get a moment to be heard", held)
		}
		return c.tick(now)
	}
	panic(fmt.Sprintf("coord: unknown event %T", event))
}

// Deadline returns when the next Tick can have an effect; false if never.
func (c *Core) Deadline() (time.Duration, bool) {
	if c.phase == Ended {
		return 0, false
	}
	due, some := time.Duration(0), false
	consider := func(at time.Duration) {
		if !some || at < due {
			due, some = at, true
		}
	}
	if c.phase == Gathering {
		consider(c.cfg.JoinTimeout)
	}
	if c.suspect != nil {
		consider(c.suspect.due)
	}
	for rank := range c.members {
		if s := &c.members[rank]; s.joined && !s.done {
			consider(s.heard + c.cfg.HeartbeatTimeout)
		}
	}
	return due, some
}
