// Package check proves a plan before anything runs it. It knows no strategy: a
// plan written by hand is held to the same as one that a strategy made.
//
// # What is proved
//
//  1. Form: every index names something, a task is on the lane that its kind
//     occupies and has the values that its kind reads and writes; what is placed
//     in an arena fits there, and what overlaps is in use one after the other.
//  2. Agreement: the members of a group see the same collectives, alike and in
//     one order; tags tell messages apart.
//  3. Progress: no rank hangs, even if a send ends only when its receive is
//     posted.
//  4. Owners cover every state once.
//  5. Order: nothing is read before it was written, and no two tasks touch a
//     value at the same time if one of them writes, also across the steps of
//     the window; what is pulled is as the step before left it.
//  6. Gradients: every holder of a trained state updates it once a step, from a
//     gradient that has met every batch of the step once, divided by the weight
//     of the same batches, and checked for finiteness. A sharded state is updated so
//     in parts that make up the whole, and gathered before anything reads it.
//
// A plan that declares no gradient (an evaluation) has nothing to prove in 6.
// What is not proved: that a segment computes what its name says, that a peer
// is alive, that memory suffices.
//
// # Why one run proves all runs
//
// Progress is shown by running the plan once, greedily and without data: the
// cursors that the executor uses walk through Window+2 steps of all ranks, and
// whatever may end does. That one order of events stands for all others:
//
//   - A lane runs its tasks in the order of the list, so which task it begins
//     next does not depend on time.
//   - What a task waits for (tasks of its rank, the window, its partners) is
//     never undone once it has happened. If two tasks may both end now, either
//     still may after the other has.
//   - So from any state, all runs that go on as long as they can end the same
//     tasks: exchanging two neighbours that were both possible turns one run
//     into another. If one of them ends everything, none can get stuck, however
//     slow a rank or a link is.
//
// Sends that need their receive posted are the hardest case: a transport that
// buffers only lets more tasks end earlier, which by the same argument hinders
// none. Steps beyond Window+1 repeat the picture of those before: a dependency
// on a step further back than the window has been met by the window.
//
// Races are found without running: vector clocks over the lanes (see clocks)
// say for two tasks whether one has certainly ended before the other begins.
// Gradients are followed through the same one run, with the set of batches that
// each value has met in place of the tensor; that the order does not matter for
// these sets is what 5 has shown before.
package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/plan"
)

// MaxWindow bounds the steps in flight, and so the memory of a plan.
const MaxWindow = 64

// MaxFindings bounds what Plan reports of one plan; more are counted.
const MaxFindings = 50

// Finding is one thing wrong with a plan.
type Finding struct { //nolint:errname // what Plan reports is a finding
	// Rank and Task say where: -1 if it is about no single one.
	Rank, Task int
	// Name is what the task does, empty without a task.
	Name string
	// Text says what is wrong and what to change.
	Text string
}

// Error implements error.
func (f *Finding) Error() string {
	switch {
	case f.Rank < 0:
		return "plan: " + f.Text
	case f.Task < 0:
		return fmt.Sprintf("rank %d: %s", f.Rank, f.Text)
	}
	return fmt.Sprintf("rank %d: task %d (%s): %s", f.Rank, f.Task, f.Name, f.Text)
}

// Plan proves a plan, or says what is wrong with it and what to change. All
// findings are joined, as *Finding, the most telling first; a proof that
// presumes one that failed is left out.
//
// Cost: O(steps · ranks · tasks · lanes) for steps = Window+2, and the pairs of
// tasks that touch one value.
func Plan(p *plan.Plan) error {
	c := &checker{p: p}
	c.form()
	if len(c.findings) > 0 {
		return c.verdict()
	}
	var done [][]place
	if c.agreement(); len(c.findings) == 0 {
		done = c.progress()
	}
	c.holders()
	ordered := true
	for rank, tasks := range p.Ranks {
		k := newClocks(tasks, p.Window, p.Window+1)
		ordered = c.dataflow(rank, k) && ordered
		c.stores(rank, k)
	}
	if done != nil && ordered {
		c.gradients(done)
	}
	return c.verdict()
}

// none stands for no rank, no task.
const none = -1

type checker struct {
	p        *plan.Plan
	findings []error
	dropped  int
}

// task adds a finding about a task of a rank; of either there may be none.
func (c *checker) task(rank, task int, format string, args ...any) {
	if len(c.findings) == MaxFindings {
		c.dropped++
		return
	}
	f := &Finding{Rank: rank, Task: task, Text: fmt.Sprintf(format, args...)}
	if task != none {
		f.Name = c.name(rank, task)
	}
	c.findings = append(c.findings, f)
}

// plan adds a finding about the plan.
func (c *checker) plan(format string, args ...any) { c.task(none, none, format, args...) }

func (c *checker) verdict() error {
	if c.dropped > 0 {
		c.findings = append(c.findings, &Finding{Rank: none, Task: none, Text: fmt.Sprintf("and %d more findings", c.dropped)})
	}
	return errors.Join(c.findings...)
}

// name says what a task does: "allreduce reduce.w".
func (c *checker) name(rank, task int) string {
	t := &c.p.Ranks[rank][task]
	return t.Verb() + " " + t.Name
}

// there says what and where a task of some rank is: "task 3 (recv h)".
func (c *checker) there(rank, task int) string {
	return fmt.Sprintf("task %d (%s)", task, c.name(rank, task))
}

func (c *checker) value(v int) string { return plan.Quote(c.p.Values[v].Name) }

// at is the task of a place.
func (c *checker) at(p place) *plan.Task { return &c.p.Ranks[p.rank][p.task] }

// lasts reports whether a value exists once, not once a step in flight.
func (c *checker) lasts(v int) bool {
	return c.p.Values[v].Class == plan.Param || c.p.Values[v].Class == plan.Slot
}

// stateOf is the parameter that a value belongs to.
func (c *checker) stateOf(r plan.Ref) int { return c.p.Values[r.Value].State }

// isTable reports whether a store holds the state by rows.
func isTable(h *plan.Holding) bool { return h.Store >= 0 && h.Lo == 0 && h.Hi == 0 }

// heldBy reports whether a rank holds a state, or a part of it.
func (c *checker) heldBy(rank, state int) bool {
	return slices.ContainsFunc(c.p.Holdings, func(h plan.Holding) bool { return h.Rank == rank && h.State == state })
}

// storesOf lists the stores that own a part of a state.
func (c *checker) storesOf(state int) (stores []int) {
	for _, h := range c.p.Holdings {
		if h.Store >= 0 && h.State == state && h.Owner {
			stores = append(stores, h.Store)
		}
	}
	return stores
}

// ranksText is "rank 1" or "ranks 0 2".
func ranksText(ranks []string) string {
	if len(ranks) == 1 {
		return "rank " + ranks[0]
	}
	return "ranks " + strings.Join(ranks, " ")
}
