// Command strategy is gangline with one more strategy: a star, in which worker 0
// adds up the dense gradients of all and broadcasts the sums. All commands work
// as ever, with strategy.kind star; the plan is printed and proved like ours:
//
//	go run ./examples/custom/strategy plan check examples/custom/strategy/job.yaml
//	go run ./examples/custom/strategy train examples/custom/strategy/job.yaml
package main

import (
	"fmt"
	"os"

	"github.com/gangline/gangline/cli"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
)

func main() { os.Exit(cli.Main(cli.Strategy("star", star))) }

// star takes the plan of allreduce and puts messages, sums on worker 0 and
// broadcasts in place of its all-reduces.
func star(step *graph.Step, c strategy.Cluster) (*plan.Program, error) {
	c.Bucket = 1 // each gradient by itself
	program, err := strategy.AllReduce(step, c)
	if err != nil {
		return nil, fmt.Errorf("strategy star: %w", err)
	}
	p := program.Plans[strategy.StepPlan]
	for rank, old := range p.Ranks {
		l, moved := list{plan: p, rank: rank}, make([]int, len(old)) // where each task has gone
		for i, t := range old {
			for k, d := range t.After {
				t.After[k].Task = moved[d.Task]
			}
			if t.Kind == plan.Collective && t.Op == plan.AllReduce {
				t.After = []plan.Dep{l.sum(t)}
				t.Op, t.Algorithm = plan.Broadcast, plan.ByRing // the usual; only all-reduces have others
			}
			moved[i] = l.add(t).Task
		}
		p.Ranks[rank] = l.tasks
	}
	return program, nil
}

// list is the new list of a rank.
type list struct {
	plan  *plan.Plan
	rank  int
	tasks []plan.Task
}

func (l *list) add(t plan.Task) plan.Dep {
	l.tasks = append(l.tasks, t)
	return plan.Dep{Task: len(l.tasks) - 1}
}

// sum brings the sum of a gradient to worker 0; the last of the tasks is returned.
func (l *list) sum(t plan.Task) plan.Dep {
	m := plan.Task{Name: t.Name, Tag: t.Tag + 1<<16, After: t.After} // a tag that no other has
	if l.rank > 0 {
		m.Kind, m.In, m.Lane = plan.Send, t.In, plan.Lane{Kind: plan.Link, ID: 0}
		return l.add(m)
	}
	add := plan.Task{Kind: plan.Add, Name: t.Name, In: t.In, Out: t.Out, After: t.After, Lane: plan.Lane{Kind: plan.Device}}
	for peer := 1; peer < len(l.plan.Ranks); peer++ {
		v := l.plan.Values[t.In[0].Value]
		v.Name, v.Arena, v.Offset = fmt.Sprintf("%s.from%d", v.Name, peer), 0, 0
		l.plan.Values = append(l.plan.Values, v)
		from := plan.Ref{Value: len(l.plan.Values) - 1}
		m.Kind, m.Peer, m.Out, m.After = plan.Recv, peer, []plan.Ref{from}, nil
		m.Lane = plan.Lane{Kind: plan.Link, ID: 2*peer + 1}
		add.In, add.After = append(add.In, from), append(add.After, l.add(m))
	}
	return l.add(add)
}
