package exec

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// A ballot is what a rank says in a Commit: its weight and its loss as float64
// in little-endian order, then one byte: the least of the faults it found; where
// gradients are sliced and clipped by norm, eight more: the squares of its slices.
const (
	ballotLoss    = 8
	ballotFault   = 16
	ballotSize    = 17
	ballotSquares = 17
	ballotSliced  = 25
)

// What a ballot finds fault with.
const (
	faultOwn  = 0 // the rank's own weight or loss is not finite
	faultGrad = 1 // a gradient is not finite; after an all-reduce all ranks say so
	faultNone = 2
)

// commit ends a synchronous step: the ranks add up weight and loss and agree
// on whether the step counts.
//
// Where the rule clips by norm, it also takes the norm of the gradients, which
// must be sums over the group by then: all ranks have the same bits and so find
// the same norm, without a word; but for slices, of which each says the squares of
// its own. What it hands on as the total weight is the
// number to divide by for the norm to hold (optim.Rule.Divisor); the Result has
// the weight itself.
type commit struct {
	operands
	e        *Exec
	exchange *collective.Exchange
	rule     optim.Rule
	sliced   []bool // by the values looked at
	mine     []byte
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
		if v := &b.e.cfg.Plan.Values[r.Value]; !v.DType.IsFloat() {
			return nil, fmt.Errorf("value %q of type %v cannot be checked", v.Name, v.DType)
		}
	}
	for _, list := range [][]*tensor.Tensor{io.in[0][:2], io.out[0]} {
		for _, s := range list {
			if s.Elems() != 1 || !s.DType().IsFloat() {
				return nil, fmt.Errorf("weight or loss is %v %v, want a float scalar", s.DType(), s.Shape())
			}
		}
	}
	rule, err := b.clipping(t, len(party.Group))
	if err != nil {
		return nil, err
	}
	b.own(t.In, io.in)
	o := &commit{operands: io, e: b.e, rule: rule, mine: make([]byte, ballotSize)}
	for _, r := range t.In {
		o.sliced = append(o.sliced, b.e.cfg.Plan.Values[r.Value].Sliced)
	}
	if rule.ClipNorm > 0 && slices.Contains(o.sliced, true) {
		o.mine = make([]byte, ballotSliced)
	}
	o.exchange, err = collective.NewExchange(party, len(o.mine))
	return o, err
}

// clipping returns the rule that says how long gradients may be. It fails if the
// norm of what the task looks at is not that of the step's gradient.
func (b *binder) clipping(t *plan.Task, group int) (rule optim.Rule, err error) {
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
	for _, r := range t.In[2:] {
		if !summed[r.Value] {
			return rule, fmt.Errorf("clip_norm is %v and gradient %q is not summed over the workers: its norm is not that of the step",
				rule.ClipNorm, b.e.cfg.Plan.Values[r.Value].Name)
		}
	}
	return rule, nil
}

func (o *commit) run(ctx context.Context, step int64, c int) error {
	in, out := o.in[c], o.out[c]
	binary.LittleEndian.PutUint64(o.mine, math.Float64bits(in[0].Scalar()))
	binary.LittleEndian.PutUint64(o.mine[ballotLoss:], math.Float64bits(in[1].Scalar()))
	fault, squares, own := o.look(in)
	o.mine[ballotFault] = fault
	if len(o.mine) > ballotSquares {
		binary.LittleEndian.PutUint64(o.mine[ballotSquares:], math.Float64bits(own))
	}
	all, err := o.exchange.Run(ctx, o.mine)
	if err != nil {
		return err
	}
	r := o.sum(all)
	if squares += o.squares(all); math.IsInf(squares, 0) { // every slice is finite, their sum is not
		r.Weight, r.Skipped, r.Faulty = 0, true, o.exchange.Group
	}
	divisor := o.rule.Divisor(r.Weight, squares)
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
// the way, apart for those that are slices; a norm that is too large for a float64
// is a fault like any other.
func (o *commit) look(in []*tensor.Tensor) (fault byte, squares, own float64) {
	for i, t := range in {
		good := false
		if i >= 2 && o.rule.ClipNorm > 0 {
			sum := &squares
			if o.sliced[i] {
				sum = &own
			}
			*sum += squareNorm(t)
			good = !math.IsInf(*sum, 0) && !math.IsNaN(*sum)
		} else {
			good = finite(t)
		}
		if !good {
			return byte(min(i/2, faultGrad)), 0, 0
		}
	}
	return faultNone, squares, own
}

// squares adds up those that ranks say of their slices, in the order of the group.
func (o *commit) squares(all []byte) (sum float64) {
	for b := all; len(o.mine) > ballotSquares && len(b) > 0; b = b[len(o.mine):] {
		sum += math.Float64frombits(binary.LittleEndian.Uint64(b[ballotSquares:]))
	}
	return sum
}

func squareNorm(t *tensor.Tensor) float64 {
	if t.DType() == tensor.F32 {
		return optim.SquareNorm(t.F32())
	}
	return optim.SquareNorm(t.F64())
}

// sum adds the ballots in the order of the group, so that every rank gets the
// same bits. If some ranks' own loss is not finite they are at fault: a
// gradient that was summed already is spoiled everywhere.
func (o *commit) sum(all []byte) Result {
	var r Result
	worst := byte(faultNone)
	for i := range o.exchange.Group {
		worst = min(worst, all[i*len(o.mine)+ballotFault])
	}
	for i, rank := range o.exchange.Group {
		b := all[i*len(o.mine):]
		fault := b[ballotFault]
		if fault == worst && worst < faultNone {
			r.Faulty = append(r.Faulty, rank)
		}
		if fault != faultOwn {
			r.Weight += math.Float64frombits(binary.LittleEndian.Uint64(b))
			r.Loss += math.Float64frombits(binary.LittleEndian.Uint64(b[ballotLoss:]))
		}
	}
	if worst < faultNone {
		r.Weight = 0
	}
	r.Skipped = r.Weight == 0
	return r
}

func (o *commit) moved() int64 { return o.exchange.Bytes() }
