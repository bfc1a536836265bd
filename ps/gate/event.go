package gate

import (
	"fmt"

	"github.com/gangline/gangline/ps/consistency"
)

// EventKind is what happened.
type EventKind uint8

// The events. All but Verdict, Tick and End are of a worker.
const (
	// EventPush: a piece of a contribution has come.
	EventPush EventKind = iota + 1
	// EventReady: all shards have closed Seq.Clock; Base is the least version
	// read for it, over all shards. Lead only.
	EventReady
	// EventRead: the worker wants to read for its clock Seq.Clock, and no
	// version older than Version.
	EventRead
	// EventVerdict brings the lead's verdict to another shard; a verdict that is
	// known has no effect.
	EventVerdict
	// EventAlive is a sign of life, as every event of a worker is.
	EventAlive
	// EventLeft: the worker has no more data. It may still read, and is never
	// waited for; EventJoined brings it back.
	EventLeft
	// EventLost: the worker is gone. It has to join before it is heard again.
	EventLost
	// EventJoined: a new process has the worker's rank, or one that was lost is
	// there again. It goes on at clock Seq.Clock, or at the shard's if greater.
	EventJoined
	// EventTick lets silent workers be found out.
	EventTick
	// EventEnd: the run is over; what is pending expires.
	EventEnd
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	names := [...]string{"none", "push", "ready", "read", "verdict", "alive", "left", "lost", "joined", "tick", "end"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("event(%d)", uint8(k))
}

// Event is something that happened to a shard.
type Event struct {
	Kind   EventKind
	Worker consistency.Worker
	// Request is the shell's number of a push, ready or read; the answer has it.
	Request uint64
	// Seq names a push; Ready, Read and Joined use its Clock only.
	Seq consistency.Seq
	// Base is the version that what is pushed was computed from: the one that
	// this shard served. Pieces may differ; the least counts.
	Base int64
	// Version is the least version that a read may be answered from.
	Version int64
	// Ballot comes with the last piece of a push.
	Ballot Ballot
	// Verdict is that of EventVerdict; it is compared with what is stored, and not
	// kept.
	Verdict consistency.Verdict
}

// Ballot is what a worker says of its contribution as a whole.
type Ballot struct {
	// Weight is the sum of the weights of its rows; Loss the sum of their losses.
	Weight, Loss float64
	// Finite: nothing in it is infinite or not a number.
	Finite bool
}

// ActionKind is what the shell has to do.
type ActionKind uint8

// The actions.
const (
	// ActionKeep: keep the data of this piece until it is applied, skipped or
	// dropped. The reply follows.
	ActionKeep ActionKind = iota + 1
	// ActionApply: carry out Verdict: version Verdict.Version becomes the next.
	ActionApply
	// ActionSkip: forget the data of Verdict.Set; the version becomes the next
	// under bsp and quorum, and stays as it is under asp and ssp.
	ActionSkip
	// ActionDrop: forget the data of (Worker, Clock), for Outcome.
	ActionDrop
	// ActionReply answers a push or ready with the Outcome so far.
	ActionReply
	// ActionServe answers a read with the parameters as they are now, Version,
	// and the lead's last Verdict.
	ActionServe
	// ActionRefuse answers a request with Err: nothing of it had an effect.
	ActionRefuse
	// ActionLost tells that Worker was silent for too long and counts as lost:
	// tell the other shards.
	ActionLost
)

// String returns the kind in lower case.
func (k ActionKind) String() string {
	names := [...]string{"none", "keep", "apply", "skip", "drop", "reply", "serve", "refuse", "lost"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("action(%d)", uint8(k))
}

// Action is something the shell has to do, in the order given.
type Action struct {
	Kind   ActionKind
	Worker consistency.Worker
	// Request is that of the event that is answered.
	Request uint64
	// Clock and Piece name the contribution, and which part of it is kept; Clock
	// is also what a read was for.
	Clock int64
	Piece uint16
	// Outcome is that of the contribution; Duplicate says that the piece had
	// come before, and that its data is of no use.
	Outcome   consistency.Outcome
	Duplicate bool
	// Version is the shard's when it decided.
	Version int64
	// Verdict is what to carry out, or the last one (ActionServe; none under asp
	// and ssp). It is not changed later.
	Verdict consistency.Verdict
	// Staleness is that of an applied contribution; 0 under bsp and quorum.
	Staleness int64
	Err       error
}
