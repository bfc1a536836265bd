package exec

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/tree"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// treeSum sums the branches of all ranks in the order of the tree.
type treeSum struct {
	sum      *tree.AllReduce
	branches [][]*tensor.Tensor // for each copy
}

// tree binds a collective of Order Tree.
func (b *binder) tree(t *plan.Task, io operands, party collective.Party) (op, error) {
	p, n := b.e.cfg.Plan, len(t.Out)
	switch {
	case n == 0 || len(t.In) == 0 || len(t.In)%n != 0:
		return nil, fmt.Errorf("%d values in and %d out, want some branches of what is out", len(t.In), n)
	case t.Op == plan.AllGatherRows && n == 2:
		v := &p.Values[t.Out[1].Value]
		if len(v.Shape) != 2 || v.Shape[1] < 1 {
			return nil, fmt.Errorf("rows %v: want [? D]", v.Shape)
		}
		sum, err := tree.NewRows(party, p.Slices, v.DType, v.Shape[1])
		return &treeRows{operands: io, sum: sum}, err
	case t.Op != plan.AllReduce:
		return nil, fmt.Errorf("no %v in order %v", t.Op, t.Order)
	}
	v := &p.Values[t.Out[0].Value]
	o := &treeSum{branches: make([][]*tensor.Tensor, p.Window)}
	elems := 0
	for k := 0; k < len(t.In); k += n {
		runs, _, err := b.runs(t.In[k : k+n])
		if err != nil {
			return nil, err
		}
		for c, run := range runs {
			o.branches[c] = append(o.branches[c], run)
		}
		elems = runs[0].Elems()
	}
	var err error
	o.sum, err = tree.NewAllReduce(party, tree.Config{Slices: p.Slices, Algorithm: t.Algorithm, DType: v.DType, Elems: elems, Name: t.Name})
	return o, err
}

func (o *treeSum) run(ctx context.Context, _ int64, c int) error {
	return o.sum.Run(ctx, o.branches[c])
}

func (o *treeSum) moved() int64 { return o.sum.Bytes() }

// treeRows sums the rows of all slices in their order.
type treeRows struct {
	operands
	sum *tree.Rows
}

func (o *treeRows) run(ctx context.Context, _ int64, c int) error {
	return o.sum.Run(ctx, o.in[c], o.out[c][0], o.out[c][1])
}

func (o *treeRows) moved() int64 { return o.sum.Bytes() }
