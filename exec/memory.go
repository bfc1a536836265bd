package exec

import (
	"github.com/gangline/gangline/exec/internal/ledger"
	"github.com/gangline/gangline/plan"
)

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
	read := map[int]bool{} // by updates
	for i := range e.tasks {
		if t := e.tasks[i].plan; ledger.Updates(e.cfg.Plan, t) != plan.NoState {
			for _, r := range t.In {
				read[r.Value] = true
			}
		}
	}
	return Memory(e.values.Size(read))
}
