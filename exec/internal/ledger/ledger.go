// Package ledger counts what becomes of the gradients that a rank makes.
package ledger

import (
	"slices"

	"github.com/gangline/gangline/plan"
)

// Count is of the gradients of one parameter; those neither applied nor dropped are pending.
type Count struct {
	State                    string
	Pushed, Applied, Dropped int64
}

// Ledger counts the gradients of the parameters that this rank updates itself;
// those that it pushes to stores are counted there.
type Ledger struct {
	counts  []Count
	byState map[int]int
	// open counts contributions not applied yet, by copy and parameter.
	open [][]int64
}

// Entry is what the end of a task means for the ledger.
type Entry struct {
	made    []int // counts to which a gradient was made
	applied int   // count whose gradients were applied, or -1
}

// New opens a count for each parameter that the list updates.
func New(p *plan.Plan, list []plan.Task) *Ledger {
	l := &Ledger{byState: map[int]int{}, open: make([][]int64, p.Window)}
	for i := range list {
		s := Updates(p, &list[i])
		if s == plan.NoState {
			continue
		}
		if _, ok := l.byState[s]; !ok {
			l.byState[s] = len(l.counts)
			l.counts = append(l.counts, Count{State: p.Values[s].Name})
		}
	}
	for c := range l.open {
		l.open[c] = make([]int64, len(l.counts))
	}
	return l
}

// Updates is the parameter that a task updates, or NoState.
func Updates(p *plan.Plan, t *plan.Task) int {
	if t.Kind != plan.Compute || t.Seg < 0 || t.Seg >= len(p.Segs) {
		return plan.NoState
	}
	if s := p.Segs[t.Seg].Update; s >= 0 && s < len(p.Values) {
		return s
	}
	return plan.NoState
}

// EntryOf says what the end of a task will mean.
func (l *Ledger) EntryOf(p *plan.Plan, t *plan.Task) Entry {
	e := Entry{applied: -1}
	if s := Updates(p, t); s != plan.NoState {
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

// Ended books the end of a task on copy c of a step; skipped says that its Commit has
// ended and the step changes nothing.
func (l *Ledger) Ended(e Entry, c int, skipped bool) {
	for _, k := range e.made {
		l.counts[k].Pushed++
		l.open[c][k]++
	}
	if e.applied < 0 {
		return
	}
	a := &l.counts[e.applied]
	n := l.open[c][e.applied]
	l.open[c][e.applied] = 0
	if skipped {
		a.Dropped += n
	} else {
		a.Applied += n
	}
}

// Counts returns a copy of the counts, in the order in which the list updates.
func (l *Ledger) Counts() []Count { return slices.Clone(l.counts) }
