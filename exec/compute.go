package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/exec/internal/ledger"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/cut"
	"github.com/gangline/gangline/plan"
)

// computeOp runs a segment.
type computeOp struct {
	still
	operands
	program compute.Program
}

func (b *binder) compute(t *plan.Task, io operands) (op, error) {
	cfg := &b.e.cfg
	if cfg.Step == nil || cfg.Backend == nil {
		return nil, errors.New("no Step or no Backend")
	}
	if t.Seg < 0 || t.Seg >= len(cfg.Step.Segments) {
		return nil, fmt.Errorf("no segment %d", t.Seg)
	}
	seg := &cfg.Step.Segments[t.Seg]
	if err := io.counts(len(seg.In), len(seg.Out)); err != nil {
		return nil, fmt.Errorf("segment %q: %w", seg.Name, err)
	}
	if err := b.fits(t.In, seg.In); err != nil {
		return nil, fmt.Errorf("segment %q: %w", seg.Name, err)
	}
	if err := b.fits(t.Out, seg.Out); err != nil {
		return nil, fmt.Errorf("segment %q: %w", seg.Name, err)
	}
	if state := ledger.Updates(cfg.Plan, t); state != plan.NoState && cfg.Plan.Values[state].Sharded {
		lo, hi := cfg.Plan.Part(cfg.Rank, state)
		if lo == hi {
			return idle{}, nil
		}
		seg = cut.Update(seg, hi-lo)
		b.own(t.In, io.in)
		b.own(t.Out, io.out)
	}
	key := programKey{t.Seg, t.Lane}
	p := b.programs[key]
	if p == nil {
		var err error
		if p, err = cfg.Backend.Compile(seg); err != nil {
			return nil, fmt.Errorf("compile segment %q: %w", seg.Name, err)
		}
		b.programs[key] = p
	}
	return &computeOp{operands: io, program: p}, nil
}

// fits checks values against the nodes of a segment.
func (b *binder) fits(refs []plan.Ref, nodes []*graph.Node) error {
	for i, n := range nodes {
		v := &b.e.cfg.Plan.Values[refs[i].Value]
		if v.DType != n.DType {
			return fmt.Errorf("value %q is %v where node %q is %v", v.Name, v.DType, n.Name, n.DType)
		}
	}
	return nil
}

func (o *computeOp) run(_ context.Context, step int64, c int) error {
	return o.program.Run(step, o.in[c], o.out[c])
}
