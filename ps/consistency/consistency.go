// Package consistency holds the words of what a job with parameter servers
// promises about its parameters: which pushes count, and how old what a worker
// reads may be. Package gate carries a Model out, package history judges
// recorded runs by it, and neither knows the other.
//
// # Words
//
// A worker works in clocks: it reads, computes, pushes, and its clock c is over
// (closed) when the last piece of its push is stored. Its clock is the number of
// its closed clocks. What it pushed in one clock is a contribution, named by
// (worker, clock) on all shards, and each has one Outcome on each shard, for
// ever. The version of a shard is how many sets of contributions it has
// carried out; the base of a contribution is the version that the worker had
// read; version minus base, when it is applied, is its staleness.
package consistency

import (
	"errors"
	"fmt"
	"time"
)

// Kind is a family of consistency models.
type Kind string

// The kinds.
const (
	// BSP, bulk synchronous: a version is one contribution of every worker
	// (Valiant 1990).
	BSP Kind = "bsp"
	// ASP, asynchronous: every contribution is a version of its own.
	ASP Kind = "asp"
	// SSP, stale synchronous: as ASP, but no worker reads while it is more than
	// Slack clocks ahead of the slowest (Ho et al. 2013).
	SSP Kind = "ssp"
	// Quorum: a version is the first K contributions made of the version before
	// it; the others are dropped (backup workers, Chen et al. 2016).
	Quorum Kind = "quorum"
)

// Scale says what a sum of contributions is divided by. A contribution is a sum
// over rows, and its weight is how many those are, or the sum of their weights.
type Scale string

// The contracts of normalisation.
const (
	// Weighted: the sum of all is divided by the sum of the weights, as if all
	// rows had been in one batch. "" is the same.
	Weighted Scale = "weighted"
	// Mean: each is divided by its weight, and the sum by how many have one.
	Mean Scale = "mean"
	// Sum: nothing is divided.
	Sum Scale = "sum"
)

// Stale says what staleness does to the learning rate under ASP and SSP.
type Stale string

// The effects of staleness.
const (
	// Unscaled: none. "" is the same.
	Unscaled Stale = "none"
	// Inverse: the rate is multiplied by 1/(1+staleness). Zhang et al. (2016)
	// divide by the staleness, which has no value at 0.
	Inverse Stale = "inverse"
)

// OnLoss says what BSP does when a worker is lost.
type OnLoss string

// The rules of loss.
const (
	// Wait: the version waits for the worker's replacement. "" is the same.
	Wait OnLoss = "wait"
	// Continue: the version is of those that are left.
	Continue OnLoss = "continue"
)

// Unbounded is a MaxVersionLag that drops nothing.
const Unbounded = -1

// Model is what a job promises; it is the same on all shards.
type Model struct {
	Kind Kind `json:"kind"`
	// Slack is how many clocks a worker may be ahead of the slowest and still
	// read; SSP only.
	Slack int64 `json:"slack,omitempty"`
	// MaxVersionLag is the greatest staleness that is applied, or Unbounded; ASP
	// and SSP only, as BSP and Quorum apply nothing stale.
	MaxVersionLag int64 `json:"max_version_lag"`
	// K is how many contributions make a version; Quorum only.
	K      int    `json:"k,omitempty"`
	Scale  Scale  `json:"scale,omitempty"`
	Stale  Stale  `json:"stale,omitempty"`
	OnLoss OnLoss `json:"on_loss,omitempty"`
	// Deadline is how long a worker may be silent before it counts as lost; 0:
	// only those who know tell of losses.
	Deadline time.Duration `json:"deadline,omitempty"`
}

// Synchronous reports whether versions are of sets that one shard, the lead,
// decides for all: BSP and Quorum. Else each shard decides for itself.
func (m *Model) Synchronous() bool { return m.Kind == BSP || m.Kind == Quorum }

// Waits reports whether a version waits for workers that are lost.
func (m *Model) Waits() bool { return m.Kind == BSP && m.OnLoss != Continue }

// ErrModel is wrapped by what Validate returns.
var ErrModel = errors.New("consistency")

// Validate refuses a model that cannot be carried out with so many workers; the
// error says what to change. A field that the kind does not read must be zero
// (MaxVersionLag: 0 or Unbounded), so that nobody believes in a bound that is none.
func (m *Model) Validate(workers int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w %s: %w", ErrModel, m.Kind, fmt.Errorf(format, args...))
	}
	switch m.Kind {
	case BSP, ASP, SSP, Quorum:
	default:
		return fmt.Errorf("%w: kind is %q, want bsp, asp, ssp or quorum", ErrModel, m.Kind)
	}
	async := !m.Synchronous()
	switch {
	case workers < 1:
		return bad("%d workers, want at least 1", workers)
	case m.Kind == SSP && m.Slack < 0:
		return bad("slack is %d, want at least 0; asp is the model without a bound", m.Slack)
	case m.Kind != SSP && m.Slack != 0:
		return bad("slack is %d, which only ssp has", m.Slack)
	case m.MaxVersionLag < Unbounded:
		return bad("max_version_lag is %d, want at least 0, or -1 for no bound", m.MaxVersionLag)
	case !async && m.MaxVersionLag > 0:
		return bad("max_version_lag is %d, which only asp and ssp have: nothing stale is applied here", m.MaxVersionLag)
	case m.Kind == Quorum && (m.K < 1 || m.K > workers):
		return bad("k is %d of %d workers, want 1 to %d", m.K, workers, workers)
	case m.Kind != Quorum && m.K != 0:
		return bad("k is %d, which only quorum has", m.K)
	case m.Scale != "" && m.Scale != Weighted && m.Scale != Mean && m.Scale != Sum:
		return bad("scale is %q, want weighted, mean or sum", m.Scale)
	case m.Stale != "" && m.Stale != Unscaled && m.Stale != Inverse:
		return bad("stale is %q, want none or inverse", m.Stale)
	case !async && m.Stale == Inverse:
		return bad("stale is %q, which only asp and ssp have: nothing stale is applied here", m.Stale)
	case m.OnLoss != "" && m.OnLoss != Wait && m.OnLoss != Continue:
		return bad("on_loss is %q, want wait or continue", m.OnLoss)
	case m.Kind != BSP && m.OnLoss == Wait:
		return bad("on_loss is wait, which only bsp has: others never wait for a worker that is lost")
	case m.Deadline < 0:
		return bad("deadline is %v, want a time, or 0 for none", m.Deadline)
	}
	return nil
}

