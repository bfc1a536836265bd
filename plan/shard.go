package plan

import "slices"

// Cut is where part i of n of a run of elements begins, and part i-1 ends: parts are
// equal but for one element. It is how a collective cuts a buffer for its ranks.
func Cut(i, n, elems int) int {
	whole, rest := elems/n, elems%n
	return i*whole + i*rest/n
}

// Part returns the elements [lo, hi) of a value that a rank answers for: of a sharded
// one those that it owns, which may be none, and all of others.
func (p *Plan) Part(rank, value int) (lo, hi int) {
	v := &p.Values[value]
	if !v.Sharded {
		return 0, v.Shape.Elems()
	}
	state := value
	if v.Class != Param && v.Class != Slot {
		state = v.State
	}
	i := slices.IndexFunc(p.Holdings, func(h Holding) bool { return h.Owner && h.Rank == rank && h.State == state })
	if i < 0 {
		return 0, 0
	}
	return p.Holdings[i].Lo, p.Holdings[i].Hi
}

// Partial reports whether a rank has memory for its part of a value only.
func (v *Value) Partial() bool { return v.Sharded && v.Arena == 0 }

// shares reports whether a value may have memory in common with others.
func (v *Value) shares() bool { return v.Once && v.Arena != 0 && v.Class != Param && v.Class != Slot }

// Overlaps reports whether two values have memory in common, as only those that are
// there once may.
func (v *Value) Overlaps(o *Value) bool {
	return v != o && v.shares() && o.shares() && v.Arena == o.Arena && v.Offset < o.Offset+o.Bytes() && o.Offset < v.Offset+v.Bytes()
}

// Retagged returns the plan with other tags: as many executors of one plan may live at
// one time, each of which posts receives ahead.
func (p *Plan) Retagged(by uint32) *Plan {
	c := *p
	c.Ranks = make([][]Task, len(p.Ranks))
	for r, tasks := range p.Ranks {
		c.Ranks[r] = CloneTasks(tasks)
		for i := range c.Ranks[r] {
			if c.Ranks[r][i].Tag != 0 {
				c.Ranks[r][i].Tag += by
			}
		}
	}
	return &c
}
