package check

import (
	"slices"

	"github.com/gangline/gangline/plan"
)

// formSharded proves that a ReduceScatter or AllGather leaves or takes, on each rank,
// the parts of values that it owns.
func (c *checker) formSharded(at place, bad func(string, ...any)) {
	t := c.at(at)
	whole, parts := t.In, t.Out
	if t.Op == plan.AllGather {
		whole, parts = t.Out, t.In
	}
	if !slices.ContainsFunc(parts, func(r plan.Ref) bool { return c.p.Values[r.Value].Sharded }) {
		if len(whole) != 1 || len(parts) != 1 {
			bad("has %d values in and %d out that are not sharded: want one", len(t.In), len(t.Out))
		}
		return
	}
	if len(whole) != len(parts) {
		bad("has %d values in and %d out: want the parts of each", len(t.In), len(t.Out))
		return
	}
	lo, hi, err := c.p.Span(whole)
	if err != nil {
		bad("%v: what is cut together must be one run of an arena", err)
		return
	}
	same, index := slices.Equal(whole, parts), slices.Index(c.p.Groups[t.Group], at.rank)
	for i := range parts {
		w, v := &c.p.Values[whole[i].Value], &c.p.Values[parts[i].Value]
		if c.alike(at, whole[i], parts[i]); w.State != v.State || !v.Sharded || !same && v.Arena != 0 {
			bad("%s and %s: want the parts of each value where it is, or sharded and in no arena", plan.Quote(w.Name), plan.Quote(v.Name))
			return
		}
		size, n := w.DType.Size(), len(c.p.Groups[t.Group])
		first := (w.Offset - lo) / size
		from := min(max(plan.Cut(index, n, (hi-lo)/size)-first, 0), w.Shape.Elems())
		to := min(max(plan.Cut(index+1, n, (hi-lo)/size)-first, 0), w.Shape.Elems())
		if a, b := c.p.Part(at.rank, parts[i].Value); max(b-a, 0) != to-from || a < b && a != from {
			bad("cuts off %d..%d of %s, of which rank %d owns %d..%d: let it own what it gets", from, to, plan.Quote(v.Name), at.rank, a, b)
		}
	}
}

// ownAlike proves of a sharded state that every rank owns one range of it at most, and
// of its slots the same.
func (c *checker) ownAlike(v int) {
	if !c.p.Values[v].Sharded {
		return
	}
	for rank := range c.p.Ranks {
		owned := 0
		for _, h := range c.p.Holdings {
			if h.Owner && h.Rank == rank && h.State == v {
				owned++
			}
		}
		lo, hi := c.p.Part(rank, v)
		if a, b := c.p.Part(rank, c.p.Values[v].State); owned > 1 || a != lo || b != hi {
			c.task(rank, none, "owns %d..%d of %s in %d ranges, and %d..%d of its parameter: want one range, and the same", lo, hi, c.value(v), owned, a, b)
		}
	}
}

// shared proves for one rank that values which have memory in common are in use one
// after the other: all their accesses are ordered, also with those of steps before,
// and none reads what another has overwritten.
func (c *checker) shared(rank int, k *clocks, refs []plan.Ref, uses map[plan.Ref][]access) {
	for _, r := range refs {
		for _, o := range refs {
			if !c.p.Values[r.Value].Overlaps(&c.p.Values[o.Value]) {
				continue
			}
			c.apart(rank, k, r, o, uses[r], uses[o])
		}
	}
}

// apart proves that the uses of a value meet none of another that shares its memory.
func (c *checker) apart(rank int, k *clocks, r, o plan.Ref, own, others []access) {
	for _, a := range own {
		for d := range k.window {
			for _, b := range others {
				if d == 0 && a.task > b.task || k.before(a.task, b.task, d) {
					continue
				}
				c.task(rank, b.task, "uses %s, in memory that %s still needs for %s: make it wait for that (after=%s)",
					c.value(o.Value), c.there(rank, a.task), c.value(r.Value), plan.Dep{Task: a.task, Lag: d})
			}
		}
		if !a.read {
			continue
		}
		wrote := none // the last before it that wrote what is read
		for _, w := range own {
			if w.write && w.task < a.task {
				wrote = max(wrote, w.task)
			}
		}
		for _, b := range others {
			if b.write && b.task > wrote && b.task < a.task {
				c.task(rank, a.task, "reads %s, over which %s has written %s: write it anew before", c.value(r.Value), c.there(rank, b.task), c.value(o.Value))
			}
		}
	}
}

// gathered proves for one rank that a sharded parameter is read only whole, and all of it
// of one version: what is held whole is gathered after the update and before anything
// else reads it; of what is not, the parts go nowhere but to an update, or are gathered
// before it.
func (c *checker) gathered(rank int, k *clocks) {
	for v := range c.p.Values {
		if val := &c.p.Values[v]; val.Class != plan.Param || !val.Sharded {
			continue
		}
		var updates, gathers, reads []int
		for i := range k.tasks {
			t := &k.tasks[i]
			is := func(r plan.Ref) bool { return r.Value == v }
			switch {
			case t.Kind == plan.Compute && c.p.Segs[t.Seg].Update == v:
				updates = append(updates, i)
			case t.Kind == plan.Collective && t.Op == plan.AllGather && slices.ContainsFunc(t.In, is):
				gathers = append(gathers, i)
			case slices.ContainsFunc(t.In, is):
				reads = append(reads, i)
			}
		}
		if c.p.Values[v].Partial() {
			c.partial(rank, k, v, updates, gathers, reads)
			continue
		}
		for _, u := range updates {
			g := slices.IndexFunc(gathers, func(g int) bool { return k.before(u, g, 0) })
			if g < 0 {
				c.task(rank, u, "changes its part of %s, which nothing gathers after it: add an allgather", c.value(v))
				continue
			}
			for _, r := range reads {
				if r > u && !k.before(gathers[g], r, 0) {
					c.task(rank, r, "may read %s between its update and %s: make it wait for that", c.value(v), c.there(rank, gathers[g]))
				}
			}
		}
	}
}

// partial proves what gathered says of a parameter that no rank holds whole.
func (c *checker) partial(rank int, k *clocks, v int, updates, gathers, reads []int) {
	for _, r := range reads {
		c.task(rank, r, "reads %s, of which the rank has a part: gather it, and read what is gathered", c.value(v))
	}
	for _, g := range gathers {
		for _, u := range updates {
			if !k.before(g, u, 0) {
				c.task(rank, g, "may gather %s when %s has changed it already: make that wait for it", c.value(v), c.there(rank, u))
			}
		}
	}
}
