package simtest

import (
	"fmt"
	"math"

	"github.com/gangline/gangline/params"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/tensor"
)

// worker drives a plan.Cursor over the rank's tasks, with real numbers, and the
// loop around it: from boundary to boundary, then checkpoint and good bye.
type worker struct {
	*member
	plan   *plan.Plan
	tasks  []task
	cursor *plan.Cursor
	values map[plan.Ref][]*tensor.Tensor
	state  params.State // parameters and slots that the plan reads or writes
	feeder *data.Feeder
	links  []*link
	inbox  map[inlet][]any
	byTag  map[uint32]machine
	over   map[int64]int // by step: tasks that have ended
	pulled map[int64]int // by step: pulls that have ended

	at, next, end int64
	savedAt       int64
}

// task is a plan's task with its tensors, one list for each step in flight.
type task struct {
	*plan.Task
	in, out [][]*tensor.Tensor
	program compute.Program
	group   machine
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
		member: m, plan: p.plan, values: map[plan.Ref][]*tensor.Tensor{}, state: params.State{},
		inbox: map[inlet][]any{}, byTag: map[uint32]machine{}, over: map[int64]int{}, pulled: map[int64]int{},
		at: m.first, end: m.c.s.steps, savedAt: -1,
	}
	if from != nil {
		w.savedAt = m.first
	}
	if len(p.layouts) == 0 {
		w.state = params.New(p.step)
		if from != nil {
			c, err := from.open()
			if err == nil {
				err = w.state.Restore(c)
			}
			if err != nil {
				return nil, err
			}
		}
		m.c.ledger.see(m, sight{what: "parameters", step: w.at}, digestState(w.state))
	}
	var err error
	if w.feeder, err = data.NewFeeder(p.src, p.order, m.rank, m.c.s.workers, p.inputs); err != nil {
		return nil, err
	}
	for i := range p.layouts {
		w.links = append(w.links, &link{w: w, store: i, rank: m.c.s.workers + i})
	}
	list := p.plan.Ranks[m.rank]
	for i := range list {
		if err := w.bind(i, &list[i]); err != nil {
			return nil, err
		}
	}
	w.cursor = plan.NewCursor(list, p.plan.Window, 0, 0)
	return w, nil
}

func (w *worker) bind(i int, t *plan.Task) error {
	b := task{Task: t, in: w.lists(t.In), out: w.lists(t.Out)}
	var err error
	switch t.Kind {
	case plan.Compute:
		b.program, err = ref.New().Compile(&w.c.problem.step.Segments[t.Seg])
	case plan.Collective, plan.Commit:
		b.group, err = newMachine(w, i, t)
		w.byTag[t.Tag] = b.group
	case plan.Feed, plan.Pull, plan.Push:
	case plan.Send, plan.Recv, plan.Add:
		err = fmt.Errorf("the simulation has no %v", t.Kind)
	}
	w.tasks = append(w.tasks, b)
	return err
}

// lists gives refs their tensors: parameters and slots once, other values once
// for each step in flight.
func (w *worker) lists(refs []plan.Ref) [][]*tensor.Tensor {
	out := make([][]*tensor.Tensor, w.plan.Window)
	for _, r := range refs {
		v := &w.plan.Values[r.Value]
		copies := w.values[r]
		for c := len(copies); c < w.plan.Window; c++ {
			switch {
			case v.Class != plan.Param && v.Class != plan.Slot:
				shape := v.Shape.Clone()
				for d := range shape {
					shape[d] = max(shape[d], 0)
				}
				copies = append(copies, tensor.New(v.DType, shape...))
			case w.state[v.Name] == nil:
				w.state[v.Name] = tensor.New(v.DType, v.Shape...)
				fallthrough
			default:
				copies = append(copies, w.state[v.Name])
			}
		}
		w.values[r] = copies
		for c := range out {
			out[c] = append(out[c], copies[c])
		}
	}
	return out
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
	w.cursor.Reset(w.at, w.next)
	w.run(w.cursor.Start(nil))
	w.settle()
}

// settle looks whether a boundary is reached: nothing is in flight then.
func (w *worker) settle() {
	if !w.cursor.Finished() || w.at == w.next || w.failed {
		return
	}
	w.at = w.next
	if e := w.c.s.every; e > 0 && w.at%e == 0 {
		w.save(w.proceed)
		return
	}
	w.proceed()
}

