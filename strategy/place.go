package strategy

import (
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// put places a value in an arena, there once.
func (z *zero) put(value, arena, offset int) {
	v := &z.plan.Values[value]
	v.Arena, v.Offset, v.Once = arena, offset, true
}

// placeParams lays the parameters in buckets one behind the other, so that each bucket
// is gathered in place; those of stage 3 are placed where they are gathered.
func (z *zero) placeParams() {
	if z.c.Stage == 3 {
		z.placeGathered(z.builder.step.Forward)
		return
	}
	at := 0
	for i := range z.runs {
		for _, p := range z.runs[i].params {
			z.put(z.node(p.Var), paramArena, at)
			at = lines(at + z.plan.Values[z.node(p.Var)].Bytes())
		}
	}
}

// placeGrads lays the gradients of buckets one behind the other (stage 1), or every
// second bucket where the one before the last was: while one is scattered, the other
// is filled. Their shards are values of their own then.
func (z *zero) placeGrads() {
	room := 0
	for i := range z.runs {
		room = max(room, lines(z.runs[i].bytes))
	}
	next := 0
	for i := range z.runs {
		at := next
		if z.c.Stage > 1 {
			at = i % 2 * room
		}
		for _, p := range z.runs[i].params {
			g := z.node(p.Grad)
			z.put(g, gradArena, at)
			at = lines(at + z.plan.Values[g].Bytes())
			if z.c.Stage == 1 {
				z.plan.Values[g].Sharded = true
				z.addParts(p)
				continue
			}
			z.shard[p.Grad] = z.shardOf(p, ".shard")
			if z.micros() > 1 {
				z.part[p.Grad] = z.shardOf(p, ".shard.part")
			}
		}
		next = at
	}
	z.findShares()
}

// addParts makes room for what a micro-batch adds to a gradient: whole, and once.
func (z *zero) addParts(p *graph.Param) {
	for micro := 1; micro < z.micros(); micro++ {
		v := &z.plan.Values[z.builder.of(p.Grad, micro).Value]
		v.Arena, v.Offset, v.Sharded, v.Once = 0, 0, false, false
	}
}

// shardOf makes a value for shards of a gradient.
func (z *zero) shardOf(p *graph.Param, name string) int {
	v := z.like(p.Grad.Name+name, z.node(p.Grad), z.node(p.Var))
	val := &z.plan.Values[v]
	val.Arena, val.Offset, val.Sharded, val.Once = 0, 0, true, true
	return v
}

// findShares notes which values have memory in common.
func (z *zero) findShares() {
	z.shares = map[int][]int{}
	for i := range z.plan.Values {
		for j := range z.plan.Values {
			if z.plan.Values[i].Overlaps(&z.plan.Values[j]) {
				z.shares[i] = append(z.shares[i], j)
			}
		}
	}
}

// placeGathered finds room for parameters that are gathered where segments, in this
// order, read them. A bucket is there from one segment before the first reader, so that
// it comes while that one computes, to the last, once before the first gradient is made
// and once from there on. Buckets that are there at different times share memory; each
// takes the lowest place that is free whenever it is there.
func (z *zero) placeGathered(segments []int) {
	step := z.builder.step
	for at, seg := range segments {
		for _, n := range step.Segments[seg].In {
			if i, ok := z.runOf[n]; ok && (len(z.runs[i].reads) == 0 || z.runs[i].reads[len(z.runs[i].reads)-1] != at) {
				z.runs[i].reads = append(z.runs[i].reads, at)
			}
		}
	}
	turn := z.turn(segments)
	for i := range z.runs {
		r := &z.runs[i]
		for moved := true; moved; {
			moved = false
			for j := range z.runs[:i] {
				o := &z.runs[j]
				if r.at < o.at+o.bytes && o.at < r.at+r.bytes && r.meets(o, turn) {
					r.at, moved = lines(o.at+o.bytes), true
				}
			}
		}
		at := r.at
		for _, p := range r.params {
			v := z.like(p.Var.Name+".whole", z.node(p.Var), z.node(p.Var))
			z.plan.Values[v].Class, z.plan.Values[v].Sharded = plan.Act, false
			z.put(v, paramArena, at)
			z.of[p.Var] = v
			at = lines(at + z.plan.Values[v].Bytes())
		}
	}
	z.findShares()
}

// turn is the position of the first segment that makes a gradient.
func (z *zero) turn(segments []int) int {
	step := z.builder.step
	return slices.IndexFunc(segments, func(seg int) bool {
		return slices.ContainsFunc(step.Params, func(p graph.Param) bool { return slices.Contains(step.Segments[seg].Out, p.Grad) })
	})
}

// spans are when a bucket is there: forward, then backward.
func (r *zeroRun) spans(turn int) (spans [][2]int) {
	for i, at := range r.reads {
		if i == 0 || at >= turn && r.reads[i-1] < turn {
			spans = append(spans, [2]int{at - 1, at})
		}
		spans[len(spans)-1][1] = at
	}
	return spans
}

// meets reports whether two buckets are there at one time.
func (r *zeroRun) meets(o *zeroRun, turn int) bool {
	for _, a := range r.spans(turn) {
		for _, b := range o.spans(turn) {
			if a[0] <= b[1] && b[0] <= a[1] {
				return true
			}
		}
	}
	return false
}

// gatherFor gathers the buckets of which the segment at a position is the first reader.
func (z *zero) gatherFor(at int) (tasks []int) {
	segments := z.builder.step.Forward
	if z.plan.Name == EvalPlan {
		segments = evalSegments(z.builder.step)
	}
	turn := z.turn(segments)
	for i := range z.runs {
		r := &z.runs[i]
		if !slices.ContainsFunc(r.spans(turn), func(s [2]int) bool { return s[0]+1 == at }) {
			continue
		}
		t := z.collective(plan.AllGather, r)
		for _, p := range r.params {
			t.In = append(t.In, refs(z.node(p.Var))...)
			t.Out = append(t.Out, refs(z.of[p.Var])...)
		}
		tasks = append(tasks, z.add(t))
	}
	return tasks
}
