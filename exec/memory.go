package exec

import "github.com/gangline/gangline/plan"

// Memory is the bytes that a rank's executor has for the state of training.
type Memory struct {
	Parameters, Slots int64
	// Gradients are those that an update reads; other gradients and gathered parameters
	// are Temporary. Both count once for each step in flight that has its own.
	Gradients, Temporary int64
}

// Memory returns what the plan's parameters, slots and gradients take, by what they
// are. Parameters and slots may be shared with other executors.
func (e *Exec) Memory() Memory {
	p := e.cfg.Plan
	read := map[int]bool{} // by updates
	for i := range e.tasks {
		if t := e.tasks[i].plan; updates(p, t) != plan.NoState {
			for _, r := range t.In {
				read[r.Value] = true
			}
		}
	}
	var m Memory
	counts := func(value int) *int64 {
		v := &p.Values[value]
		of := map[plan.Class]*int64{plan.Param: &m.Parameters, plan.Slot: &m.Slots, plan.Grad: &m.Temporary}[v.Class]
		if v.Class == plan.Grad && read[value] {
			of = &m.Gradients
		} else if of == nil && v.State != plan.NoState && v.Once {
			of = &m.Temporary
		}
		return of
	}
	arenas := map[int]bool{}
	for r, copies := range e.values.copies {
		v := &p.Values[r.Value]
		bytes := counts(r.Value)
		if bytes == nil || v.Arena != 0 && arenas[v.Arena] {
			continue
		}
		n := len(copies[0].Bytes())
		if v.Arena != 0 { // all of it is of one kind
			arenas[v.Arena], n = true, len(e.values.arenas[v.Arena][0])
		}
		if !v.Once && copies[0] != copies[len(copies)-1] {
			n *= len(copies)
		}
		*bytes += int64(n)
	}
	return m
}
