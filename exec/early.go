package exec

import (
	"context"
	"math"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// glance is what a Commit must know of a gradient.
type glance struct {
	finite  bool
	squares float64 // their sum, where gradients are clipped to a norm
}

// glanceAt goes over a gradient. A norm that is too large for a float64 is not finite.
func glanceAt(t *tensor.Tensor, norm bool) glance {
	if !norm {
		return glance{finite: finite(t)}
	}
	squares := squareNorm(t)
	return glance{squares: squares, finite: !math.IsInf(squares, 0) && !math.IsNaN(squares)}
}

func squareNorm(t *tensor.Tensor) float64 {
	switch t.DType() {
	case tensor.F32:
		return optim.SquareNorm(t.F32())
	case tensor.F64:
		return optim.SquareNorm(t.F64())
	case tensor.BF16, tensor.F16, tensor.I32, tensor.I64, tensor.Invalid:
	}
	return squareNorm16(t)
}

// squareNorm16 is squareNorm of 16-bit floats, widened some at a time.
func squareNorm16(t *tensor.Tensor) float64 {
	var buf [512]float32
	h, x, sum := compute.HalfOf(t.DType()), t.Halves(), 0.0
	for len(x) > 0 {
		n := min(len(x), len(buf))
		h.Widen(buf[:n], x[:n])
		sum += optim.SquareNorm(buf[:n])
		x = x[n:]
	}
	return sum
}

// early is what was found of a gradient when its sum was complete: while it is in
// the cache, and others are still being computed. A Commit, for which everybody
// waits, has so much less to do.
type early struct {
	norm  bool     // the squares are wanted; set by the Commit
	found []glance // by copy
}

// findEarly lists the gradients that Commits look at and a collective was the last to write;
// but for slices, which are parts of what it writes.
func findEarly(p *plan.Plan, list []plan.Task) map[plan.Ref]*early {
	found := map[plan.Ref]*early{}
	writer := map[plan.Ref]*plan.Task{}
	for i := range list {
		t := &list[i]
		if t.Kind == plan.Commit && len(t.In) > 2 {
			for _, r := range t.In[2:] {
				if w := writer[r]; w != nil && w.Kind == plan.Collective && !p.Values[r.Value].Sliced {
					found[r] = &early{found: make([]glance, p.Window)}
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
			g.found[c] = glanceAt(o.out[c][i], g.norm)
		}
	}
	return nil
}
