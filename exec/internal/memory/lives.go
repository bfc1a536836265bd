package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gangline/gangline/plan"
)

// inUse is a life of a value: the tasks of one lane between which a value is in use.
type inUse struct {
	ref         plan.Ref
	first, last int
	lane        plan.Lane
	shareable   bool
}

// sharedLives finds lives of one value (of micro-batches or uses) that can have the
// same memory: only one lane touches each, and the last task of one comes before the
// first of the other in the list, which is the order in which a lane runs. It returns
// for each the first life of those that share with it. So the activations of a step
// take the memory of one micro-batch, not of all.
func sharedLives(p *plan.Plan, list []plan.Task) map[plan.Ref]plan.Ref {
	lives := map[plan.Ref]*inUse{}
	for i := range list {
		t := &list[i]
		for _, r := range slices.Concat(t.In, t.Out) {
			if r.Value < 0 || r.Value >= len(p.Values) {
				continue // which Get will say
			}
			u := lives[r]
			if u == nil {
				v := &p.Values[r.Value]
				u = &inUse{ref: r, first: i, lane: t.Lane, shareable: v.Arena == 0 && !v.Once && v.Class != plan.Param && v.Class != plan.Slot}
				lives[r] = u
			}
			u.last, u.shareable = i, u.shareable && u.lane == t.Lane
		}
	}
	order := slices.SortedFunc(maps.Values(lives), func(a, b *inUse) int {
		return cmp.Or(cmp.Compare(a.ref.Value, b.ref.Value), cmp.Compare(a.first, b.first), cmp.Compare(a.ref.Micro, b.ref.Micro), cmp.Compare(a.ref.Use, b.ref.Use))
	})
	same := map[plan.Ref]plan.Ref{}
	var rooms []*inUse // of one value: who has each memory last, and ref whose it is
	for n, u := range order {
		if n > 0 && order[n-1].ref.Value != u.ref.Value {
			rooms = nil
		}
		if !u.shareable {
			continue
		}
		i := slices.IndexFunc(rooms, func(room *inUse) bool { return room.lane == u.lane && room.last < u.first })
		if i < 0 {
			rooms = append(rooms, &inUse{ref: u.ref, last: u.last, lane: u.lane})
			continue
		}
		same[u.ref], rooms[i].last = rooms[i].ref, u.last
	}
	return same
}
