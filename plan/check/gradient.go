package check

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/gangline/gangline/plan"
)

// batch is what one Feed brings: the unit that a gradient has met or not.
type batch struct{ rank, micro int }

// set is a set of batches by index, one bit each; it is never changed in place.
type set = *big.Int

// life is one life of a value on one rank.
type life struct {
	rank int
	ref  plan.Ref
}

// tracer follows which batches every value has met, through one step.
type tracer struct {
	*checker
	batches []batch
	all     set              // every batch of the step
	own     []set            // by rank: the batches that its gradients must meet
	met     map[life]set     // none for what has met nothing
	totals  map[life]bool    // first results of a Commit
	checked map[life]bool    // gradients that a Commit looks at
	updates map[[2]int][]int // tasks by (rank, state)
	pushed  map[[2]int]set   // by (store, state)
	// branch is the branch of the tree over slices that a value is the sum of.
	branch map[life]plan.Branch
	// scattered are values of which only the part is a sum that the rank answers for.
	scattered map[life]bool
}

// gradients proves that every trained state is updated once, wherever it is
// held, from the sum over all batches of the step, each met once.
//
// It runs one step with sets of batches in place of tensors: a Feed meets its
// own, a Compute all that its inputs have met, a sum the union of what must be
// disjoint. The order of done is one that may happen; where another could give
// other sets, dataflow has complained.
func (c *checker) gradients(done [][]place) {
	t := &tracer{
		checker: c, all: new(big.Int), met: make(map[life]set), totals: make(map[life]bool), checked: make(map[life]bool),
		updates: make(map[[2]int][]int), pushed: make(map[[2]int]set), branch: make(map[life]plan.Branch), scattered: make(map[life]bool),
	}
	for rank, tasks := range c.p.Ranks {
		for i := range tasks {
			switch tasks[i].Kind {
			case plan.Feed:
				t.feed(rank, tasks[i].Out)
			case plan.Commit:
				for _, r := range tasks[i].In[2*c.p.Pairs(&tasks[i]):] {
					t.checked[life{rank, r}] = true
				}
			case plan.Compute, plan.Send, plan.Recv, plan.Collective, plan.Pull, plan.Push, plan.Add: // say nothing before they are done
			}
		}
	}
	t.own = slices.Repeat([]set{t.all}, len(c.p.Ranks))
	for rank := range c.p.Ranks {
		if !c.p.Local {
			break
		}
		t.own[rank] = new(big.Int)
		for i, b := range t.batches {
			if b.rank == rank {
				t.own[rank].SetBit(t.own[rank], i, 1)
			}
		}
	}
	for _, together := range done {
		t.event(together)
	}
	for state := range c.p.Values {
		// A plan that speaks of no gradient of a parameter does not train it.
		if slices.ContainsFunc(c.p.Values, func(v plan.Value) bool { return v.Class == plan.Grad && v.State == state }) {
			t.updatedOnce(state)
		}
	}
}

// feed notes that values are a rank's batch, or micro-batches.
func (t *tracer) feed(rank int, out []plan.Ref) {
	for _, r := range out {
		b := batch{rank, r.Micro}
		i := slices.Index(t.batches, b)
		if i < 0 {
			i = len(t.batches)
			t.batches = append(t.batches, b)
			t.all.SetBit(t.all, i, 1)
		}
		t.met[life{rank, r}] = new(big.Int).SetBit(new(big.Int), i, 1)
	}
}

// of is what values of a rank have met together.
func (t *tracer) of(rank int, refs ...plan.Ref) set {
	all := new(big.Int)
	for _, r := range refs {
		if s := t.met[life{rank, r}]; s != nil {
			all.Or(all, s)
		}
	}
	return all
}

// event follows one task, or the tasks that end together.
func (t *tracer) event(together []place) {
	at := together[0]
	task := t.at(at)
	t.scatter(together)
	switch task.Kind {
	case plan.Feed: // noted before
	case plan.Compute:
		if state := t.p.Segs[task.Seg].Update; state != plan.NoState {
			t.update(at, state)
			return
		}
		met := t.of(at.rank, task.In...)
		for _, r := range task.Out {
			if !t.lasts(r.Value) {
				t.met[life{at.rank, r}] = met
				t.ofSlice(life{at.rank, r}, met)
			}
		}
	case plan.Add:
		for i, out := range task.Out {
			var terms []plan.Ref // every value, or every second: keys, rows, keys, rows...
			for k := i; k < len(task.In); k += len(task.Out) {
				terms = append(terms, task.In[k])
			}
			t.met[life{at.rank, out}] = t.sum(at, new(big.Int), terms...)
			if len(task.Factors) > 0 { // no plain sum
				terms = nil
			}
			t.joined(at.rank, out, terms)
		}
	case plan.Send, plan.Recv:
		to := together[1]
		out := t.at(to).Out[0]
		t.met[life{to.rank, out}] = t.of(at.rank, task.In[0])
		t.alike(to, task.In[0], out)
	case plan.Collective, plan.Commit:
		for i := range task.Out {
			t.reduce(together, i)
		}
	case plan.Pull:
		rows := len(task.Out) - len(task.In)
		for i, r := range task.In {
			t.met[life{at.rank, task.Out[rows+i]}] = t.of(at.rank, r)
		}
	case plan.Push:
		t.push(at)
	}
}

