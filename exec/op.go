package exec

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// op is what a task does, bound to its tensors.
type op interface {
	// run does the task for a step on copy c of the values. It returns soon
	// after ctx ended if it waits for anybody.
	run(ctx context.Context, step int64, c int) error
	// moved is the bytes that the last run sent and received.
	moved() int64
}

// still is embedded in ops that move nothing.
type still struct{}

func (still) moved() int64 { return 0 }

// programKey tells programs apart: a program has one Run at a time, and so has
// a lane.
type programKey struct {
	seg  int
	lane plan.Lane
}

// binder makes the ops of a rank.
type binder struct {
	e        *Exec
	programs map[programKey]compute.Program
	early    map[plan.Ref]*early
	parts    map[*tensor.Tensor]*tensor.Tensor // what this rank answers for of a sharded value
}

// bind makes a task's op.
func (b *binder) bind(t *plan.Task) (op, error) {
	in, err := b.e.values.Lists(t.In)
	if err != nil {
		return nil, err
	}
	out, err := b.e.values.Lists(t.Out)
	if err != nil {
		return nil, err
	}
	io := operands{in, out}
	switch t.Kind {
	case plan.Feed:
		return b.feed(t, io)
	case plan.Compute:
		return b.compute(t, io)
	case plan.Send:
		return b.send(t, io)
	case plan.Recv:
		return b.recv(t, io)
	case plan.Collective:
		o, err := b.collective(t, io)
		if err != nil {
			return nil, err
		}
		return b.look(t, io, o), nil
	case plan.Pull:
		return b.pull(t, io)
	case plan.Push:
		return b.push(t, io)
	case plan.Add:
		return b.add(t, io)
	case plan.Commit:
		return b.commit(t, io)
	}
	return nil, fmt.Errorf("no such kind")
}

// operands are the tensors of a task, for each copy.
type operands struct {
	in, out [][]*tensor.Tensor
}

// counts checks the numbers of operands, -1 being any.
func (o *operands) counts(in, out int) error {
	if in >= 0 && len(o.in[0]) != in || out >= 0 && len(o.out[0]) != out {
		return fmt.Errorf("%d values in and %d out, want %d and %d", len(o.in[0]), len(o.out[0]), in, out)
	}
	return nil
}

// party is this rank's place in a task's group.
func (b *binder) party(t *plan.Task) (collective.Party, error) {
	groups := b.e.cfg.Plan.Groups
	if t.Group < 0 || t.Group >= len(groups) {
		return collective.Party{}, fmt.Errorf("no group %d", t.Group)
	}
	p := collective.Party{Endpoint: b.e.cfg.Endpoint, Group: groups[t.Group], Index: -1, Tag: t.Tag}
	if s := b.e.cfg.Streams; t.Group < len(s) {
		p.Streams = s[t.Group]
	}
	for i, r := range p.Group {
		if r == b.e.cfg.Rank {
			p.Index = i
		}
	}
	if p.Index < 0 {
		return p, fmt.Errorf("rank %d is not in group %v", b.e.cfg.Rank, p.Group)
	}
	return p, nil
}

// idle is an update of no elements.
type idle struct{ still }

func (idle) run(context.Context, int64, int) error { return nil }
