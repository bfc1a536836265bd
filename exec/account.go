package exec

import (
	"slices"

	"github.com/gangline/gangline/plan"
)

// Account says what became of the gradients of one parameter that this rank
// made: always Pushed = Applied + Dropped + Pending. One contribution is one
// gradient of one step (of one micro-batch, if there are several).
type Account struct {
	State   string `json:"state"`
	Pushed  int64  `json:"pushed"`
	Applied int64  `json:"applied"`
	// Dropped are those of steps that were skipped.
	Dropped int64 `json:"dropped"`
	// Pending are those of steps in flight, or lost with a run that failed.
	Pending int64 `json:"pending"`
}

// ledger counts the gradients of the parameters that this rank updates itself;
// those that it pushes to stores are counted there.
type ledger struct {
	entries []Account
	byState map[int]int
	// open counts contributions not applied yet, by copy and entry.
	open [][]int64
}

// entry is what the end of a task means for the ledger.
type entry struct {
	made    []int // entries to which a gradient was made
	applied int   // entry whose gradients were applied, or -1
}

// newLedger opens an entry for each parameter that the list updates.
func newLedger(p *plan.Plan, list []plan.Task) ledger {
	l := ledger{byState: map[int]int{}, open: make([][]int64, p.Window)}
	for i := range list {
		s := updates(p, &list[i])
		if s == plan.NoState {
			continue
		}
		if _, ok := l.byState[s]; !ok {
			l.byState[s] = len(l.entries)
			l.entries = append(l.entries, Account{State: p.Values[s].Name})
		}
	}
	for c := range l.open {
		l.open[c] = make([]int64, len(l.entries))
	}
	return l
}

// updates is the parameter that a task updates, or NoState.
func updates(p *plan.Plan, t *plan.Task) int {
	if t.Kind != plan.Compute || t.Seg < 0 || t.Seg >= len(p.Segs) {
		return plan.NoState
	}
	if s := p.Segs[t.Seg].Update; s >= 0 && s < len(p.Values) {
		return s
	}
	return plan.NoState
}

// entryOf says what the end of a task will mean.
func (l *ledger) entryOf(p *plan.Plan, t *plan.Task) entry {
	e := entry{applied: -1}
	if s := updates(p, t); s != plan.NoState {
		e.applied = l.byState[s]
		return e
	}
	if t.Kind != plan.Compute {
		return e
	}
	for _, r := range t.Out {
		v := &p.Values[r.Value]
		if k, ok := l.byState[v.State]; ok && v.Class == plan.Grad {
			e.made = append(e.made, k)
		}
	}
	return e
}

// ended books the end of a task on copy c of a step whose outcome, if it is
// known yet, is r.
func (l *ledger) ended(e entry, c int, r *Result) {
	for _, k := range e.made {
		l.entries[k].Pushed++
		l.open[c][k]++
	}
	if e.applied < 0 {
		return
	}
	a := &l.entries[e.applied]
	n := l.open[c][e.applied]
	l.open[c][e.applied] = 0
	if r.Skipped {
		a.Dropped += n
	} else {
		a.Applied += n
	}
}

// accounts returns a copy with Pending worked out.
func (l *ledger) accounts() []Account {
	out := slices.Clone(l.entries)
	for i := range out {
		out[i].Pending = out[i].Pushed - out[i].Applied - out[i].Dropped
	}
	return out
}
