package exec

import (
	"context"
	"errors"
	"slices"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/plan"
)

// bucket sums gradients by a codec. A Commit of its group tells it of steps that change
// nothing (see commit.run).
type bucket struct {
	operands
	group int
	sum   *compressed.Bucket
}

func (b *binder) compressed(t *plan.Task, io operands, party collective.Party) (op, error) {
	if t.Op != plan.AllReduce || !slices.Equal(t.In, t.Out) {
		return nil, errors.New("only an all-reduce in place can be compressed")
	}
	spec, err := compress.ParseSpec(t.Codec)
	if err != nil {
		return nil, err
	}
	var parts []compressed.Part
	for _, r := range t.In {
		v := &b.e.cfg.Plan.Values[r.Value]
		part := compressed.Part{Name: v.Name, Shape: v.Shape}
		if v.State != plan.NoState {
			part.Name = b.e.cfg.Plan.Values[v.State].Name
		}
		parts = append(parts, part)
	}
	sum, err := compressed.NewBucket(party, t.Name, spec, parts)
	if err != nil {
		return nil, err
	}
	o := &bucket{operands: io, group: t.Group, sum: sum}
	b.e.buckets = append(b.e.buckets, o)
	return o, nil
}

func (o *bucket) run(ctx context.Context, _ int64, c int) error { return o.sum.Run(ctx, o.in[c]) }

func (o *bucket) moved() int64 { return o.sum.Bytes() }

// revert takes back what buckets of a group lost in a step that changes nothing. It is
// called on the group's lane, behind them.
func (e *Exec) revert(group int) {
	for _, o := range e.buckets {
		if o.group == group {
			o.sum.Revert()
		}
	}
}

// Compressed returns the sums of this rank that are compressed, whose residuals belong into a
// checkpoint. Neither it nor they may be used during a Run.
func (e *Exec) Compressed() []*compressed.Bucket {
	var all []*compressed.Bucket
	for _, o := range e.buckets {
		all = append(all, o.sum)
	}
	return all
}
