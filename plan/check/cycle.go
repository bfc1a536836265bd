package check

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/gangline/gangline/plan"
)

// Program proves every plan of a program, and, if ranks train copies of their own
// (plan.Plan.Local), that the copies meet:
//
//   - After a cycle each rank's copy of a parameter has something of the copy of every
//     other rank that holds it, and the factors of all add up to 1.
//   - Where the program settles, be it after a cycle or within one, all copies are
//     equal, those of slots too.
//
// It runs the plans one after the other with linear forms in place of tensors: after a
// local update a copy is an unknown of its own, a sum the sum of forms. So it follows
// what is made of copies by Adds with factors, sums over ranks, broadcasts and
// messages; whatever else writes a copy is one more unknown, which nobody shares. Two
// turns of the cycle stand for all: after a turn the forms are of the same kind, over
// other unknowns.
//
// Cost: that of Plan for each; then one parameter after the other O(tasks · ranks), and
// O(ranks²) where copies are drawn together but not made equal.
func Program(p *plan.Program) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		if err := Plan(p.Plans[name]); err != nil {
			errs = append(errs, fmt.Errorf("plan %q: %w", name, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return copiesMeet(p)
}

// term is one unknown of a linear form, by its number, and what it counts.
type term struct {
	unknown int
	factor  float64
}

// form is a sum of terms in the order of their unknowns; it is never changed in place.
type form []term

// unknown is a copy as some step left it. Rank none is what all ranks have alike.
type unknown struct {
	step, rank int
	name       string
}

// number is the unknown that stands for the number 1.
const number = ""

// where is a rank's copy of a state.
type where struct {
	rank int
	name string
}

// meeting runs the plans of a program in place of a driver.
type meeting struct {
	*checker
	program  *plan.Program
	done     map[string][][]place // of each plan
	param    string               // which states are looked at: it and its slots
	step     int
	unknowns map[unknown]int
	names    []unknown
	copies   map[where]form // without an entry: as all ranks have it
	values   map[life]form  // of the plan that runs
	apart    map[string]bool
}

// copiesMeet proves what Program says of copies.
func copiesMeet(p *plan.Program) error {
	m := &meeting{checker: &checker{}, program: p, done: map[string][][]place{}}
	feeding, ends := m.turns()
	if len(m.findings) > 0 || feeding == "" || !p.Plans[feeding].Local {
		return m.verdict()
	}
	if p.Plans[p.Settle] == nil {
		m.plan("%s trains copies of its ranks' own, and no plan %q lets them settle: name one (Settle), after which all copies are equal", feeding, p.Settle)
		return m.verdict()
	}
	for _, v := range p.Plans[feeding].Values {
		if v.Class == plan.Param {
			m.param = v.Name
			m.meet(feeding, ends)
		}
	}
	return m.verdict()
}

// meet proves it of one parameter and its slots.
func (m *meeting) meet(feeding string, ends []string) {
	m.step, m.unknowns, m.names, m.copies, m.apart = 0, map[unknown]int{}, nil, map[where]form{}, map[string]bool{}
	before := len(m.findings)
	if m.program.Init != "" {
		m.run(m.program.Init)
	}
	for range 2 {
		m.run(feeding)
		for _, name := range ends {
			m.run(name)
		}
	}
	if m.met(); len(m.findings) > before {
		return
	}
	m.run(m.program.Settle)
	m.equal("after a cycle")
	if len(m.findings) > before {
		return
	}
	m.run(feeding)
	m.run(m.program.Settle)
	m.equal("within a cycle")
}

// looked reports whether a value belongs to what is looked at.
func (m *meeting) looked(r plan.Ref) bool {
	s := m.stateOf(r)
	return s != plan.NoState && m.p.Values[s].Name == m.param
}

// turns returns the plan of a program that feeds, and those that a cycle ends with.
func (m *meeting) turns() (feeding string, ends []string) {
	if len(m.program.Cycle) == 0 {
		m.plan("the program runs no plan: name those of a cycle (Cycle), which for most is the one of a step")
	}
	for _, name := range append(slices.Clone(m.program.Cycle), m.program.Init) {
		if m.program.Plans[name] == nil && name != "" {
			m.plan("the program runs a plan %q, which it has not", name)
			return "", nil
		}
	}
	for _, name := range m.program.Cycle {
		p := m.program.Plans[name]
		feeds := slices.ContainsFunc(p.Ranks, func(tasks []plan.Task) bool {
			return slices.ContainsFunc(tasks, func(t plan.Task) bool { return t.Kind == plan.Feed })
		})
		switch {
		case !feeds:
			ends = append(ends, name)
		case feeding != "" && feeding != name, len(ends) > 0:
			m.plan("the cycle runs %q where it has run %q: want one plan that feeds, as often as needed, and then those that do not", name, feeding)
			return "", nil
		default:
			feeding = name
		}
	}
	return feeding, ends
}

// run runs a plan once.
func (m *meeting) run(name string) {
	m.p, m.values = m.program.Plans[name], map[life]form{}
	if m.p.Local {
		m.step++
	}
	if m.done[name] == nil {
		m.done[name] = m.progress()
	}
	for _, together := range m.done[name] {
		m.event(together)
	}
}

// of is the number of an unknown, as a form.
func (m *meeting) of(u unknown) form {
	i, ok := m.unknowns[u]
	if !ok {
		i = len(m.names)
		m.unknowns[u] = i
		m.names = append(m.names, u)
	}
	return form{{i, 1}}
}

// get is what a rank's value is made of.
func (m *meeting) get(rank int, r plan.Ref) form {
	name := m.p.Values[r.Value].Name
	if m.lasts(r.Value) {
		if f, ok := m.copies[where{rank, name}]; ok {
			return f
		}
		return m.of(unknown{0, none, name})
	}
	if f, ok := m.values[life{rank, r}]; ok {
		return f
	}
	return m.of(unknown{m.step, rank, "value " + name})
}

func (m *meeting) set(rank int, r plan.Ref, f form) {
	if m.lasts(r.Value) {
		m.copies[where{rank, m.p.Values[r.Value].Name}] = f
	} else {
		m.values[life{rank, r}] = f
	}
}

// event follows one task, or the tasks that end together.
func (m *meeting) event(together []place) {
	at := together[0]
	t := m.at(at)
	switch t.Kind {
	case plan.Compute:
		for _, r := range t.Out {
			if m.looked(r) && m.lasts(r.Value) && m.p.Local {
				name := m.p.Values[r.Value].Name
				m.apart[name] = true
				m.set(at.rank, r, m.of(unknown{m.step, at.rank, name}))
			}
		}
	case plan.Add:
		if len(t.Out) == 1 && m.looked(t.Out[0]) {
			m.set(at.rank, t.Out[0], m.combined(at.rank, t))
		}
	case plan.Send, plan.Recv:
		if out := m.at(together[1]).Out[0]; m.looked(out) {
			m.set(together[1].rank, out, m.get(at.rank, t.In[0]))
		}
	case plan.Collective:
		if t.Op != plan.AllReduce && t.Op != plan.Broadcast {
			return
		}
		for i := range t.In {
			if !m.looked(t.Out[i]) {
				continue
			}
			sum := m.get(at.rank, t.In[i])
			for _, other := range together[1:] {
				if t.Op == plan.AllReduce {
					sum = sum.plus(1, m.get(other.rank, m.at(other).In[i]))
				}
			}
			for _, each := range together {
				m.set(each.rank, m.at(each).Out[i], sum)
			}
		}
	case plan.Feed, plan.Pull, plan.Push, plan.Commit: // write no copy
	}
}

// combined is what an Add makes.
func (m *meeting) combined(rank int, t *plan.Task) form {
	var sum form
	for i, r := range t.In {
		factor := 1.
		if len(t.Factors) > 0 {
			factor = t.Factors[i]
		}
		if sum = sum.plus(factor, m.get(rank, r)); len(t.In) == 1 && len(t.Factors) < 2 && factor == 1 {
			return m.get(rank, r)
		}
	}
	if len(t.Factors) > len(t.In) {
		sum = sum.plus(t.Factors[len(t.In)], m.of(unknown{0, none, number}))
	}
	return sum
}

// plus is f + factor·g, without what cancels out.
func (f form) plus(factor float64, g form) form {
	sum := make(form, 0, len(f)+len(g))
	put := func(t term) {
		if math.Abs(t.factor) > 1e-12 {
			sum = append(sum, t)
		}
	}
	for len(f) > 0 || len(g) > 0 {
		switch {
		case len(g) == 0 || len(f) > 0 && f[0].unknown < g[0].unknown:
			put(f[0])
			f = f[1:]
		case len(f) == 0 || g[0].unknown < f[0].unknown:
			put(term{g[0].unknown, factor * g[0].factor})
			g = g[1:]
		default:
			put(term{f[0].unknown, f[0].factor + factor*g[0].factor})
			f, g = f[1:], g[1:]
		}
	}
	return sum
}

// near reports whether two forms are one but for rounding.
func (f form) near(g form) bool {
	return slices.EqualFunc(f, g, func(a, b term) bool { return a.unknown == b.unknown && math.Abs(a.factor-b.factor) < 1e-9 })
}

// holders lists the states of the plan that ran last, with the ranks that hold them.
func (m *meeting) holdersOf(class plan.Class) (names []string, ranks map[string][]int) {
	ranks = map[string][]int{}
	for i := range m.p.Holdings {
		h := &m.p.Holdings[i]
		v := &m.p.Values[h.State]
		if h.Rank < 0 || v.Class != class || !m.looked(plan.Ref{Value: h.State}) {
			continue
		}
		if len(ranks[v.Name]) == 0 {
			names = append(names, v.Name)
		}
		ranks[v.Name] = append(ranks[v.Name], h.Rank)
	}
	return names, ranks
}

// met proves that all copies of a parameter that ranks train apart are part of each.
func (m *meeting) met() {
	names, ranks := m.holdersOf(plan.Param)
	for _, name := range names {
		if !m.apart[name] {
			continue
		}
		for _, rank := range ranks[name] {
			f := m.copies[where{rank, name}]
			var missing []string
			for _, other := range ranks[name] {
				if !slices.ContainsFunc(f, func(t term) bool {
					u := m.names[t.unknown]
					return u.rank == other && u.name == name && t.factor > 0
				}) {
					missing = append(missing, strconv.Itoa(other))
				}
			}
			if len(missing) > 0 {
				m.task(rank, none, "its copy of %s has nothing of that of %s after a cycle: average them (a sum over all, each times its share)", plan.Quote(name), ranksText(missing))
			}
			m.whole(rank, name, f)
		}
	}
}

// whole proves that copies of a parameter, if they are equal, are left as they are.
func (m *meeting) whole(rank int, name string, f form) {
	sum := 0.
	for _, t := range f {
		switch m.names[t.unknown].name {
		case name:
			sum += t.factor
		case number:
			m.task(rank, none, "a number is added to %s when copies meet: leave it out", plan.Quote(name))
		}
	}
	if math.Abs(sum-1) > 1e-6 {
		m.task(rank, none, "the copies that its %s is made of count %.6g together, want 1: divide the sum by how many they are", plan.Quote(name), sum)
	}
}

// equal proves that all ranks have the same of every state.
func (m *meeting) equal(when string) {
	for _, class := range []plan.Class{plan.Param, plan.Slot} {
		names, ranks := m.holdersOf(class)
		for _, name := range names {
			for _, rank := range ranks[name] {
				r := plan.Ref{Value: slices.IndexFunc(m.p.Values, func(v plan.Value) bool { return v.Name == name })}
				lead := m.get(ranks[name][0], r)
				if f := m.get(rank, r); !f.near(lead) {
					m.task(rank, none, "settling %s leaves it another %s than rank %d has: average it, or copy it to all", when, plan.Quote(name), ranks[name][0])
				} else if class == plan.Param {
					m.whole(rank, name, f)
				}
			}
		}
	}
}