// scatter follows what has become of values: a ReduceScatter leaves parts, which sums
// of parts keep, and which nothing may read as if they were whole.
func (t *tracer) scatter(together []place) {
	for _, at := range together {
		task := t.at(at)
		parts := t.leavesParts(task)
		update := task.Kind == plan.Compute && t.p.Segs[task.Seg].Update != plan.NoState && t.p.Values[t.p.Segs[task.Seg].Update].Sharded
		for _, r := range task.In {
			switch {
			case !t.scattered[life{at.rank, r}] || task.Kind == plan.Collective && task.Op == plan.AllGather:
			case task.Kind == plan.Add && !parts && t.scattered[life{at.rank, task.In[0]}]:
				parts = true
			case !update && task.Kind != plan.Add && (task.Kind != plan.Commit || !t.p.Values[r.Value].Sharded) || task.Kind == plan.Add && !parts:
				t.task(at.rank, at.task, "reads all of %s, of which the rank has its part of the sum", t.value(r.Value))
			}
		}
		for _, r := range task.Out {
			t.scattered[life{at.rank, r}] = parts
		}
	}
}

// leavesParts reports whether a task leaves of each value out a part that counts.
func (t *tracer) leavesParts(task *plan.Task) bool {
	if task.Kind != plan.Collective || task.Op != plan.ReduceScatter || len(t.p.Groups[task.Group]) == 1 {
		return false
	}
	in, out := &t.p.Values[task.In[0].Value], &t.p.Values[task.Out[0].Value]
	return out.Sharded || in.Shape.Elems() == out.Shape.Elems()
}

// sum unites what terms have met with a part of the sum. Of gradients, weights
// and losses, which are sums themselves, no batch may come twice.
func (t *tracer) sum(at place, part set, terms ...plan.Ref) set {
	for _, r := range terms {
		met := t.of(at.rank, r)
		v := &t.p.Values[r.Value]
		counts := v.Class == plan.Scalar || v.Class == plan.Grad && v.State != plan.NoState
		if again := new(big.Int).And(part, met); counts && again.Sign() != 0 {
			t.task(at.rank, at.task, "counts twice in %s what it has met of %s: add each contribution once", plan.Quote(v.Name), t.text(again))
		}
		part = new(big.Int).Or(part, met)
	}
	return part
}

// reduce follows the i-th values of a collective or commit.
func (t *tracer) reduce(together []place, i int) {
	lead := &t.p.Values[t.at(together[0]).In[i].Value]
	total := new(big.Int)
	for n, at := range together {
		task := t.at(at)
		v := &t.p.Values[task.In[i].Value]
		switch {
		case v.State != lead.State:
			t.task(at.rank, at.task, "adds %s to %s of rank %d, which belongs to another parameter", plan.Quote(v.Name), plan.Quote(lead.Name), together[0].rank)
		case task.Op == plan.Broadcast && n > 0: // the first one's counts
		case task.Op == plan.AllGather: // ranges of one value, each as it is
			total.Or(total, t.of(at.rank, task.In[i]))
		default:
			total = t.sum(at, total, t.terms(task, i)...)
		}
		if task.Order == plan.Tree {
			t.inOrder(n, len(together), at, i)
		}
	}
	for _, at := range together {
		task := t.at(at)
		result := life{at.rank, task.Out[i]}
		t.met[result] = total
		delete(t.branch, result)
		if task.Order == plan.Tree {
			t.branch[result] = plan.Branch{Lo: 0, Hi: t.p.Slices}
		}
		if task.Kind == plan.Commit && i == 0 {
			t.totals[result] = true
			if lacks := t.missing(at.rank, total); lacks != "" {
				t.task(at.rank, at.task, "its total weight lacks %s: a commit is over all that feed", lacks)
			}
			t.foreign(at, task.Out[i], total)
		}
	}
}

