package simtest

import (
	"slices"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/params"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/train/residual"
)

// slicesOf says what a worker answers for of the state; nil if nothing is cut.
func slicesOf(p *plan.Plan, rank int) params.Shards {
	var sl params.Shards
	for i := range p.Values {
		v := &p.Values[i]
		if !v.Sharded || v.Class != plan.Param && v.Class != plan.Slot {
			continue
		}
		if sl == nil {
			sl = params.Shards{}
		}
		lo, hi := p.Part(rank, i)
		sl[v.Name] = params.Shard{Lo: lo, Hi: hi, Whole: !v.Partial()}
	}
	return sl
}

// newState is the state of the problem, whole, before the first step.
func (p *problem) newState() params.State {
	s := params.New(p.step)
	for _, v := range p.beside {
		s[v.Name] = tensor.New(v.DType, v.Shape...)
	}
	return s
}

// hold makes the state that a worker holds, and takes over what a checkpoint has of it.
func (w *worker) hold(from *saved) (err error) {
	p := w.c.problem
	if len(p.layouts) > 0 {
		return nil
	}
	w.cut = slicesOf(p.plan, w.rank)
	if w.cut == nil {
		w.state = p.newState()
	} else {
		w.state = w.cut.New(p.step)
	}
	if from == nil {
		return nil
	}
	c, err := from.open()
	switch {
	case err != nil:
		return err
	case w.cut == nil:
		return w.state.Restore(c)
	}
	return w.cut.Restore(w.state, p.step, c)
}

// restoreLost takes over what compression lost.
func (w *worker) restoreLost(from *saved) error {
	if from == nil {
		return nil
	}
	c, err := from.open()
	if err != nil {
		return err
	}
	_, err = residual.Restore(w.buckets, c)
	return err
}

// spread reports whether each worker has something to save that no other has.
func (w *worker) spread() bool {
	return w.cut != nil || slices.ContainsFunc(w.buckets, func(b *compressed.Bucket) bool { return b.Spec.Feedback })
}

// pieces are what the worker saves.
func (w *worker) pieces() []checkpoint.Piece {
	p := w.c.problem
	if w.cut != nil {
		return w.cut.Pieces(w.state, p.step, w.rank == 0)
	}
	var all []checkpoint.Piece
	if w.rank == 0 {
		all = w.state.Pieces(p.step)
		for _, v := range p.beside {
			all = append(all, checkpoint.Piece{Name: v.Name, Shape: v.Shape, Hi: v.Shape.Elems(), Data: w.state[v.Name]})
		}
	}
	return append(all, residual.Pieces(w.buckets)...)
}

// sight notes what the worker holds before a step: of what all hold alike, each the same.
// Copies that have not met are each rank's own.
func (w *worker) sight(step int64, apart bool) {
	p := w.c.problem
	if len(p.layouts) > 0 {
		return
	}
	see := func(what string, rank int, digest uint64) {
		w.c.ledger.see(w.member, sight{what: what, rank: rank, step: step}, digest)
	}
	if len(w.buckets) > 0 {
		see("residuals", w.rank, digestPieces(residual.Pieces(w.buckets)))
	}
	switch {
	case w.cut != nil:
		see("slices", w.rank, digestState(w.state))
		if whole := w.whole(); whole != nil {
			see("whole parameters", 0, digestState(whole))
		}
	case apart:
		see("copy", w.rank, digestState(w.kept()))
	default:
		see("parameters", 0, digestState(w.kept()))
	}
}

// kept is what of the state a checkpoint has: not what is made anew where a run begins.
func (w *worker) kept() params.State {
	s := params.State{}
	for name := range w.c.problem.newState() {
		s[name] = w.state[name]
	}
	return s
}

// whole are the parameters of a worker that has a slice of the rest; nil if it has slices of
// them, too.
func (w *worker) whole() params.State {
	s := w.state.Only(w.c.problem.step)
	for name := range s {
		if part, cut := w.cut[name]; cut && !part.Whole {
			return nil
		}
	}
	return s
}
