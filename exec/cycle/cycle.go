// Package cycle runs the plans of a program, one after the other: of most programs
// one plan, step after step; of workers that train copies of their own
// (plan.Plan.Local) also those in which the copies meet.
//
// Which plan comes when follows from the number of the step alone, so that a run that
// goes on from a checkpoint does what the run would have done that was not
// interrupted, as long as both pause at the same steps.
package cycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/trace"
)

// Driver runs the plans of a program for one rank, by an executor each. Its methods
// are for one goroutine.
type Driver struct {
	step *exec.Exec
	// every is the steps of a cycle, after which ends are run; 0: there are none.
	every        int64
	ends         []*exec.Exec
	init, settle *exec.Exec // nil: there is none
	begun        bool
}

// New opens an executor for every plan that the program runs: that of the cycle which
// feeds, those that come after it, and Init and Settle. All must share State. What is
// open when one fails is closed again.
func New(p *plan.Program, open func(name string) (*exec.Exec, error)) (_ *Driver, err error) {
	d := &Driver{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	opened := ""
	for i, name := range p.Cycle {
		switch {
		case i > 0 && name == opened:
		case i == 0:
			d.step, err = open(name)
			opened = name
		case feeds(p.Plans[name]):
			return nil, fmt.Errorf("cycle: plans %q and %q both feed: want one", opened, name)
		default:
			var e *exec.Exec
			if e, err = open(name); err == nil {
				d.ends = append(d.ends, e)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if d.step == nil {
		return nil, errors.New("cycle: the program runs no plan: want one at least in its Cycle")
	}
	if len(d.ends) > 0 {
		d.every = int64(len(p.Cycle) - len(d.ends))
	}
	if p.Init != "" {
		if d.init, err = open(p.Init); err != nil {
			return nil, err
		}
	}
	if p.Settle != "" {
		d.settle, err = open(p.Settle)
	}
	return d, err
}

// feeds reports whether a plan brings batches.
func feeds(p *plan.Plan) bool {
	return p != nil && slices.ContainsFunc(p.Ranks, func(tasks []plan.Task) bool {
		return slices.ContainsFunc(tasks, func(t plan.Task) bool { return t.Kind == plan.Feed })
	})
}

// Run runs steps [first, last). What ends a cycle is run after each that ends before
// last; at last the program settles, be it within a cycle: all copies of a state are
// equal when Run returns. Calls must follow each other: first is the last of the call
// before.
func (d *Driver) Run(ctx context.Context, first, last int64) error {
	if first >= last {
		return nil
	}
	if d.init != nil && !d.begun {
		if err := d.init.Run(ctx, first, first+1); err != nil {
			return err
		}
	}
	d.begun = true
	for at := first; at < last; {
		next := last
		if d.every > 0 {
			next = min(last, (at/d.every+1)*d.every)
		}
		if err := d.step.Run(ctx, at, next); err != nil {
			return err
		}
		if at = next; at == last && d.settle != nil || d.every == 0 || at%d.every != 0 {
			continue
		}
		for _, e := range d.ends {
			if err := e.Run(ctx, at-1, at); err != nil {
				return err
			}
		}
	}
	if d.settle != nil {
		return d.settle.Run(ctx, last-1, last)
	}
	return nil
}

// Step is the executor of the plan that feeds.
func (d *Driver) Step() *exec.Exec { return d.step }

// all are the executors that there are.
func (d *Driver) all() []*exec.Exec {
	return slices.DeleteFunc(append([]*exec.Exec{d.step, d.init, d.settle}, d.ends...), func(e *exec.Exec) bool { return e == nil })
}

// Times returns where the time went, in all plans.
func (d *Driver) Times() (sum trace.Breakdown) {
	for _, e := range d.all() {
		t, _ := e.Times()
		sum.Compute += t.Compute
		sum.Communication += t.Communication
		sum.Wait += t.Wait
		sum.WaitInput += t.WaitInput
		sum.Input += t.Input
		sum.Update += t.Update
	}
	return sum
}

// Close closes the executors.
func (d *Driver) Close() error {
	var errs []error
	for _, e := range d.all() {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}
