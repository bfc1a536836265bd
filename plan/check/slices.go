package check

import (
	"slices"

	"github.com/gangline/gangline/plan"
)

// formOrder proves that a task which sums in the order of a tree has what its slices ask for.
func (c *checker) formOrder(at place, bad func(string, ...any)) {
	t := c.at(at)
	p := c.p
	if t.Order == plan.Any {
		if t.Algorithm == plan.ByExchange {
			bad("%v is how a tree is summed: want order=tree, or another algorithm", t.Algorithm)
		}
		return
	}
	sums := t.Kind == plan.Commit || t.Kind == plan.Collective && (t.Op == plan.AllReduce || t.Op == plan.AllGatherRows)
	switch {
	case t.Order != plan.Tree || !sums:
		bad("has order %v: want tree, of an allreduce, allgatherrows or commit, or any", t.Order)
		return
	case t.Group < 0 || t.Group >= len(p.Groups) || p.Slices < len(p.Groups[t.Group]):
		bad("sums in the order of a tree over %d slices: want as many as ranks at least", p.Slices)
		return
	case t.Algorithm != plan.ByRing && t.Algorithm != plan.ByExchange:
		bad("%v keeps no order: a tree is summed by ring or exchange", t.Algorithm)
	}
	mine := c.share(at)
	want, got := mine.Hi-mine.Lo, len(t.In)/len(t.Out)
	switch {
	case t.Kind == plan.Commit:
		got = p.Pairs(t)
	case t.Op == plan.AllReduce:
		want = len(plan.Branches(p.Slices, mine))
	}
	if got != want || t.Kind == plan.Collective && got*len(t.Out) != len(t.In) {
		bad("has %d values of slices %d to %d for %d sums: want %d for each", len(t.In), mine.Lo, mine.Hi-1, len(t.Out), want)
	}
}

// share is the slices of a rank in the group of its task.
func (c *checker) share(at place) plan.Branch {
	group := c.p.Groups[c.at(at).Group]
	return plan.Part(c.p.Slices, len(group), slices.Index(group, at.rank))
}

// formTree proves that the branches of an AllReduce are alike, and that the sum
// goes where the first is.
func (c *checker) formTree(t *plan.Task, bad func(string, ...any)) {
	n := len(t.Out)
	if len(t.In) < n || !slices.Equal(t.In[:n], t.Out) {
		bad("the sum goes where the first branch is: want it in and out")
		return
	}
	size := 0
	for k := 0; k+n <= len(t.In); k += n {
		lo, hi, err := c.p.Span(t.In[k : k+n])
		if err != nil {
			bad("%v: what is summed together must be one run of an arena", err)
			return
		}
		if k > 0 && hi-lo != size {
			bad("the branch of %s has %d bytes, the first %d: they must be alike", c.value(t.In[k].Value), hi-lo, size)
		}
		size = hi - lo
	}
}

// terms are what a rank gives to the i-th sum of a collective or commit.
func (t *tracer) terms(task *plan.Task, i int) []plan.Ref {
	end := len(task.Out)
	switch {
	case task.Kind == plan.Commit:
		end = 2 * t.p.Pairs(task)
	case task.Order == plan.Tree:
		end = len(task.In)
	}
	var refs []plan.Ref
	for k := i; k < end; k += len(task.Out) {
		refs = append(refs, task.In[k])
	}
	return refs
}

// ofSlice notes that a value is of one slice, if it has met one batch alone.
func (t *tracer) ofSlice(l life, met set) {
	delete(t.branch, l)
	last := met.BitLen() - 1
	if last < 0 || met.TrailingZeroBits() != uint(last) {
		return
	}
	if b := t.batches[last]; b.rank == l.rank {
		t.branch[l] = plan.Branch{Lo: b.micro, Hi: b.micro + 1}
	}
}

// joined notes which branch the sum of some is, if it is one.
func (t *tracer) joined(rank int, out plan.Ref, terms []plan.Ref) {
	if len(terms) == 0 { // no sum of slices
		delete(t.branch, life{rank, out})
		return
	}
	sum, ok := t.branch[life{rank, terms[0]}]
	for _, r := range terms[1:] {
		next := t.branch[life{rank, r}]
		ok = ok && plan.Joins(t.p.Slices, sum, next)
		sum.Hi = next.Hi
	}
	if delete(t.branch, life{rank, out}); ok {
		t.branch[life{rank, out}] = sum
	}
}

// inOrder proves that what member n of a group gives to the i-th sum is its branches of
// the tree, or its slices, from the left. With them all ranks sum in one order, whatever
// their number.
func (t *tracer) inOrder(n, members int, at place, i int) {
	task := t.at(at)
	mine := plan.Part(t.p.Slices, members, n)
	var want []plan.Branch
	if task.Op == plan.AllReduce {
		want = plan.Branches(t.p.Slices, mine)
	} else {
		for s := mine.Lo; s < mine.Hi; s++ {
			want = append(want, plan.Branch{Lo: s, Hi: s + 1})
		}
	}
	for k, r := range t.terms(task, i) {
		v := &t.p.Values[r.Value]
		if got := t.branch[life{at.rank, r}]; v.Class != plan.Key && k < len(want) && got != want[k] {
			t.task(at.rank, at.task, "gives %s as the sum of slices %d to %d, which it is not in the order of the tree", plan.Quote(v.Name), want[k].Lo, want[k].Hi-1)
		}
	}
}
