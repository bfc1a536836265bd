package strategy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
)

// TestSlicesAreSummedInOneOrder reads the order of the sums of every gradient out of the
// plans, and finds the same on 1 to 12 workers, whatever the bucket.
func TestSlicesAreSummedInOneOrder(t *testing.T) {
	for name, step := range steps(t) {
		var want map[string]string
		for w := 1; w <= 12; w++ {
			for _, bucket := range []int{1, 100, strategy.BucketDefault} {
				program, err := strategy.AllReduce(step, strategy.Cluster{Workers: w, Bucket: bucket, Slices: 12})
				if err != nil {
					t.Fatal(err)
				}
				got := orders(program.Plans[strategy.StepPlan])
				if want == nil {
					want = got
				}
				for param, order := range got {
					if order != want[param] || strings.Count(order, "+") != 11 {
						t.Errorf("%s on %d workers: %s is summed as %s, on one as %s", name, w, param, order, want[param])
					}
				}
				if len(got) != len(step.Params) {
					t.Errorf("%s on %d workers: %d gradients are summed, want %d", name, w, len(got), len(step.Params))
				}
			}
		}
	}
}

// orders follows a plan on texts: a gradient of slice 3 is "3", a sum "(a+b)".
func orders(p *plan.Plan) map[string]string {
	held := make([]map[plan.Ref]string, len(p.Ranks))
	given := make(map[string][]string) // by parameter: terms, from the left
	rows := make(map[string]bool)
	for rank, tasks := range p.Ranks {
		held[rank] = make(map[plan.Ref]string)
		slice := -1
		for _, task := range tasks {
			switch task.Kind {
			case plan.Compute:
				for _, r := range slices.Concat(task.In, task.Out) {
					if class := p.Values[r.Value].Class; class == plan.Act || class == plan.Scalar && r.Micro > 0 {
						slice = r.Micro
					}
				}
				for _, r := range task.Out {
					if p.Values[r.Value].Class == plan.Grad {
						held[rank][r] = fmt.Sprint(slice)
					}
				}
			case plan.Add:
				held[rank][task.Out[0]] = fmt.Sprintf("(%s+%s)", held[rank][task.In[0]], held[rank][task.In[1]])
			case plan.Collective:
				for k, r := range task.In {
					if p.Values[r.Value].Class == plan.Grad {
						param := p.Values[p.Values[r.Value].State].Name
						given[param] = append(given[param], held[rank][task.In[k]])
						rows[param] = task.Op == plan.AllGatherRows
					}
				}
			case plan.Feed, plan.Send, plan.Recv, plan.Pull, plan.Push, plan.Commit: // sum nothing
			}
		}
	}
	out := make(map[string]string)
	for param, terms := range given {
		if rows[param] {
			out[param] = strings.Join(terms, "+")
			continue
		}
		// What is given is joined as plan.Fold says.
		var stack []plan.Branch
		var texts []string
		at := 0
		for _, term := range terms {
			n := strings.Count(term, "+") + 1
			var joined int
			stack, joined = plan.Fold(p.Slices, stack, plan.Branch{Lo: at, Hi: at + n})
			at += n
			texts = append(texts, term)
			for range joined {
				last := len(texts) - 1
				texts[last-1] = fmt.Sprintf("(%s+%s)", texts[last-1], texts[last])
				texts = texts[:last]
			}
		}
		out[param] = strings.Join(texts, " ")
	}
	return out
}

// TestFaultsInSlices plants one fault in a proved plan of three workers and expects the
// checker to find it.
func TestFaultsInSlices(t *testing.T) {
	for _, c := range []struct {
		name, model, want string
		plant             func(p *plan.Plan)
	}{
		{"sums in the order of ranks", "mlp", "is no sum of all 12 slices in the order of the tree: reduce it with order=tree", func(p *plan.Plan) {
			edit(p, plan.Collective, func(task *plan.Task) { task.Order, task.In, task.Algorithm = plan.Any, task.Out, plan.ByRing })
		}},
		{"branches the other way round", "mlp", "as the sum of slices 0 to 2, which it is not in the order of the tree", func(p *plan.Plan) {
			edit(p, plan.Add, func(task *plan.Task) { task.In[0], task.In[1] = task.In[1], task.In[0] })
		}},
		{"another number of slices", "mlp", "want 3 for each", func(p *plan.Plan) { p.Slices = 9 }},
		{"a sum where the second branch is", "mlp", "the sum goes where the first branch is", func(p *plan.Plan) {
			edit(p, plan.Collective, func(task *plan.Task) { task.Out = task.In[len(task.In)-len(task.Out):] })
		}},
		{"an algorithm that keeps no order", "mlp", "doubling keeps no order: a tree is summed by ring or exchange", func(p *plan.Plan) {
			edit(p, plan.Collective, func(task *plan.Task) { task.Algorithm = plan.ByDoubling })
		}},
		{"rows of slices in another order", "sparse", "gives w/grad as the sum of slices 0 to 0", func(p *plan.Plan) {
			edit(p, plan.Collective, func(task *plan.Task) {
				if task.Op == plan.AllGatherRows {
					task.In[0], task.In[1], task.In[2], task.In[3] = task.In[2], task.In[3], task.In[0], task.In[1]
				}
			})
		}},
		{"a slice lost", "sparse", "want 4 for each", func(p *plan.Plan) {
			edit(p, plan.Collective, func(task *plan.Task) {
				if task.Op == plan.AllGatherRows {
					task.In = task.In[2:]
				}
			})
		}},
		{"weights of slices in another order", "mlp", "gives weight as the sum of slices 0 to 0", func(p *plan.Plan) {
			edit(p, plan.Commit, func(task *plan.Task) { task.In[0], task.In[2] = task.In[2], task.In[0] })
		}},
		{"too few slices", "mlp", "sums in the order of a tree over 2 slices: want as many as ranks at least", func(p *plan.Plan) { p.Slices = 2 }},
		{"exchange without a tree", "mlp", "exchange is how a tree is summed", func(p *plan.Plan) {
			edit(p, plan.Collective, func(task *plan.Task) {
				task.Order, task.In, task.Algorithm = plan.Any, task.Out, plan.ByExchange
			})
		}},
	} {
		program, err := strategy.AllReduce(steps(t)[c.model], strategy.Cluster{Workers: 3, Slices: 12})
		if err != nil {
			t.Fatal(err)
		}
		p := program.Plans[strategy.StepPlan]
		if err := check.Plan(p); err != nil {
			t.Fatal(err)
		}
		c.plant(p)
		if err := check.Plan(p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// edit changes all tasks of a kind.
func edit(p *plan.Plan, kind plan.Kind, change func(*plan.Task)) {
	for _, tasks := range p.Ranks {
		for i := range tasks {
			if tasks[i].Kind == kind {
				change(&tasks[i])
			}
		}
	}
}

// TestSlicesRefused: what cannot be cut says why.
func TestSlicesRefused(t *testing.T) {
	for want, c := range map[string]strategy.Cluster{
		"3 slices for 4 workers: want as many as workers at least": {Workers: 4, Slices: 3},
		"257 slices for 1 workers":                                 {Workers: 1, Slices: 257},
		"they leave no use for 2 micro-batches":                    {Workers: 2, Slices: 12, Micro: 2},
	} {
		if _, err := strategy.AllReduce(steps(t)["mlp"], c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	if _, err := strategy.PS(steps(t)["mlp"], strategy.Cluster{Workers: 1, Servers: 1, Slices: 12}); err == nil || !strings.Contains(err.Error(), "servers sum by worker") {
		t.Error(err)
	}
}