// Worker is a worker's rank; a process that replaces another takes its rank.
type Worker int

// Seq names a piece of a push: piece Piece, from 0, of the worker's clock Clock,
// and Last if no later piece follows. A worker never uses one twice for
// different data, and repeats it word for word when it has no answer.
type Seq struct {
	Clock int64  `json:"clock"`
	Piece uint16 `json:"piece"`
	Last  bool   `json:"last"`
}

// Outcome is what became of a contribution on a shard.
type Outcome uint8

// The outcomes. All but Unknown and Pending are final.
const (
	// Unknown: never heard of, or decided too long ago to say how.
	Unknown Outcome = iota
	// Pending: some or all of it is stored, and nothing is decided.
	Pending
	// Applied: it is in the parameters.
	Applied
	// Late: dropped, as it was made of too old a version, on this shard or, under
	// BSP and Quorum, on another.
	Late
	// Expired: dropped, as its worker was lost, left or joined anew before it
	// was whole, or the run ended.
	Expired
	// Skipped: dropped with its set, in which something was not finite or
	// nothing had a weight.
	Skipped
)

// String returns the outcome in lower case.
func (o Outcome) String() string {
	names := [...]string{"unknown", "pending", "applied", "late", "expired", "skipped"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Final reports whether the outcome will never change.
func (o Outcome) Final() bool { return o >= Applied && o <= Skipped }

// Member is a contribution in a set.
type Member struct {
	Worker Worker  `json:"worker"`
	Clock  int64   `json:"clock"`
	Base   int64   `json:"base"`
	Weight float64 `json:"weight"`
	// Scale is what the contribution is multiplied by before it is added: 1, or
	// 1/Weight if the contract is Mean (0 if the weight is 0).
	Scale float64 `json:"scale"`
}

// Verdict is how version Version becomes Version+1. The zero value, without a
// set, is none.
//
// The gradient that the update rule sees is the sum over Set, in its order, of
// Scale times contribution, divided by Total; its learning rate is multiplied by
// Rate.
type Verdict struct {
	Version int64 `json:"version"`
	// Set is ordered by worker.
	Set   []Member `json:"set"`
	Total float64  `json:"total"`
	Rate  float64  `json:"rate"`
	// Loss is the sum of the members' losses, in the order of Set.
	Loss float64 `json:"loss"`
	// Skipped: the parameters stay as they are.
	Skipped bool `json:"skipped,omitempty"`
	// Faulty are the members whose contribution was not finite, for which the
	// set is skipped.
	Faulty []Worker `json:"faulty,omitempty"`
}

// Given reports whether there is a verdict.
func (v *Verdict) Given() bool { return len(v.Set) > 0 }

// Counts accounts for contributions of which a shard has stored a piece or more.
type Counts struct {
	// Pushed = Applied + Late + Expired + Skipped + Pending.
	Pushed  int64 `json:"pushed"`
	Applied int64 `json:"applied"`
	Late    int64 `json:"late"`
	Expired int64 `json:"expired"`
	Skipped int64 `json:"skipped"`
	Pending int64 `json:"pending"`
}

// Dropped returns the contributions that will never be applied.
func (c *Counts) Dropped() int64 { return c.Late + c.Expired + c.Skipped }

// Balanced reports whether every contribution is accounted for.
func (c *Counts) Balanced() bool { return c.Pushed == c.Applied+c.Dropped()+c.Pending }

// Add counts what o counts, too.
func (c *Counts) Add(o *Counts) {
	c.Pushed += o.Pushed
	c.Applied += o.Applied
	c.Late += o.Late
	c.Expired += o.Expired
	c.Skipped += o.Skipped
	c.Pending += o.Pending
}

// End counts a final outcome. It leaves Pushed and Pending alone.
func (c *Counts) End(o Outcome) {
	switch o {
	case Applied:
		c.Applied++
	case Late:
		c.Late++
	case Expired:
		c.Expired++
	case Skipped:
		c.Skipped++
	case Unknown, Pending:
		panic("consistency: the outcome is not final")
	}
}

// Bucket counts contributions that were applied with one staleness.
type Bucket struct {
	// Staleness is in versions, exact.
	Staleness int64 `json:"staleness"`
	Count     int64 `json:"count"`
}
