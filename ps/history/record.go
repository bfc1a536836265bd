package history

import (
	"fmt"

	"github.com/gangline/gangline/ps/consistency"
)

// Kind is what was written down.
type Kind string

// What workers write. Each names the Worker, the Shard and the Clock.
const (
	// Sent: a contribution's first piece is about to be sent; Base is the version
	// it was made of, Weight and Finite are those of the whole. Once a
	// contribution and shard, however often pieces are repeated; a process that
	// replaces another (a greater Life) may send anew what no shard has heard of.
	Sent Kind = "sent"
	// Acked: a piece, or being ready, was answered with Outcome.
	Acked Kind = "acked"
	// Asked: read Request is about to be sent, for Clock and at least Version.
	Asked Kind = "asked"
	// Answered: in Life it was answered from Version, in which each worker had
	// Clocks.
	Answered Kind = "answered"
)

// What shards write. Each names the Shard.
const (
	// Joined, Left and Lost: Worker's standing changed; Joined at Clock.
	Joined Kind = "joined"
	Left   Kind = "left"
	Lost   Kind = "lost"
	// Stored: Worker's Clock is closed; Base, Weight and Finite as in Sent.
	Stored Kind = "stored"
	// Ready: the lead heard that all shards have Worker's Clock, with the least
	// Base.
	Ready Kind = "ready"
	// Decided: Verdict was carried out.
	Decided Kind = "decided"
	// Dropped: Worker's Clock was dropped, for Outcome.
	Dropped Kind = "dropped"
	// Held: read Request of Worker for Clock and at least Version has to wait.
	Held Kind = "held"
	// Served: it is answered from Version, in which each worker had Clocks.
	Served Kind = "served"
	// Counted: the shard says that of Worker's contributions there were Counts,
	// applied with Staleness.
	Counted Kind = "counted"
	// Restarted: the shard goes on from a saved state or as a replica, and what
	// it had to answer is gone; workers ask again.
	Restarted Kind = "restarted"
	// Ended: the run is over for the shard.
	Ended Kind = "ended"
)

// Record is one thing that a worker or a shard did. Which fields count is said at
// the kinds. It is plain data, for encoding/json.
type Record struct {
	Kind    Kind                 `json:"kind"`
	Shard   int                  `json:"shard"`
	Worker  consistency.Worker   `json:"worker"`
	Clock   int64                `json:"clock"`
	Base    int64                `json:"base"`
	Version int64                `json:"version"`
	Request uint64               `json:"request,omitempty"`
	Life    int                  `json:"life,omitempty"`
	Weight  float64              `json:"weight,omitempty"`
	Finite  bool                 `json:"finite,omitempty"`
	Outcome consistency.Outcome  `json:"outcome,omitempty"`
	Verdict *consistency.Verdict `json:"verdict,omitempty"`
	// Clocks are the closed clocks of each worker, in the order of Job.Workers.
	Clocks    []int64              `json:"clocks,omitempty"`
	Counts    *consistency.Counts  `json:"counts,omitempty"`
	Staleness []consistency.Bucket `json:"staleness,omitempty"`
}

// ofWorker reports whether the worker writes it.
func (r *Record) ofWorker() bool {
	switch r.Kind { //nolint:exhaustive // all others are of shards
	case Sent, Acked, Asked, Answered:
		return true
	default:
		return false
	}
}

// Job is what a history is judged by.
type Job struct {
	Model consistency.Model
	// Workers are all that may take part, ascending.
	Workers []consistency.Worker
	Shards  int
	// Version is where the run began, and Clock that of its workers.
	Version, Clock int64
}

// Rule names an invariant.
type Rule string

// The rules.
const (
	// RuleForm: the records are those of a run at all.
	RuleForm Rule = "form"
	// RuleSent: what is stored was sent, and is as it was sent.
	RuleSent Rule = "sent"
	// RuleBase: nobody says that a contribution is made of a newer version than
	// the worker had read for it.
	RuleBase Rule = "base"
	// RuleOrder: a worker's clocks close, and are applied, one after the other.
	RuleOrder Rule = "order"
	// RuleOnce: a contribution ends once on a shard.
	RuleOnce Rule = "once"
	// RuleVersion: versions follow each other, and a read is answered from the
	// shard as it is.
	RuleVersion Rule = "version"
	// RuleLag: nothing is applied that is more than max_version_lag behind.
	RuleLag Rule = "max_version_lag"
	// RuleReason: nothing is dropped, skipped or held without a reason.
	RuleReason Rule = "reason"
	// RuleSet: a set is of one version, the same on all shards, and as large as
	// the model says.
	RuleSet Rule = "set"
	// RuleContract: sums are divided, and rates scaled, as the contract says.
	RuleContract Rule = "contract"
	// RuleSlack: nobody reads while more than slack clocks ahead of the slowest.
	RuleSlack Rule = "slack"
	// RuleOwn: a worker reads what it has written.
	RuleOwn Rule = "own"
	// RulePending: what the model decides at once is not pending.
	RulePending Rule = "pending"
	// RuleAnswer: what a worker was told is what the shard did.
	RuleAnswer Rule = "answer"
	// RuleCounts: counts and staleness are those of the records.
	RuleCounts Rule = "counts"
)

// ViolationError is the first thing in a history that the model forbids. It is an
// error.
type ViolationError struct {
	Rule Rule
	// Record is the index of the record that breaks the rule, or -1 if it is the
	// end of the history that does.
	Record int
	Shard  int
	Worker consistency.Worker
	Clock  int64
	// Version is the shard's when it happened.
	Version int64
	Text    string
}

// Error says where which rule is broken.
func (v *ViolationError) Error() string {
	return fmt.Sprintf("history: rule %s: shard %d, worker %d, clock %d, version %d: %s (record %d)",
		v.Rule, v.Shard, v.Worker, v.Clock, v.Version, v.Text, v.Record)
}
