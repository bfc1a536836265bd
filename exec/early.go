package exec

import (
	"context"

	"github.com/gangline/gangline/exec/internal/glance"
	"github.com/gangline/gangline/plan"
)

// early is what was found of a gradient when its sum was complete: while it is in
// the cache, and others are still being computed. A Commit, for which everybody
// waits, has so much less to do.
type early struct {
	norm  bool            // the squares are wanted; set by the Commit
	found []glance.Glance // by copy
}

// findEarly lists the gradients that Commits look at and a collective was the last to write;
// but for shards, which are parts of what it writes.
func findEarly(p *plan.Plan, list []plan.Task) map[plan.Ref]*early {
	found := map[plan.Ref]*early{}
	writer := map[plan.Ref]*plan.Task{}
	for i := range list {
		t := &list[i]
		if t.Kind == plan.Commit && len(t.In) > 2 {
			for _, r := range t.In[2:] {
				if w := writer[r]; w != nil && w.Kind == plan.Collective && !p.Values[r.Value].Sharded {
					found[r] = &early{found: make([]glance.Glance, p.Window)}
				}
			}
		}
		for _, r := range t.Out {
			writer[r] = t
		}
	}
	return found
}

// looking is a collective that looks at the gradients it completes.
type looking struct {
	op
	operands
	early []*early // by Out; nil: nobody asks
}

// look makes a collective's op look at what it completes, if a Commit asks for any of it.
func (b *binder) look(t *plan.Task, io operands, o op) op {
	l := &looking{op: o, operands: io}
	asked := false
	for _, r := range t.Out {
		g := b.early[r]
		asked = asked || g != nil
		l.early = append(l.early, g)
	}
	if !asked {
		return o
	}
	return l
}

func (o *looking) run(ctx context.Context, step int64, c int) error {
	if err := o.op.run(ctx, step, c); err != nil {
		return err
	}
	for i, g := range o.early {
		if g != nil {
			g.found[c] = glance.At(o.out[c][i], g.norm)
		}
	}
	return nil
}
