package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// batch is what one Feed brings: the unit that a gradient has met or not.
type batch struct{ rank, micro int }

// set is a set of batches, by their index.
type set []uint64

func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s set) add(o set) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s set) meets(o set) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// life is one life of a value on one rank.
type life struct {
	rank int
	ref  Ref
}

// tracer follows which batches every value has met, through one step.
type tracer struct {
	c       *checker
	batches []batch
	all     set              // every batch of the step
	met     map[life]set     // none for what has met nothing
	totals  map[life]bool    // first results of a Commit
	checked map[life]bool    // gradients that a Commit looked at
	updates map[[2]int][]int // tasks by (rank, state)
	pushes  map[[2]int]set   // by (store, state)
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
		c: c, met: make(map[life]set), totals: make(map[life]bool), checked: make(map[life]bool),
		updates: make(map[[2]int][]int), pushes: make(map[[2]int]set),
	}
	t.findBatches()
	for _, together := range done {
		t.event(together)
	}
	for v := range c.p.Values {
		if c.p.Values[v].Class == Param && c.trained(v) {
			t.updatedOnce(v)
		}
	}
}

// trained reports whether the plan speaks of a gradient of the parameter.
func (c *checker) trained(state int) bool {
	return slices.ContainsFunc(c.p.Values, func(v Value) bool { return v.Class == Grad && v.State == state })
}

func (t *tracer) findBatches() {
	for rank, tasks := range t.c.p.Ranks {
		for i := range tasks {
			if tasks[i].Kind != Feed {
				continue
			}
			for _, r := range tasks[i].Out {
				if b := (batch{rank, r.Micro}); !slices.Contains(t.batches, b) {
					t.batches = append(t.batches, b)
				}
			}
		}
	}
	t.all = t.none()
	for i := range t.batches {
		t.all[i/64] |= 1 << (i % 64)
	}
}

func (t *tracer) none() set { return make(set, (len(t.batches)+63)/64) }

// of is what a value has met.
func (t *tracer) of(rank int, r Ref) set {
	if s, ok := t.met[life{rank, r}]; ok {
		return s
	}
	return t.none()
}

// event follows one task, or the tasks that end together.
func (t *tracer) event(together []place) {
	at := together[0]
	task := &t.c.p.Ranks[at.rank][at.task]
	switch task.Kind {
	case Feed:
		for _, r := range task.Out {
			s := t.none()
			i := slices.Index(t.batches, batch{at.rank, r.Micro})
			s[i/64] |= 1 << (i % 64)
			t.met[life{at.rank, r}] = s
		}
	case Compute:
		if state := t.c.p.Segs[task.Seg].Update; state != NoState {
			t.update(at, task, state)
			return
		}
		met := t.none()
		for _, r := range task.In {
			met.add(t.of(at.rank, r))
		}
		for _, r := range task.Out {
			if !t.c.lasts(r.Value) {
				t.met[life{at.rank, r}] = met
			}
		}
	case Add:
		var terms []term
		for _, r := range task.In {
			terms = append(terms, term{at.rank, at.task, r})
		}
		t.met[life{at.rank, task.Out[0]}] = t.sum(terms)
	case Send, Recv:
		to := together[1]
		t.met[life{to.rank, t.c.p.Ranks[to.rank][to.task].Out[0]}] = t.of(at.rank, task.In[0])
	case Collective:
		t.collective(together)
	case Commit:
		t.commit(together)
	case Pull:
		dense := len(task.Out) - len(task.In)
		for i, r := range task.In {
			t.met[life{at.rank, task.Out[dense+i]}] = t.of(at.rank, r)
		}
	case Push:
		t.push(at, task)
	}
}

// term is a value as a task of some rank adds it to a sum.
type term struct {
	rank, task int
	ref        Ref
}

// sum unites what the terms have met. Of gradients, weights and losses, which
// are sums themselves, no batch may come twice.
func (t *tracer) sum(terms []term) set {
	total := t.none()
	for _, m := range terms {
		met := t.of(m.rank, m.ref)
		v := &t.c.p.Values[m.ref.Value]
		if counts := v.Class == Scalar || v.Class == Grad && v.State != NoState; counts && total.meets(met) {
			t.c.task(m.rank, m.task, "counts twice in %s what it has met of %s: add each contribution once",
				word(v.Name), t.text(total, met))
		}
		total.add(met)
	}
	return total
}

func (t *tracer) collective(together []place) {
	first := &t.c.p.Ranks[together[0].rank][together[0].task]
	results := make([]set, len(first.Out))
	for i := range results {
		var terms []term
		for _, at := range together {
			terms = append(terms, term{at.rank, at.task, t.c.p.Ranks[at.rank][at.task].In[i]})
		}
		switch first.Op {
		case Broadcast:
			results[i] = t.of(terms[0].rank, terms[0].ref)
		case AllGather: // ranges of one value, each as it is
			results[i] = t.none()
			for _, m := range terms {
				results[i].add(t.of(m.rank, m.ref))
			}
		case AllReduce, ReduceScatter, AllGatherRows, NoOp:
			results[i] = t.sum(terms)
		}
		t.oneState(terms)
	}
	for _, at := range together {
		for i, r := range t.c.p.Ranks[at.rank][at.task].Out {
			t.met[life{at.rank, r}] = results[i]
		}
	}
}

// oneState proves that all members mean the same parameter.
func (t *tracer) oneState(terms []term) {
	lead := &t.c.p.Values[terms[0].ref.Value]
	for _, m := range terms[1:] {
		if v := &t.c.p.Values[m.ref.Value]; v.State != lead.State {
			t.c.task(m.rank, m.task, "adds %s to %s of rank %d, which belongs to another parameter",
				word(v.Name), word(lead.Name), terms[0].rank)
		}
	}
}

