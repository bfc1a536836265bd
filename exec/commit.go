package exec

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/exec/internal/ballot"
	"github.com/gangline/gangline/exec/internal/glance"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// commit ends a synchronous step: the ranks add up weight and loss and agree
// on whether the step counts.
//
// Where the rule clips by norm, it also takes the norm of the gradients, which
// must be sums over the group by then: all ranks have the same bits and so find
// the same norm, without a word; but for shards, of which each says the squares of
// its own. What it hands on as the total weight is the
// number to divide by for the norm to hold (optim.Rule.Divisor); the Result has
// the weight itself.
//
// Where the loss is scaled (graph.Step.Scaling), the last value is the scale, by which
// the number to divide by is multiplied: a power of two, so that what is left has the
// same bits. A gradient that is not finite is then a sign that the scale is too large,
// which optim.Skip in place of a weight tells who adapts it.
type commit struct {
	operands
	e        *Exec
	group    int
	exchange *collective.Exchange
	rule     optim.Rule
	early    []*early // of the gradients among the operands that were looked at before
	pairs    int      // of this rank
	scaled   bool     // the last value is the loss scale
	sharded  []bool   // by the values looked at
	mine     *ballot.Ballot
}

func (b *binder) commit(t *plan.Task, io operands) (op, error) {
	party, err := b.party(t)
	if err != nil {
		return nil, err
	}
	if len(t.In) < 2 || len(t.Out) != 2 {
		return nil, fmt.Errorf("%d values in and %d out, want weight, loss and gradients in, 2 out", len(t.In), len(t.Out))
	}
	for _, r := range t.In {
		if v := &b.e.cfg.Plan.Values[r.Value]; !v.DType.IsFloat() && !v.DType.IsHalf() {
			return nil, fmt.Errorf("value %q of type %v cannot be checked", v.Name, v.DType)
		}
	}
	pairs := b.e.cfg.Plan.Pairs(t)
	for _, list := range [][]*tensor.Tensor{io.in[0][:2*pairs], io.out[0]} {
		for _, s := range list {
			if s.Elems() != 1 || !s.DType().IsFloat() {
				return nil, fmt.Errorf("weight or loss is %v %v, want a float scalar", s.DType(), s.Shape())
			}
		}
	}
	o := &commit{operands: io, e: b.e}
	grads := t.In[2*pairs:]
	if s := b.e.cfg.Step; s != nil && s.Scaling != nil {
		n := len(t.In) - 1
		if o.scaled = n >= 2*pairs && b.e.cfg.Plan.Values[t.In[n].Value].Name == s.Scaling.Var.Name; !o.scaled {
			return nil, fmt.Errorf("the last value is not the loss scale %q", s.Scaling.Var.Name)
		}
		grads = t.In[2*pairs : n]
	}
	if o.rule, err = b.clipping(grads, len(party.Group)); err != nil {
		return nil, err
	}
	most := 1
	if t.Order == plan.Tree {
		n := b.e.cfg.Plan.Slices
		most = (n + len(party.Group) - 1) / len(party.Group)
		if part := plan.Part(n, len(party.Group), party.Index); pairs != part.Hi-part.Lo {
			return nil, fmt.Errorf("weight and loss of %d slices, want %d", pairs, part.Hi-part.Lo)
		}
	}
	b.own(t.In, io.in)
	for _, r := range t.In {
		o.sharded = append(o.sharded, b.e.cfg.Plan.Values[r.Value].Sharded)
	}
	if t.Lane != (plan.Lane{Kind: plan.Group, ID: t.Group}) {
		party.Streams = nil // what runs on them takes turns
	}
	o.group, o.pairs = t.Group, pairs
	o.mine = ballot.New(most, o.rule.ClipNorm > 0 && slices.Contains(o.sharded, true))
	o.exchange, err = collective.NewExchange(party, len(o.mine.Bytes()))
	for _, r := range t.In {
		g := b.early[r]
		if g != nil {
			g.norm = o.rule.ClipNorm > 0
		}
		o.early = append(o.early, g)
	}
	return o, err
}

