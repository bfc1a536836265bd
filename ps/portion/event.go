package portion

import (
	"errors"
	"fmt"
	"time"
)

// The limits of the machine.
const (
	// PortionsMax is the most portions of a round.
	PortionsMax = 1 << 20
	// WorkersMax is how many workers may ever ask.
	WorkersMax = 1 << 16
	// HoldMax is the most leases that a worker may have at once.
	HoldMax = 1 << 10
)

// ErrUsage is wrapped by refusals: a mistake of the program that sent the event.
var ErrUsage = errors.New("protocol error")

// EventKind is what happened.
type EventKind uint8

// The events.
const (
	// EventBegin begins a Round of Portions; the one before must be over.
	EventBegin EventKind = iota + 1
	// EventAsk: Worker wants a portion.
	EventAsk
	// EventDone: Worker has computed Portion of Round, with Loss and Weight.
	EventDone
	// EventLost: Worker is gone, and its leases with it. It may ask again later.
	EventLost
	// EventTick: only the time has changed.
	EventTick
)

// Event is something that happened. Fields that its kind does not name are not
// read.
type Event struct {
	Kind EventKind
	// Worker is a rank; any number will do.
	Worker int
	// Round goes up from one Begin to the next, from 1.
	Round uint64
	// Portions is of how many portions the round consists.
	Portions int
	Portion  int
	// Loss is the sum of the losses of the portion's rows, Weight that of their
	// weights. A loss that is not finite counts as any other: it makes the round's
	// loss not finite.
	Loss, Weight float64
}

// ActionKind is what the shell has to do.
type ActionKind uint8

// The actions. An ask is answered by a give, now or from a later Step, or by a
// refusal; done by counted, late or a refusal.
const (
	// ActionGive answers Worker's ask with Portion of Round.
	ActionGive ActionKind = iota + 1
	// ActionWait says that Worker's ask will be answered later.
	ActionWait
	// ActionCounted answers Worker: its answer was the first.
	ActionCounted
	// ActionLate answers Worker: its answer was not needed any more, and is ignored.
	ActionLate
	// ActionOver: all portions of Round count; Loss and Weight are their sums.
	ActionOver
	// ActionRefuse answers with Err; nothing changed.
	ActionRefuse
)

// String returns the action in lower case.
func (k ActionKind) String() string {
	names := [...]string{"none", "give", "wait", "counted", "late", "over", "refuse"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("action(%d)", uint8(k))
}

// Action is something the shell has to do.
type Action struct {
	Kind    ActionKind
	Worker  int
	Round   uint64
	Portion int
	// Copy is how many others work on the portion that is given.
	Copy int
	// Loss and Weight are the sums over a round that is over.
	Loss, Weight float64
	Err          error
}

// Counts are leases by what became of them.
type Counts struct {
	// Given = Counted + Late + Gone + Open.
	Given, Counted, Late, Gone, Open int64
	// Overdue are those that were open at their deadline, whatever became of them
	// later; Copies those given while another worked on the same portion.
	Overdue, Copies int64
	// Stray are answers without a lease: repeated, or of a worker that was lost
	// meanwhile. They are ignored.
	Stray int64
}

// Balanced says whether every lease is accounted for.
func (c *Counts) Balanced() bool { return c.Given == c.Counted+c.Late+c.Gone+c.Open }

// Config says how portions are given out. The zero value of a field is its default.
type Config struct {
	// Copies is how many workers at most work on one portion at once: 2. At 1 no
	// portion is computed twice unless its worker is overdue.
	Copies int
	// Patience is how long a portion must be out before a copy of it is given: 0.
	Patience time.Duration
	// Deadline is after how long a portion is given out anew, as if its worker had
	// been lost; 0 is never.
	Deadline time.Duration
	// Hold is how many leases a worker may have at once: 1.
	Hold int
}

func (c *Config) validate() error {
	switch {
	case c.Copies < 1 || c.Copies > WorkersMax:
		return fmt.Errorf("ps/portion: copies must be 1 to %d, is %d", WorkersMax, c.Copies)
	case c.Hold < 1 || c.Hold > HoldMax:
		return fmt.Errorf("ps/portion: hold must be 1 to %d, is %d", HoldMax, c.Hold)
	case c.Patience < 0 || c.Deadline < 0:
		return fmt.Errorf("ps/portion: times must not be negative: patience %v, deadline %v", c.Patience, c.Deadline)
	}
	return nil
}

// Rows returns which of so many rows are a portion's: [lo, hi). Portions are equal
// but for one row, and may be empty.
func Rows(rows, portions, portion int) (lo, hi int) {
	size, more := rows/portions, rows%portions
	lo = portion*size + min(portion, more)
	hi = lo + size
	if portion < more {
		hi++
	}
	return lo, hi
}
