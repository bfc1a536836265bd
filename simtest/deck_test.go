package simtest

import (
	"fmt"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/graph/cut"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// deck is one plan of the program as a worker runs it: its tasks with their tensors. The
// state is common to all decks of a worker.
type deck struct {
	name   string
	plan   *plan.Plan
	tasks  []task
	cursor *plan.Cursor
	values map[plan.Ref][]*tensor.Tensor
	arenas map[int][][]byte                  // by number and copy
	parts  map[*tensor.Tensor]*tensor.Tensor // what the rank answers for of a sliced value
	over   map[int64]int                     // by step: tasks that have ended
}

// task is a plan's task with its tensors, one list for each step in flight.
type task struct {
	*plan.Task
	in, out [][]*tensor.Tensor
	program compute.Program // nil: of a slice that is empty
	group   machine
}

// newDeck binds the tasks of a plan.
func newDeck(w *worker, name string, p *plan.Plan) (*deck, error) {
	d := &deck{
		name: name, plan: p, values: map[plan.Ref][]*tensor.Tensor{}, arenas: map[int][][]byte{},
		parts: map[*tensor.Tensor]*tensor.Tensor{}, over: map[int64]int{},
	}
	d.reserve()
	list := p.Ranks[w.rank]
	for i := range list {
		if err := d.bind(w, i, &list[i]); err != nil {
			return nil, fmt.Errorf("plan %s, task %d %v %s: %w", name, i, list[i].Kind, list[i].Name, err)
		}
	}
	d.cursor = plan.NewCursor(list, p.Window, 0, 0)
	return d, nil
}

// reserve makes the memory of arenas: values that share it spoil each other here too.
func (d *deck) reserve() {
	size, once := map[int]int{}, map[int]bool{}
	for i := range d.plan.Values {
		if v := &d.plan.Values[i]; v.Arena != 0 {
			size[v.Arena], once[v.Arena] = max(size[v.Arena], v.Offset+v.Bytes()), v.Once
		}
	}
	for arena, n := range size {
		for c := range d.plan.Window {
			if c == 0 || !once[arena] {
				d.arenas[arena] = append(d.arenas[arena], make([]byte, n))
			} else {
				d.arenas[arena] = append(d.arenas[arena], d.arenas[arena][0])
			}
		}
	}
}

func (d *deck) bind(w *worker, i int, t *plan.Task) error {
	b := task{Task: t}
	var err error
	if b.in, err = d.lists(w, t.In); err != nil {
		return err
	}
	if b.out, err = d.lists(w, t.Out); err != nil {
		return err
	}
	switch t.Kind {
	case plan.Compute:
		b.program, err = d.compile(w, &b)
	case plan.Collective, plan.Commit:
		if t.Kind == plan.Commit {
			d.own(w, t.In, b.in)
		}
		d.tasks = append(d.tasks, b) // of which a machine asks for its tensors
		d.tasks[i].group, err = newMachine(w, d, i, t)
		w.byTag[t.Tag] = d.tasks[i].group
		return err
	case plan.Add:
		err = addable(&b)
	case plan.Feed, plan.Pull, plan.Push:
	case plan.Send, plan.Recv:
		err = fmt.Errorf("the simulation has no %v", t.Kind)
	}
	d.tasks = append(d.tasks, b)
	return err
}

// compile makes the program of a segment, which of a sliced parameter updates a slice.
func (d *deck) compile(w *worker, b *task) (compute.Program, error) {
	seg := &w.c.problem.step.Segments[b.Seg]
	if state := d.plan.Segs[b.Seg].Update; state != plan.NoState && d.plan.Values[state].Sharded {
		lo, hi := d.plan.Part(w.rank, state)
		if lo == hi {
			return nil, nil
		}
		seg = cut.Update(seg, hi-lo)
		d.own(w, b.In, b.in)
		d.own(w, b.Out, b.out)
	}
	return ref.New().Compile(seg)
}

// own replaces what of a sliced value is there whole by what the rank answers for.
func (d *deck) own(w *worker, refs []plan.Ref, tensors [][]*tensor.Tensor) {
	for i, r := range refs {
		v := &d.plan.Values[r.Value]
		if !v.Sharded || v.Partial() {
			continue
		}
		lo, hi := d.plan.Part(w.rank, r.Value)
		for c := range tensors {
			all := tensors[c][i]
			if d.parts[all] == nil {
				d.parts[all] = all.Part(lo, hi)
			}
			tensors[c][i] = d.parts[all]
		}
	}
}

// lists gives refs their tensors, one list for each step in flight.
func (d *deck) lists(w *worker, refs []plan.Ref) ([][]*tensor.Tensor, error) {
	out := make([][]*tensor.Tensor, d.plan.Window)
	for _, r := range refs {
		copies, err := d.copies(w, r)
		if err != nil {
			return nil, err
		}
		for c := range out {
			out[c] = append(out[c], copies[c])
		}
	}
	return out, nil
}

// copies are the tensors of a value: parameters, slots and what is there once have one,
// others one for each step in flight.
func (d *deck) copies(w *worker, r plan.Ref) ([]*tensor.Tensor, error) {
	v := &d.plan.Values[r.Value]
	held := v.Class == plan.Param || v.Class == plan.Slot
	if held {
		r = plan.Ref{Value: r.Value}
	}
	if all := d.values[r]; all != nil {
		return all, nil
	}
	shape := v.Shape.Clone()
	if v.Partial() {
		lo, hi := d.plan.Part(w.rank, r.Value)
		shape = tensor.Shape{hi - lo}
	}
	for i := range shape {
		shape[i] = max(shape[i], 0)
	}
	all := make([]*tensor.Tensor, d.plan.Window)
	for c := range all {
		switch {
		case c > 0 && (held || v.Once):
			all[c] = all[0]
		case held && w.state[v.Name] == nil:
			w.state[v.Name] = tensor.New(v.DType, shape...)
			fallthrough
		case held && v.Arena == 0:
			all[c] = w.state[v.Name]
		case v.Arena != 0:
			placed, err := tensor.Wrap(v.DType, d.arenas[v.Arena][c][v.Offset:v.Offset+v.Bytes()], shape...)
			if err != nil {
				return nil, err
			}
			if all[c] = placed; held { // where it is from now on
				copy(placed.Bytes(), w.state[v.Name].Bytes())
				w.state[v.Name] = placed
			}
		default:
			all[c] = tensor.New(v.DType, shape...)
		}
	}
	d.values[r] = all
	return all, nil
}

// run is, for each copy, the memory of values together, and where in their arena it begins.
func (d *deck) run(refs []plan.Ref) (runs []*tensor.Tensor, lo int, err error) {
	lo, hi, err := d.plan.Span(refs)
	if err != nil {
		return nil, 0, err
	}
	v := &d.plan.Values[refs[0].Value]
	for _, mem := range d.arenas[v.Arena] {
		t, err := tensor.Wrap(v.DType, mem[lo:hi], (hi-lo)/v.DType.Size())
		if err != nil {
			return nil, 0, err
		}
		runs = append(runs, t)
	}
	return runs, lo, nil
}