// clipping returns the rule that says how long gradients may be. It fails if the
// norm of what a task looks at is not that of the step's gradient.
func (b *binder) clipping(grads []plan.Ref, group int) (rule optim.Rule, err error) {
	if b.e.cfg.Step == nil {
		return rule, nil
	}
	for i := range b.e.cfg.Step.Params {
		r := b.e.cfg.Step.Params[i].Rule
		if i > 0 && r.ClipNorm != rule.ClipNorm {
			return rule, fmt.Errorf("parameters are clipped to norms %v and %v: one norm is of all", rule.ClipNorm, r.ClipNorm)
		}
		rule = r
	}
	if rule.ClipNorm == 0 || group == 1 && len(b.e.cfg.Plan.Stores) == 0 {
		return rule, nil
	}
	summed := map[int]bool{}
	for _, c := range b.e.cfg.Plan.Ranks[b.e.cfg.Rank] {
		if c.Kind == plan.Collective && (c.Op == plan.AllReduce || c.Op == plan.AllGatherRows || c.Op == plan.ReduceScatter) {
			for _, r := range c.Out {
				summed[r.Value] = true
			}
		}
	}
	for _, r := range grads {
		if !summed[r.Value] {
			return rule, fmt.Errorf("clip_norm is %v and gradient %q is not summed over the workers: its norm is not that of the step",
				rule.ClipNorm, b.e.cfg.Plan.Values[r.Value].Name)
		}
	}
	return rule, nil
}

func (o *commit) run(ctx context.Context, step int64, c int) error {
	in, out := o.in[c], o.out[c]
	for i, t := range in[:2*o.pairs] {
		o.mine.Set(i, t.Scalar())
	}
	scale := 1.0
	if o.scaled {
		scale, in = in[len(in)-1].Scalar(), in[:len(in)-1]
	}
	fault, squares, own := o.look(in, c)
	o.mine.Close(fault, own)
	all, err := o.exchange.Run(ctx, o.mine.Bytes())
	if err != nil {
		return err
	}
	v := o.mine.Count(all, o.exchange.Group, squares)
	r := Result{Weight: v.Weight, Loss: v.Loss, Skipped: v.Skipped, Faulty: v.Faulty, Overflow: v.Overflow}
	if r.Skipped {
		o.e.revert(o.group)
	}
	divisor := o.rule.Divisor(r.Weight*scale, v.Squares)
	if o.scaled {
		if r.Scale = scale; r.Overflow {
			divisor = optim.Skip()
		}
	}
	out[0].SetScalar(divisor)
	out[1].SetScalar(r.Loss)
	o.e.mu.Lock()
	o.e.results[c] = r
	o.e.mu.Unlock()
	if o.e.cfg.Stores != nil {
		o.e.cfg.Stores.Committed(step, divisor)
	}
	return nil
}

// look goes over weight, loss and gradients, in this order, and returns what is
// wrong. Where the rule clips by norm it adds up the squares of the gradients on
// the way, apart for those that are shards; a norm that is too large for a float64
// is a fault like any other.
func (o *commit) look(in []*tensor.Tensor, c int) (fault ballot.Fault, squares, own float64) {
	norm := o.rule.ClipNorm > 0
	for i, t := range in {
		g, sum := glance.Glance{}, &squares
		switch {
		case i < 2*o.pairs:
			g.Finite = glance.Finite(t)
		case o.early[i] != nil:
			g = o.early[i].found[c]
		default:
			g = glance.At(t, norm)
		}
		if o.sharded[i] {
			sum = &own
		}
		if *sum += g.Squares; !g.Finite || math.IsInf(*sum, 0) {
			if i < 2*o.pairs {
				return ballot.Own, 0, 0
			}
			return ballot.Grad, 0, 0
		}
	}
	return ballot.None, squares, own
}

func (o *commit) moved() int64 { return o.exchange.Bytes() }
