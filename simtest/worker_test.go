package simtest

import (
	"maps"
	"slices"
	"strings"

	"github.com/gangline/gangline/params"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/strategy"
)

// worker drives a plan.Cursor over the rank's tasks, with real numbers, and the
// loop around it: from boundary to boundary, then checkpoint and good bye.
type worker struct {
	*member
	port    *port
	decks   map[string]*deck // by plan
	deck    *deck            // that runs
	turns   []turn           // what runs after it until the boundary
	busy    bool             // between boundaries
	begun   bool             // the program's Init has run
	state   params.State     // parameters and slots that the plans read or write
	cut     params.Shards    // what the worker has of them, if they are cut
	buckets []*compressed.Bucket
	feeder  *data.MicroFeeder
	read    []int // rows of the last Feed
	links   []*link
	inbox   map[inlet][]any
	byTag   map[uint32]machine
	pulled  map[int64]int // by step: pulls that have ended

	at, next, end int64
	savedAt       int64
	saves         *save
}

// turn is a plan and the steps that it is run for.
type turn struct {
	deck        *deck
	first, last int64
}

// inlet is where messages wait for who needs them.
type inlet struct {
	from int
	tag  uint32
}

// newWorker binds the tasks, and restores what the worker holds.
func newWorker(m *member, from *saved) (*worker, error) {
	p := m.c.problem
	w := &worker{
		member: m, decks: map[string]*deck{}, state: params.State{},
		inbox: map[inlet][]any{}, byTag: map[uint32]machine{}, pulled: map[int64]int{},
		at: m.first, end: m.c.s.steps, savedAt: -1,
	}
	w.port = newPort(w)
	if from != nil {
		w.savedAt = m.first
	}
	if err := w.hold(from); err != nil {
		return nil, err
	}
	for i := range p.layouts {
		w.links = append(w.links, &link{w: w, store: i, rank: m.c.s.workers + i})
	}
	for _, name := range slices.Sorted(maps.Keys(p.program.Plans)) {
		if name == strategy.EvalPlan {
			continue
		}
		d, err := newDeck(w, name, p.program.Plans[name])
		if err != nil {
			return nil, err
		}
		w.decks[name] = d
	}
	if err := w.restoreLost(from); err != nil {
		return nil, err
	}
	w.sight(w.at, false)
	return w, w.newFeeder()
}

// newFeeder reads the rows of the worker: of its slices, or of its part in micro-batches.
func (w *worker) newFeeder() (err error) {
	p, s := w.c.problem, w.c.s
	src := recorder{p.src, &w.read}
	if s.slices > 0 {
		part := plan.Part(s.slices, s.workers, w.rank)
		w.feeder, err = data.NewPartFeeder(src, p.order, part.Lo, part.Hi, s.slices, p.inputs)
		return err
	}
	w.feeder, err = data.NewMicroFeeder(src, p.order, w.rank, s.workers, max(s.micro, 1), p.inputs)
	return err
}

// recorder notes which rows are read.
type recorder struct {
	data.Source
	rows *[]int
}

// Read implements data.Source.
func (r recorder) Read(rows []int, b *data.Batch) error {
	*r.rows = append(*r.rows, rows...)
	return r.Source.Read(rows, b)
}

// proceed runs to the next boundary, or ends.
func (w *worker) proceed() {
	if w.at >= w.end {
		w.leave()
		return
	}
	w.next = w.end
	if e := w.c.s.every; e > 0 {
		w.next = min(w.end, (w.at/e+1)*e)
	}
	w.turns, w.busy = w.plans(w.at, w.next), true
	w.turn()
}

