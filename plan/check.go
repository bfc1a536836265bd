package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxWindow bounds the steps in flight, and so the memory of a plan.
const MaxWindow = 64

// MaxFindings bounds what one Check reports; more are counted.
const MaxFindings = 50

// Finding is one thing wrong with a plan.
type Finding struct { //nolint:errname // what Check reports is a finding
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

// Check proves a plan, or says what is wrong with it and what to change. All
// findings are joined, as *Finding, the most telling first.
//
// What it proves; a proof that presumes one that failed is left out:
//
//  1. Form: every index names something, tasks fit their lanes.
//  2. Agreement: the members of a group see the same collectives in one order;
//     tags tell messages apart.
//  3. No hang, even if a send ends only when its receive is posted.
//  4. Owners cover every state once.
//  5. Order: nothing is read before it was written, and no two tasks touch a
//     value at the same time if one of them writes, also across the steps of
//     the window.
//  6. Gradients: every holder of a trained state updates it once a step, from a
//     gradient that has met every batch of the step once, divided by the weight
//     of the same batches, and checked for finiteness.
//
// A plan that declares no gradient (an evaluation) has nothing to prove in 6.
// Cost: O(steps · ranks · tasks · lanes) for steps = Window+2, and the pairs of
// tasks that touch one value.
func Check(p *Plan) error {
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

type checker struct {
	p        *Plan
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
	return verb(t) + " " + t.Name
}

// there says what and where a task of some rank is: "task 3 (recv h)".
func (c *checker) there(rank, task int) string {
	return fmt.Sprintf("task %d (%s)", task, c.name(rank, task))
}

func (c *checker) value(v int) string { return word(c.p.Values[v].Name) }

// at is the task of a place.
func (c *checker) at(p place) *Task { return &c.p.Ranks[p.rank][p.task] }

// lasts reports whether a value exists once, not once a step in flight.
func (c *checker) lasts(v int) bool {
	return c.p.Values[v].Class == Param || c.p.Values[v].Class == Slot
}

// stateOf is the parameter that a value belongs to.
func (c *checker) stateOf(r Ref) int { return c.p.Values[r.Value].State }

// isTable reports whether a store holds the state by rows.
func isTable(h *Holding) bool { return h.Store >= 0 && h.Lo == 0 && h.Hi == 0 }

// heldBy reports whether a rank holds a state, or a part of it.
func (c *checker) heldBy(rank, state int) bool {
	return slices.ContainsFunc(c.p.Holdings, func(h Holding) bool { return h.Rank == rank && h.State == state })
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
