package strategy

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
)

// PS keeps the parameters on servers, in shards. A worker pulls them, and of
// tables the rows its batch names, computes, and pushes each gradient as soon
// as the backward pass has made it. Servers update when the step commits, and
// the pull of the next step waits for that.
func PS(step *graph.Step, c Cluster) (*plan.Program, error) {
	if c.Workers < 1 || c.Servers < 1 {
		return nil, fmt.Errorf("strategy ps: %d workers and %d servers: want at least one of each", c.Workers, c.Servers)
	}
	if c.Slices > 0 {
		return nil, fmt.Errorf("strategy ps: steps in slices are for serial and allreduce: servers sum by worker")
	}
	if t := step.Graph.Type(); t.IsHalf() {
		return nil, fmt.Errorf("strategy ps: the graph is in %v, and servers take gradients of f32 and f64: want serial or allreduce", t)
	}
	for i := range step.Params {
		if err := step.Params[i].Rule.Separable(); err != nil {
			return nil, fmt.Errorf("strategy ps: %s: %w", step.Params[i].Var.Name, err)
		}
		if c.Micro > 1 && step.Params[i].IsTable() { // a store is asked for rows of a table once a step
			return nil, fmt.Errorf("strategy ps: %s is a table, whose rows are pulled for the whole batch at once: want 1 micro-batch, not %d",
				step.Params[i].Var.Name, c.Micro)
		}
	}
	return program(step, c, psStep, psEval), nil
}

func psStep(b *builder) {
	b.holdOnStores()
	b.feed()
	pulls := b.pull()
	var pushes []int
	b.forward(func(made []*graph.Param) { pushes = append(pushes, b.push(made)...) })
	b.nextStep(pulls, b.commit(pushes...))
}

func psEval(b *builder) {
	b.holdOnStores()
	b.feed()
	pulls := b.pull()
	b.nextStep(pulls, b.compute(b.step.Eval, 0))
}

// pull reads from every store what it holds: dense parameters, then rows.
func (b *builder) pull() (tasks []int) {
	for store := range b.c.Servers {
		t := plan.Task{Kind: plan.Pull, Name: b.plan.Stores[store].Name, Store: store, Lane: plan.Lane{Kind: plan.Store, ID: store}}
		for _, s := range b.params {
			if !b.table[s] && b.holds(store, s) {
				t.Out = append(t.Out, plan.Ref{Value: s})
			}
		}
		for p := range b.tables() {
			t.In = append(t.In, b.of(p.Keys, 0))
			t.Out = append(t.Out, b.of(p.Rows, 0))
		}
		if len(t.Out) > 0 {
			t.Tag = b.nextTag()
			tasks = append(tasks, b.add(t))
		}
	}
	return tasks
}

// push gives every store its part of the gradients just made.
func (b *builder) push(made []*graph.Param) (tasks []int) {
	for store := range b.c.Servers {
		t := plan.Task{Kind: plan.Push, Name: b.plan.Stores[store].Name, Store: store, Lane: plan.Lane{Kind: plan.Store, ID: store}}
		for _, p := range made {
			switch {
			case p.IsTable():
				t.In = append(t.In, refs(b.sums[p].keys, b.sums[p].sum)...)
			case b.holds(store, b.node(p.Var)):
				t.In = append(t.In, refs(b.node(p.Grad))...)
			}
		}
		if len(t.In) > 0 {
			t.Tag = b.nextTag()
			tasks = append(tasks, b.add(t))
		}
	}
	return tasks
}