// update proves what a rank's update of a state is made from.
func (t *tracer) update(at place, state int) {
	key := [2]int{at.rank, state}
	t.updates[key] = append(t.updates[key], at.task)
	bad := func(format string, args ...any) { t.task(at.rank, at.task, format, args...) }
	grads, totals := 0, 0
	for _, r := range t.at(at).In {
		v := &t.p.Values[r.Value]
		switch v.Class {
		case plan.Grad:
			grads++
			if v.State != state {
				bad("updates %s from %s, the gradient of another parameter", t.value(state), plan.Quote(v.Name))
			}
			if !t.checked[life{at.rank, r}] {
				bad("no commit looks whether %s is finite: put it among what the commit reads", plan.Quote(v.Name))
			}
			if t.p.Slices > 0 && t.branch[life{at.rank, r}] != (plan.Branch{Lo: 0, Hi: t.p.Slices}) {
				bad("updates %s from %s, which is no sum of all %d slices in the order of the tree: reduce it with order=tree", t.value(state), plan.Quote(v.Name), t.p.Slices)
			}
			if v.Sharded != t.p.Values[state].Sharded {
				bad("updates %s from %s, of which one is sharded: want both alike", t.value(state), plan.Quote(v.Name))
			}
			fallthrough
		case plan.Key:
			met := t.of(at.rank, r)
			if lacks := t.missing(at.rank, met); lacks != "" {
				bad("updates %s from %s, which lacks %s: reduce it over all that feed", t.value(state), plan.Quote(v.Name), lacks)
			}
			t.foreign(at, r, met)
		case plan.Scalar:
			totals++
			if !t.totals[life{at.rank, r}] {
				bad("divides by %s, which is no total of a commit", plan.Quote(v.Name))
			}
		case plan.Param, plan.Slot, plan.Act:
		}
	}
	if grads != 1 || totals != 1 {
		bad("updates %s from %d gradients and %d totals: want one of each", t.value(state), grads, totals)
	}
}

// push notes which batches a store has been given of a state.
func (t *tracer) push(at place) {
	task := t.at(at)
	bad := func(format string, args ...any) { t.task(at.rank, at.task, format, args...) }
	grads, _ := t.pushedBy(task) // proved by form
	for _, r := range grads {
		v := &t.p.Values[r.Value]
		key := [2]int{task.Store, v.State}
		part, met := t.pushed[key], t.of(at.rank, r)
		if part == nil {
			part = new(big.Int)
		}
		if again := new(big.Int).And(part, met); again.Sign() != 0 {
			bad("gives store %d in %s a second time what it has of %s: push each worker's own gradient once", task.Store, plan.Quote(v.Name), t.text(again))
		}
		t.pushed[key] = new(big.Int).Or(part, met)
		if !slices.Contains(t.storesOf(v.State), task.Store) {
			bad("store %d owns no part of %s: drop the gradient, or push it where its parameter is", task.Store, t.value(v.State))
		}
		if task.Done == plan.Stored && !t.checked[life{at.rank, r}] {
			bad("no commit looks whether %s is finite: put it among what the commit reads", plan.Quote(v.Name))
		}
	}
}

// updatedOnce proves that all who hold a state change it once.
func (t *tracer) updatedOnce(state int) {
	for _, store := range t.storesOf(state) {
		got := t.pushed[[2]int{store, state}]
		for i, b := range t.batches {
			if got == nil || got.Bit(i) == 0 {
				t.task(b.rank, none, "never gives store %d its gradient of %s: add a push", store, t.value(state))
			}
		}
	}
	for rank := range t.p.Ranks {
		tasks := t.updates[[2]int{rank, state}]
		if len(tasks) == 0 && t.heldBy(rank, state) {
			t.task(rank, none, "holds %s but never updates it: add the update, or drop the holding", t.value(state))
		}
		for _, again := range tasks[min(1, len(tasks)):] {
			t.task(rank, again, "updates %s a second time: %s has done so", t.value(state), t.there(rank, tasks[0]))
		}
	}
}

// missing names the batches that a set of a rank lacks; none is "".
func (t *tracer) missing(rank int, s set) string {
	if lacks := new(big.Int).AndNot(t.own[rank], s); lacks.Sign() != 0 {
		return t.text(lacks)
	}
	return ""
}

// foreign refuses, in a plan whose ranks train copies of their own, what has met the
// batches of others.
func (t *tracer) foreign(at place, r plan.Ref, met set) {
	if more := new(big.Int).AndNot(met, t.own[at.rank]); more.Sign() != 0 {
		t.task(at.rank, at.task, "%s has met %s, in a plan in which every rank trains a copy by itself: use what is its own, or sum over all and drop local=true",
			t.value(r.Value), t.text(more))
	}
}

// text names batches: "the batch of rank 0.1" is micro-batch 1 of rank 0.
func (t *tracer) text(s set) string {
	var names []string
	for i, b := range t.batches {
		switch {
		case s.Bit(i) == 0:
		case b.micro == 0:
			names = append(names, strconv.Itoa(b.rank))
		default:
			names = append(names, fmt.Sprintf("%d.%d", b.rank, b.micro))
		}
	}
	return "the batch of " + ranksText(names)
}