func (t *tracer) commit(together []place) {
	results := make([]set, 2)
	for i := range results {
		var terms []term
		for _, at := range together {
			terms = append(terms, term{at.rank, at.task, t.c.p.Ranks[at.rank][at.task].In[i]})
		}
		results[i] = t.sum(terms)
	}
	for _, at := range together {
		task := &t.c.p.Ranks[at.rank][at.task]
		for i, r := range task.Out {
			t.met[life{at.rank, r}] = results[i]
		}
		t.totals[life{at.rank, task.Out[0]}] = true
		for _, r := range task.In[2:] {
			t.checked[life{at.rank, r}] = true
		}
		if !slices.Equal(results[0], t.all) {
			t.c.task(at.rank, at.task, "its total weight lacks %s: a commit is over all that feed", t.missing(results[0]))
		}
	}
}

// update proves what a rank's update of a state is made from.
func (t *tracer) update(at place, task *Task, state int) {
	c := t.c
	key := [2]int{at.rank, state}
	t.updates[key] = append(t.updates[key], at.task)
	if !c.heldBy(at.rank, state) {
		c.task(at.rank, at.task, "updates %s, which rank %d does not hold: give it a holding, or drop the update", c.value(state), at.rank)
	}
	grads, totals := 0, 0
	for _, r := range task.In {
		v := &c.p.Values[r.Value]
		met := t.of(at.rank, r)
		switch v.Class {
		case Grad:
			grads++
			if v.State != state {
				c.task(at.rank, at.task, "updates %s from %s, the gradient of another parameter", c.value(state), word(v.Name))
			}
			if !t.checked[life{at.rank, r}] {
				c.task(at.rank, at.task, "no commit has looked whether %s is finite: put it among what the commit reads", word(v.Name))
			}
			fallthrough
		case Key:
			if !slices.Equal(met, t.all) {
				c.task(at.rank, at.task, "updates %s from %s, which lacks %s: reduce it over all that feed", c.value(state), word(v.Name), t.missing(met))
			}
		case Scalar:
			totals++
			if !t.totals[life{at.rank, r}] {
				c.task(at.rank, at.task, "divides by %s, which is no total of a commit", word(v.Name))
			}
		case Param, Slot, Act:
		}
	}
	if grads != 1 || totals != 1 {
		c.task(at.rank, at.task, "updates %s from %d gradients and %d totals: want one of each", c.value(state), grads, totals)
	}
}

// push notes which batches a store has been given of a state.
func (t *tracer) push(at place, task *Task) {
	c := t.c
	grads, _ := c.pushed(task) // proved by form
	for _, r := range grads {
		v := &c.p.Values[r.Value]
		key := [2]int{task.Store, v.State}
		if !slices.Contains(c.storesOf(v.State), task.Store) {
			c.task(at.rank, at.task, "store %d owns no part of %s: drop the gradient, or push it where its parameter is", task.Store, c.value(v.State))
		}
		if t.pushes[key] == nil {
			t.pushes[key] = t.none()
		}
		if met := t.of(at.rank, r); t.pushes[key].meets(met) {
			c.task(at.rank, at.task, "gives store %d in %s a second time what it has of %s: push each worker's own gradient once",
				task.Store, word(v.Name), t.text(t.pushes[key], met))
		}
		t.pushes[key].add(t.of(at.rank, r))
		if t.hasCommit(at.rank) && !t.committed(at.rank, r) {
			c.task(at.rank, at.task, "no commit looks whether %s is finite: put it among what the commit reads", word(v.Name))
		}
	}
}

func (t *tracer) hasCommit(rank int) bool {
	return slices.ContainsFunc(t.c.p.Ranks[rank], func(o Task) bool { return o.Kind == Commit })
}

func (t *tracer) committed(rank int, r Ref) bool {
	return slices.ContainsFunc(t.c.p.Ranks[rank], func(o Task) bool {
		return o.Kind == Commit && slices.Contains(o.In[2:], r)
	})
}

// updatedOnce proves that all who hold a state have changed it once.
func (t *tracer) updatedOnce(state int) {
	c := t.c
	for i := range c.p.Holdings {
		h := &c.p.Holdings[i]
		switch {
		case h.State != state:
		case h.Store >= 0 && h.Owner:
			got := t.pushes[[2]int{h.Store, state}]
			if got == nil {
				got = t.none()
			}
			for j, b := range t.batches {
				if !got.has(j) {
					c.rank(b.rank, "never gives store %d its gradient of %s: add a push", h.Store, c.value(state))
				}
			}
		case h.Rank >= 0:
			tasks := t.updates[[2]int{h.Rank, state}]
			if len(tasks) == 0 {
				c.rank(h.Rank, "holds %s but never updates it: add the update, or drop the holding", c.value(state))
			}
			for _, again := range tasks[min(1, len(tasks)):] {
				c.task(h.Rank, again, "updates %s a second time: %s has done so", c.value(state), c.there(h.Rank, tasks[0]))
			}
		}
	}
}

// missing names the batches that a set lacks.
func (t *tracer) missing(s set) string {
	lack := slices.Clone(t.all)
	for i := range lack {
		lack[i] &^= s[i]
	}
	return t.text(lack, lack)
}

// text names the batches that two sets have in common.
func (t *tracer) text(a, b set) string {
	var names []string
	for i, x := range t.batches {
		switch {
		case !a.has(i) || !b.has(i):
		case x.micro == 0:
			names = append(names, strconv.Itoa(x.rank))
		default:
			names = append(names, fmt.Sprintf("%d.%d", x.rank, x.micro))
		}
	}
	if len(names) == 1 {
		return "the batch of rank " + names[0]
	}
	return "the batch of ranks " + strings.Join(names, " ")
}