// plans is the order in which the plans of the program are run for steps [at, last), as
// exec/cycle has it: what ends a cycle after each that ends before last, then what settles.
func (w *worker) plans(at, last int64) (all []turn) {
	p := w.c.problem.program
	if d := w.decks[p.Init]; d != nil && !w.begun {
		all = append(all, turn{d, at, at + 1})
	}
	w.begun = true
	steps := int64(0)
	for _, name := range p.Cycle {
		if name == p.Cycle[0] {
			steps++
		}
	}
	ends, settle := p.Cycle[steps:], w.decks[p.Settle]
	for at < last {
		next := last
		if len(ends) > 0 {
			next = min(last, (at/steps+1)*steps)
		}
		all = append(all, turn{w.decks[p.Cycle[0]], at, next})
		if at = next; at == last && settle != nil || at%steps != 0 {
			continue
		}
		for _, name := range ends {
			all = append(all, turn{w.decks[name], at - 1, at})
		}
	}
	if settle != nil {
		all = append(all, turn{settle, last - 1, last})
	}
	return all
}

// turn begins the next plan.
func (w *worker) turn() {
	t := w.turns[0]
	w.turns, w.deck = w.turns[1:], t.deck
	t.deck.cursor.Reset(t.first, t.last)
	w.run(t.deck.cursor.Start(nil))
	w.settle()
}

// settle looks whether a plan has come to its end, or a boundary is reached: nothing is
// in flight then.
func (w *worker) settle() {
	if !w.busy || !w.deck.cursor.Finished() || w.failed {
		return
	}
	if len(w.turns) > 0 {
		w.turn()
		return
	}
	w.busy, w.at = false, w.next
	w.sight(w.at, false)
	if e := w.c.s.every; e > 0 && w.at%e == 0 {
		w.save(w.proceed)
		return
	}
	w.proceed()
}

// run begins tasks.
func (w *worker) run(ready []plan.Ready) {
	d := w.deck
	for _, r := range ready {
		t := &d.tasks[r.Task]
		c := int(r.Step % int64(d.plan.Window))
		end := func() { w.ended(r.Task, r.Step) }
		switch t.Kind {
		case plan.Feed:
			w.after(w.c.work(w.rank), func() {
				w.read = w.read[:0]
				w.must(w.feeder.Feed(r.Step, t.out[c]))
				w.c.fed(w.rank, r.Step, w.read)
				end()
			})
		case plan.Compute, plan.Add:
			w.compute(t, r.Step, c, end)
		case plan.Collective, plan.Commit:
			t.group.begin(r.Step, c)
		case plan.Pull:
			w.links[t.Store].pull(r.Step, w.parts(t, c), end)
		case plan.Push:
			w.links[t.Store].push(r.Step, w.parts(t, c), end)
		case plan.Send, plan.Recv: // bind has refused them
		}
	}
}

// compute takes time; the work is done at its beginning or at its end, so that
// whoever touches the values meanwhile is found out.
func (w *worker) compute(t *task, step int64, c int, end func()) {
	do := func() {
		switch {
		case t.Kind == plan.Add:
			w.must(t.add(w.deck.plan, c))
		case t.program != nil:
			w.checkPulled(step)
			w.must(t.program.Run(step, t.in[c], t.out[c]))
			w.spoil(t, step, c)
		}
	}
	if w.c.rng.IntN(2) == 0 {
		do()
		do = func() {}
	}
	w.after(w.c.work(w.rank), func() {
		do()
		end()
	})
}

// spoil does what the scenario's poisons say to what was computed.
func (w *worker) spoil(t *task, step int64, c int) {
	p := w.c.problem
	for _, bad := range w.c.s.poisons {
		if bad.rank != w.rank || bad.step != step {
			continue
		}
		name := p.step.Model.Loss.Name
		if bad.param >= 0 {
			name = p.step.Params[bad.param%len(p.step.Params)].Grad.Name
		}
		for i, r := range t.Out {
			v := w.deck.plan.Values[r.Value].Name // of a slice, behind it the level of the tree
			if v != name && !strings.HasPrefix(v, name+".") || t.out[c][i].Elems() == 0 {
				continue
			}
			ruin(t.out[c][i], bad.inf)
		}
	}
}