// run begins tasks.
func (w *worker) run(ready []plan.Ready) {
	for _, r := range ready {
		t := &w.tasks[r.Task]
		c := int(r.Step % int64(w.plan.Window))
		end := func() { w.ended(r.Task, r.Step) }
		switch t.Kind {
		case plan.Feed:
			w.after(w.c.work(w.rank), func() {
				w.must(w.feeder.Feed(r.Step, t.out[c]))
				w.c.fed(w.rank, r.Step, w.feeder.Rows())
				end()
			})
		case plan.Compute:
			w.compute(t, r.Step, c, end)
		case plan.Collective, plan.Commit:
			t.group.begin(r.Step, c)
		case plan.Pull:
			w.links[t.Store].pull(r.Step, w.parts(t, c), end)
		case plan.Push:
			w.links[t.Store].push(r.Step, w.parts(t, c), end)
		case plan.Send, plan.Recv, plan.Add: // bind has refused them
		}
	}
}

// compute takes time; the work is done at its beginning or at its end, so that
// whoever touches the values meanwhile is found out.
func (w *worker) compute(t *task, step int64, c int, end func()) {
	do := func() {
		w.checkPulled(step)
		w.must(t.program.Run(step, t.in[c], t.out[c]))
		w.spoil(t, step, c)
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
			if w.plan.Values[r.Value].Name != name || t.out[c][i].Elems() == 0 {
				continue
			}
			v := math.NaN()
			if bad.inf {
				v = math.Inf(1)
			}
			t.out[c][i].F64()[0] = v
		}
	}
}

// ended tells the cursor, and looks after steps that have ended.
func (w *worker) ended(i int, step int64) {
	if w.failed {
		return
	}
	if w.tasks[i].Kind == plan.Pull {
		w.pulled[step]++
	}
	ready := w.cursor.Done(i, step, nil)
	w.over[step]++
	if w.over[step] == len(w.tasks) {
		delete(w.over, step)
		delete(w.pulled, step)
		w.c.commits[step]++
		if len(w.links) == 0 {
			w.c.ledger.see(w.member, sight{what: "parameters", step: step + 1}, digestState(w.state))
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
	for i := range w.tasks {
		if w.tasks[i].Kind == plan.Pull {
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
			if w.plan.Values[t.In[i].Value].Class == plan.Key {
				keys = append(keys, t.in[c][i])
				i++
			}
			data, refs = append(data, t.in[c][i]), append(refs, t.In[i])
		}
	}
	var parts []ps.Part
	for i, r := range refs {
		part := ps.Part{State: w.plan.Values[r.Value].State, Data: data[i]}
		for _, h := range w.plan.Holdings {
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
	w.inbox[in] = append(w.inbox[in], body)
	if n := len(w.inbox[in]); n > 2*w.c.s.workers {
		w.c.violate("%d messages of rank %d with tag %d wait on rank %d", n, from, tag, w.rank)
	}
	w.byTag[tag].arrived()
}

// save writes the checkpoint of the step that the worker is at, as rank 0: the
// shards, then the publication, in which it exists. Other ranks go on.
func (w *worker) save(then func()) {
	d := w.c.disk
	if w.rank != 0 || w.savedAt == w.at {
		then()
		return
	}
	d.begin(w.at)
	publish := func(names []string) {
		w.after(w.c.work(w.rank), func() {
			s, err := d.publish(w.at, w.gen, w.c.problem.order.CursorAt(w.at, w.c.problem.fingerprint), names)
			if err != nil {
				w.c.violate("%v", err)
				return
			}
			w.savedAt = w.at
			w.c.checkSaved(w.member, s)
			d.prune(w.c.s.keep)
			then()
		})
	}
	if len(w.links) == 0 {
		written, err := d.write(w.at, "worker-0", w.state.Pieces(w.c.problem.step))
		w.must(err)
		w.after(w.c.work(w.rank), func() {
			written()
			publish([]string{"worker-0"})
		})
		return
	}
	names := make([]string, len(w.links))
	missing := len(w.links)
	for i, l := range w.links {
		l.call(ps.Event{Kind: ps.EventSnapshot, Step: w.at}, nil, func(a answer) {
			names[i] = a.receipt
			if missing--; missing == 0 {
				publish(names)
			}
		})
	}
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
