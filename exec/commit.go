package exec

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// A ballot is what a rank says in a Commit: its weight and its loss as float64
// in little-endian order, then one byte: the least of the faults it found.
const (
	ballotLoss  = 8
	ballotFault = 16
	ballotSize  = 17
)

// What a ballot finds fault with.
const (
	faultOwn  = 0 // the rank's own weight or loss is not finite
	faultGrad = 1 // a gradient is not finite; after an all-reduce all ranks say so
	faultNone = 2
)

// commit ends a synchronous step: the ranks add up weight and loss and agree
// on whether the step counts.
type commit struct {
	operands
	e        *Exec
	exchange *collective.Exchange
	mine     [ballotSize]byte
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
	x, err := collective.NewExchange(party, ballotSize)
	return &commit{operands: io, e: b.e, exchange: x}, err
}

func (o *commit) run(ctx context.Context, step int64, c int) error {
	in, out := o.in[c], o.out[c]
	binary.LittleEndian.PutUint64(o.mine[:], math.Float64bits(in[0].Scalar()))
	binary.LittleEndian.PutUint64(o.mine[ballotLoss:], math.Float64bits(in[1].Scalar()))
	o.mine[ballotFault] = faultOf(in)
	all, err := o.exchange.Run(ctx, o.mine[:])
	if err != nil {
		return err
	}
	r := o.sum(all)
	out[0].SetScalar(r.Weight)
	out[1].SetScalar(r.Loss)
	o.e.mu.Lock()
	o.e.results[c] = r
	o.e.mu.Unlock()
	if o.e.cfg.Stores != nil {
		o.e.cfg.Stores.Committed(step, r.Weight)
	}
	return nil
}

// faultOf looks at weight, loss and gradients, in this order.
func faultOf(in []*tensor.Tensor) byte {
	for i, t := range in {
		if !finite(t) {
			return byte(min(i/2, faultGrad))
		}
	}
	return faultNone
}

// sum adds the ballots in the order of the group, so that every rank gets the
// same bits. If some ranks' own loss is not finite they are at fault: a
// gradient that was summed already is spoiled everywhere.
func (o *commit) sum(all []byte) Result {
	var r Result
	worst := byte(faultNone)
	for i := range o.exchange.Group {
		worst = min(worst, all[i*ballotSize+ballotFault])
	}
	for i, rank := range o.exchange.Group {
		b := all[i*ballotSize:]
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

// finite reports whether no element is infinite or not a number. It costs a
// pass over the memory.
func finite(t *tensor.Tensor) bool {
	if t.DType() == tensor.F32 {
		return allFinite(t.F32())
	}
	return allFinite(t.F64())
}

// allFinite adds up v-v, which is 0 for a finite v and not a number otherwise.
// A sum of squares would call large but finite gradients infinite.
func allFinite[T tensor.Float](v []T) bool {
	var a, b, c, d T
	for len(v) >= 4 {
		w := v[:4:4]
		a += w[0] - w[0]
		b += w[1] - w[1]
		c += w[2] - w[2]
		d += w[3] - w[3]
		v = v[4:]
	}
	for _, x := range v {
		a += x - x
	}
	return a+b+c+d == 0
}