// ended tells the cursor, and looks after steps that have ended.
func (w *worker) ended(i int, step int64) {
	if w.failed {
		return
	}
	d := w.deck
	if d.tasks[i].Kind == plan.Pull {
		w.pulled[step]++
	}
	ready := d.cursor.Done(i, step, nil)
	d.over[step]++
	if d.over[step] == len(d.tasks) {
		delete(d.over, step)
		if d.name == strategy.StepPlan {
			delete(w.pulled, step)
			w.c.commits[step]++
			w.sight(step+1, d.plan.Local)
		}
	}
	w.run(ready)
	w.settle()
}

// checkPulled: when a step is computed, all its pulls have ended, and all
// stores are at its version: the step before was applied on all of them or on
// none.
func (w *worker) checkPulled(step int64) {
	pulls := 0
	for i := range w.deck.tasks {
		if w.deck.tasks[i].Kind == plan.Pull {
			pulls++
		}
	}
	if w.pulled[step] < pulls {
		w.c.violate("rank %d computes step %d after %d of %d pulls", w.rank, step, w.pulled[step], pulls)
	}
	for _, m := range w.c.members[w.c.s.workers:] {
		if m.dead || m.store == nil || len(m.store.layout.States) == 0 {
			continue
		}
		if v := m.store.shard.Version(); v != step {
			w.c.violate("rank %d computes step %d while store %d is at version %d", w.rank, step, m.store.layout.Store, v)
		}
	}
}

// parts are what a task gives to its store, or reads from it: dense values, and
// tables after their keys.
func (w *worker) parts(t *task, c int) []ps.Part {
	data, keys := t.out[c], t.in[c]
	refs := t.Out
	if t.Kind == plan.Push {
		data, refs, keys = nil, nil, nil
		for i := 0; i < len(t.In); i++ {
			if w.deck.plan.Values[t.In[i].Value].Class == plan.Key {
				keys = append(keys, t.in[c][i])
				i++
			}
			data, refs = append(data, t.in[c][i]), append(refs, t.In[i])
		}
	}
	var parts []ps.Part
	for i, r := range refs {
		part := ps.Part{State: w.deck.plan.Values[r.Value].State, Data: data[i]}
		for _, h := range w.deck.plan.Holdings {
			if h.Store == t.Store && h.State == part.State {
				part.Lo, part.Hi = h.Lo, h.Hi
			}
		}
		if part.Lo == part.Hi { // a table
			part.Keys, keys = keys[0], keys[1:]
		}
		parts = append(parts, part)
	}
	return parts
}

// take gets a message: the answer of a store, or something for a collective.
func (w *worker) take(from int, tag uint32, body any) {
	if w.failed {
		return
	}
	if from >= w.c.s.workers {
		w.links[from-w.c.s.workers].answered(body.(answer))
		return
	}
	in := inlet{from, tag}
	switch body := body.(type) {
	case []byte: // of a collective that blocks
		w.port.deliver(in, body)
		w.byTag[tag&^collective.DenseTag].arrived()
		return
	case saving:
		w.saving(from, body)
		return
	}
	w.inbox[in] = append(w.inbox[in], body)
	if n := len(w.inbox[in]); n > 2*w.c.s.workers {
		w.c.violate("%d messages of rank %d with tag %d wait on rank %d", n, from, tag, w.rank)
	}
	w.byTag[tag].arrived()
}

// leave saves the end and says good bye to the stores, with the last verdict.
func (w *worker) leave() {
	w.save(func() {
		missing := len(w.links)
		if missing == 0 {
			w.finish()
		}
		for _, l := range w.links {
			l.call(ps.Event{Kind: ps.EventBye}, nil, func(answer) {
				if missing--; missing == 0 {
					w.finish()
				}
			})
		}
	})
}

// must takes an error that nothing in a scenario may cause.
func (w *worker) must(err error) {
	if err != nil {
		w.c.violate("rank %d: %v", w.rank, err)
	}
}
