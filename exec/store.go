package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/tensor"
)

// pull reads from a store.
type pull struct {
	storeOp
}

// push gives gradients to a store.
type push struct {
	storeOp
}

// storeOp is what pull and push share.
type storeOp struct {
	still
	e     *Exec
	store int
	parts [][]ps.Part // for each copy
}

// newStoreOp checks that there is such a store.
func (b *binder) newStoreOp(t *plan.Task) (storeOp, error) {
	p := b.e.cfg.Plan
	if b.e.cfg.Stores == nil {
		return storeOp{}, errors.New("no Stores")
	}
	if t.Store < 0 || t.Store >= len(p.Stores) {
		return storeOp{}, fmt.Errorf("no store %d", t.Store)
	}
	return storeOp{e: b.e, store: t.Store, parts: make([][]ps.Part, p.Window)}, nil
}

// add gives a part to every copy; keys is nil for a dense part.
func (o *storeOp) add(state int, keys, data []*tensor.Tensor) error {
	part := ps.Part{State: state}
	if state < 0 || state >= len(o.e.cfg.Plan.Values) {
		return fmt.Errorf("a value of no parameter cannot go to a store")
	}
	if keys == nil {
		found := false
		for _, h := range o.e.cfg.Plan.Holdings {
			if h.Store == o.store && h.Rank < 0 && h.State == state {
				part.Lo, part.Hi, found = h.Lo, h.Hi, true
			}
		}
		if !found {
			return fmt.Errorf("store %d holds nothing of %q", o.store, o.e.cfg.Plan.Values[state].Name)
		}
	}
	for c := range o.parts {
		part.Data = data[c]
		if keys != nil {
			part.Keys = keys[c]
		}
		o.parts[c] = append(o.parts[c], part)
	}
	return nil
}

// column returns operand i of every copy.
func column(lists [][]*tensor.Tensor, i int) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(lists))
	for c := range lists {
		out[c] = lists[c][i]
	}
	return out
}

// pull binds a Pull: Out lists parameters, then the rows of tables, whose keys
// In lists in the same order.
func (b *binder) pull(t *plan.Task, io operands) (op, error) {
	s, err := b.newStoreOp(t)
	if err != nil {
		return nil, err
	}
	tables := 0
	for i, r := range t.Out {
		v := &b.e.cfg.Plan.Values[r.Value]
		var keys []*tensor.Tensor
		if v.Class != plan.Param {
			if tables == len(t.In) || len(v.Shape) != 2 {
				return nil, fmt.Errorf("rows %q %v: want keys for them and shape [? D]", v.Name, v.Shape)
			}
			keys = column(io.in, tables)
			tables++
		}
		if err := s.add(v.State, keys, column(io.out, i)); err != nil {
			return nil, err
		}
	}
	if tables != len(t.In) {
		return nil, fmt.Errorf("%d keys for %d tables", len(t.In), tables)
	}
	return &pull{s}, nil
}

func (o *pull) run(ctx context.Context, step int64, c int) error {
	// Pulls from several stores fill one value at the same time, so only the
	// first of them may set its shape.
	o.e.mu.Lock()
	for i := range o.parts[c] {
		p := &o.parts[c][i]
		if p.Keys == nil {
			continue
		}
		if k := p.Keys.Elems(); p.Data.Shape()[0] != k {
			p.Data.Resize(k, p.Data.Shape()[1])
		}
	}
	o.e.mu.Unlock()
	return o.e.cfg.Stores.Pull(ctx, o.store, step, o.parts[c])
}

// push binds a Push: dense gradients, or pairs of keys and rows.
func (b *binder) push(t *plan.Task, io operands) (op, error) {
	s, err := b.newStoreOp(t)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(t.In); i++ {
		v := &b.e.cfg.Plan.Values[t.In[i].Value]
		var keys []*tensor.Tensor
		if v.Class == plan.Key {
			keys = column(io.in, i)
			if i++; i == len(t.In) {
				return nil, fmt.Errorf("keys %q without rows", v.Name)
			}
			v = &b.e.cfg.Plan.Values[t.In[i].Value]
		}
		if err := s.add(v.State, keys, column(io.in, i)); err != nil {
			return nil, err
		}
	}
	return &push{s}, nil
}

func (o *push) run(ctx context.Context, step int64, c int) error {
	return o.e.cfg.Stores.Push(ctx, o.store, step, o.parts[c])
}
