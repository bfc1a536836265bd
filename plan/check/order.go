package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gangline/gangline/plan"
)

// access is a task's use of a value.
type access struct {
	task        int
	read, write bool
}

// dataflow proves for one rank that nothing is read before it was written, and
// that tasks which touch one value are ordered if one of them writes.
func (c *checker) dataflow(rank int, k *clocks) (proved bool) {
	before := len(c.findings) + c.dropped
	uses := make(map[plan.Ref][]access)
	for i := range k.tasks {
		t := &k.tasks[i]
		for _, r := range t.In {
			c.use(uses, r, i, false)
		}
		for _, r := range t.Out {
			c.use(uses, r, i, true)
		}
	}
	refs := slices.SortedFunc(maps.Keys(uses), func(a, b plan.Ref) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Micro, b.Micro), cmp.Compare(a.Use, b.Use))
	})
	for _, r := range refs {
		c.written(rank, k, r, uses[r])
		c.ordered(rank, k, r, uses[r])
	}
	c.shared(rank, k, refs, uses)
	c.gathered(rank, k)
	return len(c.findings)+c.dropped == before
}

// use notes an access. A value that lasts has one life, whatever its Ref says.
func (c *checker) use(uses map[plan.Ref][]access, r plan.Ref, task int, write bool) {
	if c.lasts(r.Value) {
		r = plan.Ref{Value: r.Value}
	}
	list := uses[r]
	if n := len(list); n == 0 || list[n-1].task != task {
		list = append(list, access{task: task})
	}
	last := &list[len(list)-1]
	last.write = last.write || write
	last.read = last.read || !write
	uses[r] = list
}

// written proves that every reader comes after a writer of the same step, or
// reads a state that the rank holds. What is pulled must have come from every
// store that has a part of it. A writer that comes earlier in the list but
// unordered is for ordered to tell.
func (c *checker) written(rank int, k *clocks, r plan.Ref, uses []access) {
	if c.lasts(r.Value) && (c.heldBy(rank, r.Value) || c.p.Values[r.Value].Sharded) { // of which a rank may have no element
		return
	}
	for _, u := range uses {
		written, pulls, from := !u.read, false, make(map[int]bool)
		for _, w := range uses {
			written = written || w.write && w.task < u.task
			if w.pulls(k) {
				pulls = true
				from[k.tasks[w.task].Store] = k.before(w.task, u.task, 0)
			}
		}
		if !written {
			c.task(rank, u.task, "reads %s, which nothing before it has written: add what writes it, and wait for that", c.value(r.Value))
			continue
		}
		for _, s := range c.storesOf(c.stateOf(r)) {
			if u.read && pulls && !from[s] {
				c.task(rank, u.task, "may read a stale %s: it must wait for a pull of its part on store %d", c.value(r.Value), s)
			}
		}
	}
}

// ordered proves that no two tasks touch a value at once if one of them writes.
// A value that lasts is one for all steps in flight; of others each step has
// its own, and the window parts those that share memory.
func (c *checker) ordered(rank int, k *clocks, r plan.Ref, uses []access) {
	steps := 1
	if c.lasts(r.Value) || c.p.Values[r.Value].Once {
		steps = k.window
	}
	for d := range steps {
		when := ""
		if d > 0 {
			when = fmt.Sprintf(" of step t-%d", d)
		}
		for i, a := range uses {
			for j, b := range uses {
				fill := a.pulls(k) && b.pulls(k) // stores fill a value together
				if d == 0 && i >= j || !a.write && !b.write || fill || k.before(a.task, b.task, d) {
					continue
				}
				c.task(rank, b.task, "%ss %s while %s%s may still %s it: make it wait for that (after=%s)",
					b.does(), c.value(r.Value), c.there(rank, a.task), when, a.does(), plan.Dep{Task: a.task, Lag: d})
			}
		}
	}
}

func (a access) pulls(k *clocks) bool { return a.write && k.tasks[a.task].Kind == plan.Pull }

func (a access) does() string {
	if a.write {
		return "write"
	}
	return "read"
}

// stores proves for one rank that a step's pulls see the parameters as the
// step before left them: after its Commit, and before their own; and that
// every push is stored when the Commit decides.
func (c *checker) stores(rank int, k *clocks) {
	var commits []int
	for i := range k.tasks {
		if k.tasks[i].Kind == plan.Commit {
			commits = append(commits, i)
		}
	}
	for i := range k.tasks {
		switch t := &k.tasks[i]; t.Kind {
		case plan.Pull:
			for _, m := range commits {
				if !k.before(m, i, 1) {
					c.task(rank, i, "may read store %d as it was two steps ago: make it wait for the commit of the step before (after=%d~1)", t.Store, m)
				}
				if !k.before(i, m, 0) {
					c.task(rank, i, "may read store %d when this step has changed it already: make %s wait for it", t.Store, c.there(rank, m))
				}
			}
			for _, r := range t.Out {
				if !slices.Contains(c.storesOf(c.stateOf(r)), t.Store) {
					c.task(rank, i, "store %d owns no part of %s", t.Store, c.value(c.stateOf(r)))
				}
			}
		case plan.Push:
			if !slices.ContainsFunc(commits, func(m int) bool { return k.before(i, m, 0) }) && (t.Done == plan.Stored || len(commits) > 0) {
				c.task(rank, i, "no commit comes after it, so the gradient is never applied: make a commit wait for it")
			}
			if t.Done != plan.Stored && len(commits) > 0 {
				c.task(rank, i, "ends when %v, which may be after the commit: it must be stored", t.Done)
			}
		case plan.Feed, plan.Compute, plan.Send, plan.Recv, plan.Collective, plan.Add, plan.Commit:
		}
	}
}
