package check

import (
	"slices"

	"github.com/gangline/gangline/plan"
)

// clocks tells which task of one rank ends before which begins, over some
// steps of the window.
//
// A lane is a total order, so what has certainly ended before a task begins is
// one number a lane: how far that lane has come. These vectors are computed
// once, in O(steps · tasks · (lanes + deps)); a question is then one
// comparison. The order repeats from step to step (every edge leads from a step
// to the same or a later one), so asking about steps 0 to d answers for all.
type clocks struct {
	tasks  []plan.Task
	window int
	lane   []int // of each task
	pos    []int // of each task in its lane
	size   []int // tasks of each lane
	at     []int // [step][task][lane]: tasks of the lane that have ended before
}

func newClocks(tasks []plan.Task, window, steps int) *clocks {
	k := &clocks{tasks: tasks, window: window, pos: make([]int, len(tasks))}
	lane, lanes := plan.Lanes(tasks)
	k.lane, k.size = lane, make([]int, len(lanes))
	for i := range tasks {
		k.pos[i] = k.size[lane[i]]
		k.size[lane[i]]++
	}
	n := len(tasks)
	last := slices.Repeat([]int{none}, len(lanes)) // seen of each lane, as step·n + task
	k.at = make([]int, steps*n*len(lanes))
	for step := range steps {
		for i := range tasks {
			if before := last[lane[i]]; before != none {
				k.follow(i, step, before%n, before/n)
			}
			last[lane[i]] = step*n + i
			for _, d := range tasks[i].After {
				if step >= d.Lag {
					k.follow(i, step, d.Task, step-d.Lag)
				}
			}
			if step >= window {
				now := k.of(i, step)
				for l := range now {
					now[l] = max(now[l], (step-window+1)*k.size[l])
				}
			}
		}
	}
	return k
}

// of is the clock of a task.
func (k *clocks) of(task, step int) []int {
	n := len(k.size)
	at := (step*len(k.tasks) + task) * n
	return k.at[at : at+n]
}

// follow makes a task begin after another has ended.
func (k *clocks) follow(task, step, before, beforeStep int) {
	now, was := k.of(task, step), k.of(before, beforeStep)
	for l := range now {
		now[l] = max(now[l], was[l])
	}
	l := k.lane[before]
	now[l] = max(now[l], beforeStep*k.size[l]+k.pos[before]+1)
}

// before reports whether task a of step 0 has ended whenever task b of step d
// begins.
func (k *clocks) before(a, b, d int) bool {
	return k.of(b, d)[k.lane[a]] > k.pos[a]
}
