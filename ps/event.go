package ps

import (
	"fmt"

	"github.com/gangline/gangline/tensor"
)

// Limits of the machine and of the wire.
const (
	// statesMax bounds the states of a store, and so the parts of a request.
	statesMax = 1 << 14
	// dimMax bounds the elements of a table's row.
	dimMax = 1 << 20
	// verdictsKept is how many past verdicts a store remembers to compare
	// later ones with.
	verdictsKept = 8
	// recentMin is the least number of a worker's past pushes that a store
	// remembers to recognise a repeated one; it is 4 a state if that is more.
	recentMin = 64
)

// Part is one state's share of a Push or Pull: the elements, or the rows, that
// go to or come from one store.
//
// Guarantees: (1) a dense part has Keys nil and Data is the whole value, of
// which only [Lo, Hi) is read or written; (2) a table part has Keys i64 [K],
// ascending and distinct, each in [0, table rows), and Data [K D], row i
// belonging to Keys[i]; the client picks those keys that the store owns.
type Part struct {
	// State is the plan's value index of the parameter.
	State int
	// Lo and Hi bound the elements of a dense state that the store holds.
	Lo, Hi int
	// Keys names the rows of a table; nil for a dense state.
	Keys *tensor.Tensor
	// Data is the gradient sum (Push) or where the parameter goes (Pull).
	Data *tensor.Tensor
}

// Verdict is what the workers agreed on about a step. The zero value is none.
type Verdict struct {
	Given bool
	Step  int64
	// Weight is the step's total weight; 0 drops the step.
	Weight float64
}

// EventKind is what happened.
type EventKind uint8

// The events. Every one of a worker may carry a verdict, which comes first.
const (
	// EventOffer asks whether a push would be taken, and for memory to put it in.
	EventOffer EventKind = iota + 1
	// EventPush gives contributions; an offer before it is not required.
	EventPush
	// EventPull asks for states at version Step.
	EventPull
	// EventFlush asks for nothing: it brings a verdict.
	EventFlush
	// EventSnapshot asks for all state at version Step.
	EventSnapshot
	// EventBye ends the worker's part in the run.
	EventBye
	// EventLost says that the worker is gone.
	EventLost
	// EventTick lets waits end that have lasted too long; From is not read.
	EventTick
)

// Block is the share of one state in an event or reply.
type Block struct {
	// State is the value index.
	State int
	// Lo and Hi are the elements of a dense state; they must be those held.
	Lo, Hi int
	// Keys are the rows of a table, ascending, all of this store; nil for a
	// dense state.
	Keys *tensor.Tensor
	// Data is [Hi-Lo], or [K D].
	Data *tensor.Tensor
}

// Event is something that happened to a shard.
//
// Blocks belong to the caller, who must not touch them before the reply, but
// for the Data of a push, which the machine takes for good.
type Event struct {
	Kind EventKind
	// From is the worker's rank.
	From int
	// Seq tells a push from a repetition of it; a worker never uses one twice
	// for different pushes.
	Seq     uint64
	Step    int64
	Verdict Verdict
	Blocks  []Block
}

// ActionKind is what the shell has to do.
type ActionKind uint8

// The actions.
const (
	// ActionReply answers To's request.
	ActionReply ActionKind = iota + 1
	// ActionRefuse answers To's request with Err; nothing of it had an effect,
	// unless its verdict was good.
	ActionRefuse
	// ActionApplied reports that Step was applied.
	ActionApplied
	// ActionSkipped reports that Step was dropped by its verdict.
	ActionSkipped
	// ActionSnapshot asks to answer To with what Export returns now, before
	// the next event.
	ActionSnapshot
)

// Status says what became of a request.
type Status uint8

// The statuses.
const (
	// Done: pulled, flushed, or good bye.
	Done Status = iota
	// Continue: the offer is taken; Blocks have the memory for it.
	Continue
	// Stored: the contributions are held until the verdict.
	Stored
	// Duplicate: this very push was stored before.
	Duplicate
	// Late: the step is past; the contributions were dropped.
	Late
	// Refused: see the error.
	Refused
)

// String returns the status in lower case.
func (s Status) String() string {
	names := [...]string{"done", "continue", "stored", "duplicate", "late", "refused"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Action is something the shell has to do.
type Action struct {
	Kind   ActionKind
	To     int
	Status Status
	// Version is the shard's version when it decided.
	Version int64
	// Step is the step of Applied and Skipped.
	Step int64
	// Blocks carry memory for an offer, or what was pulled. They may be views
	// of the state. They stay valid and unchanged until the next event from To.
	Blocks []Block
	Err    error
}
