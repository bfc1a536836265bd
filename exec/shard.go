package exec

import (
	"context"
	"slices"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// isSharded reports whether a collective leaves or takes the parts of values that ranks
// answer for.
func (b *binder) isSharded(t *plan.Task) bool {
	return (t.Op == plan.ReduceScatter || t.Op == plan.AllGather) &&
		slices.ContainsFunc(slices.Concat(t.In, t.Out), func(r plan.Ref) bool { return b.e.cfg.Plan.Values[r.Value].Sharded })
}

// sharded performs a ReduceScatter or AllGather on a run of an arena, of which this
// rank's parts are elsewhere.
type sharded struct {
	*group
	before, after [][2][]byte // to, from
}

// sharded binds a collective on sharded values: on the run of all in place, with a copy
// of the parts before or after where they are not in it.
func (b *binder) sharded(t *plan.Task, io operands, party collective.Party) (op, error) {
	whole, parts, first := t.In, t.Out, io.out[0]
	if t.Op == plan.AllGather {
		whole, parts, first = t.Out, t.In, io.in[0]
	}
	g, lo, err := b.run(t, whole, io, party)
	if err != nil || slices.Equal(whole, parts) {
		return g, err
	}
	o, p := &sharded{group: g}, b.e.cfg.Plan
	for i, r := range parts { // whatever the step: shards and runs are there once
		from, to := p.Part(b.e.cfg.Rank, r.Value)
		v := &p.Values[whole[i].Value]
		at := v.Offset - lo + from*v.DType.Size()
		there := g.runs[0].Bytes()[at : at+(to-from)*v.DType.Size()]
		if t.Op == plan.AllGather {
			o.before = append(o.before, [2][]byte{there, first[i].Bytes()})
		} else {
			o.after = append(o.after, [2][]byte{first[i].Bytes(), there})
		}
	}
	return o, nil
}

func (o *sharded) run(ctx context.Context, step int64, c int) error {
	move(o.before)
	defer move(o.after) // of a failed run nobody reads
	return o.group.run(ctx, step, c)
}

func move(pairs [][2][]byte) {
	for _, p := range pairs {
		copy(p[0], p[1])
	}
}

// own replaces the tensors of sharded values by what this rank answers for of them.
func (b *binder) own(refs []plan.Ref, tensors [][]*tensor.Tensor) {
	for i, r := range refs {
		v := &b.e.cfg.Plan.Values[r.Value]
		if !v.Sharded || v.Partial() {
			continue
		}
		lo, hi := b.e.cfg.Plan.Part(b.e.cfg.Rank, r.Value)
		for c := range tensors {
			all := tensors[c][i]
			if b.parts[all] == nil {
				b.parts[all] = all.Part(lo, hi)
			}
			tensors[c][i] = b.parts[all]
		}
	}
}
