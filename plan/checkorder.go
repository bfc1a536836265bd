package plan

import (
	"cmp"
	"fmt"
	"slices"
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
	uses := make(map[Ref][]access)
	for i := range k.tasks {
		t := &k.tasks[i]
		for _, r := range t.In {
			c.use(uses, r, i, false)
		}
		for _, r := range t.Out {
			c.use(uses, r, i, true)
		}
	}
	refs := make([]Ref, 0, len(uses))
	for r := range uses {
		refs = append(refs, r)
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Micro, b.Micro), cmp.Compare(a.Use, b.Use))
	})
	for _, r := range refs {
		c.written(rank, k, r, uses[r])
		c.ordered(rank, k, r, uses[r])
	}
	return len(c.findings)+c.dropped == before
}

// lasts reports whether a value exists once, not once a step in flight.
func (c *checker) lasts(v int) bool {
	return c.p.Values[v].Class == Param || c.p.Values[v].Class == Slot
}

// use notes an access. A value that lasts has one life, whatever its Ref says.
func (c *checker) use(uses map[Ref][]access, r Ref, task int, write bool) {
	if c.lasts(r.Value) {
		r = Ref{Value: r.Value}
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
// store that has a part of it.
func (c *checker) written(rank int, k *clocks, r Ref, uses []access) {
	if c.lasts(r.Value) && c.heldBy(rank, r.Value) {
		return
	}
	for _, u := range uses {
		if !u.read {
			continue
		}
		written, pulled, pulls := false, make(map[int]bool), false
		for _, w := range uses {
			if !w.write || w.task == u.task {
				continue
			}
			if t := &k.tasks[w.task]; t.Kind == Pull {
				pulls = true
				pulled[t.Store] = pulled[t.Store] || k.before(w.task, u.task, 0)
			}
			// One that comes earlier, but unordered, is for ordered to tell.
			written = written || w.task < u.task
		}
		if !written && !pulls {
			c.task(rank, u.task, "reads %s, which nothing before it has written: add what writes it, and wait for that", c.value(r.Value))
			continue
		}
		if !pulls {
			continue
		}
		for _, s := range c.storesOf(c.p.Values[r.Value].State) {
			if !pulled[s] {
				c.task(rank, u.task, "may read a stale %s: it must wait for a pull of its part on store %d", c.value(r.Value), s)
			}
		}
	}
}

// ordered proves that no two tasks touch a value at once if one of them writes.
func (c *checker) ordered(rank int, k *clocks, r Ref, uses []access) {
	for i, a := range uses {
		for _, b := range uses[i+1:] {
			// Two stores fill different parts.
			if c.pulls(k, a) && c.pulls(k, b) && k.tasks[a.task].Store != k.tasks[b.task].Store {
				continue
			}
			if (a.write || b.write) && !k.before(a.task, b.task, 0) {
				c.task(rank, b.task, "%s %s while %s %s it: make it wait for task %d",
					does(b), c.value(r.Value), c.there(rank, a.task), may(a), a.task)
			}
		}
	}
	if !c.lasts(r.Value) {
		return // every step in flight has its own, and the window parts the others
	}
	for d := 1; d < k.window; d++ {
		when := fmt.Sprintf("%d steps before", d)
		if d == 1 {
			when = "the step before"
		}
		for _, a := range uses {
			for _, b := range uses {
				if (a.write || b.write) && !k.before(a.task, b.task, d) && !(c.pulls(k, a) && c.pulls(k, b)) {
					c.task(rank, b.task, "%s %s while %s of %s %s it: make it wait for that (after=%d~%d)",
						does(b), c.value(r.Value), c.there(rank, a.task), when, may(a), a.task, d)
				}
			}
		}
	}
}

func (c *checker) pulls(k *clocks, a access) bool { return a.write && k.tasks[a.task].Kind == Pull }

func does(a access) string {
	if a.write {
		return "writes"
	}
	return "reads"
}

func may(a access) string {
	if a.write {
		return "may still write"
	}
	return "may still read"
}

// stores proves for one rank that a step's pulls see the parameters as the
// step before left them: after its Commit, and before their own; and that
// every push is stored when the Commit decides.
func (c *checker) stores(rank int, k *clocks) {
	var commits []int
	for i := range k.tasks {
		if k.tasks[i].Kind == Commit {
			commits = append(commits, i)
		}
	}
	for i := range k.tasks {
		switch t := &k.tasks[i]; t.Kind {
		case Pull:
			for _, m := range commits {
				if !k.before(m, i, 1) {
					c.task(rank, i, "may read store %d as it was two steps ago: make it wait for the commit of the step before (after=%d~1)", t.Store, m)
				}
				if !k.before(i, m, 0) {
					c.task(rank, i, "may read store %d when this step has changed it already: make %s wait for it", t.Store, c.there(rank, m))
				}
			}
			c.pullOwned(rank, i)
		case Push:
			if !slices.ContainsFunc(commits, func(m int) bool { return k.before(i, m, 0) }) && (t.Done == Stored || len(commits) > 0) {
				c.task(rank, i, "no commit comes after it, so the gradient is never applied: make a commit wait for it")
			}
			if t.Done != Stored && len(commits) > 0 {
				c.task(rank, i, "ends when %v, which may be after the commit: it must be stored", t.Done)
			}
		case Feed, Compute, Send, Recv, Collective, Add, Commit:
		}
	}
}

// pullOwned proves that the store has what is pulled from it.
func (c *checker) pullOwned(rank, task int) {
	t := &c.p.Ranks[rank][task]
	for _, r := range t.Out {
		if v := &c.p.Values[r.Value]; !slices.Contains(c.storesOf(v.State), t.Store) {
			c.task(rank, task, "store %d owns no part of %s", t.Store, c.value(v.State))
		}
	}
}
