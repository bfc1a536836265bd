package strategy_test

import (
	"slices"
	"testing"

	"github.com/gangline/gangline/graph/cut"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
)

// Each fault in a plan of shards is found, and the finding names the task and the cure.
func TestShardFaults(t *testing.T) {
	value := func(p *plan.Plan, name string) *plan.Value {
		i := slices.IndexFunc(p.Values, func(v plan.Value) bool { return v.Name == name })
		if i < 0 {
			t.Fatalf("no value %s", name)
		}
		return &p.Values[i]
	}
	each := func(p *plan.Plan, what string, change func(task *plan.Task)) {
		for r := range p.Ranks {
			change(&p.Ranks[r][find(t, p, r, what, 0)])
		}
	}
	for _, f := range []struct {
		name  string
		stage int
		plant func(p *plan.Plan)
		want  []string
	}{
		{"nothing is gathered after the update", 1, func(p *plan.Plan) {
			for r := range p.Ranks {
				last := len(p.Ranks[r]) - 1
				p.Ranks[r] = p.Ranks[r][:last]
				for i := range p.Ranks[r] {
					p.Ranks[r][i].After = slices.DeleteFunc(p.Ranks[r][i].After, func(d plan.Dep) bool { return d.Task == last })
				}
			}
		}, []string{"rank 0: task", "changes its part of", "add an allgather"}},
		{"the next step does not wait for what is gathered", 2, func(p *plan.Plan) {
			for r := range p.Ranks {
				for i := range p.Ranks[r] {
					p.Ranks[r][i].After = slices.DeleteFunc(p.Ranks[r][i].After, func(d plan.Dep) bool { return d.Lag > 0 })
				}
			}
		}, []string{"rank 0: task", "may still write it"}},
		{"a rank owns what it does not get", 1, func(p *plan.Plan) {
			for i := range p.Holdings {
				if h := &p.Holdings[i]; h.Owner && p.Values[h.State].Name == "w1" {
					h.Rank = 1 - h.Rank
				}
			}
		}, []string{"rank 0: task", "cuts off", "let it own what it gets"}},
		{"a slot is cut otherwise than its parameter", 1, func(p *plan.Plan) {
			for i := range p.Holdings {
				if h := &p.Holdings[i]; h.Owner && p.Values[h.State].Name == "w1/m" {
					h.Rank = 1 - h.Rank
				}
			}
		}, []string{"owns", "w1/m", "want one range, and the same"}},
		{"a part is owned twice", 1, func(p *plan.Plan) {
			for i := range p.Holdings {
				if h := &p.Holdings[i]; h.Owner && p.Values[h.State].Name == "w1" && h.Lo > 0 {
					h.Lo--
				}
			}
		}, []string{"cuts off", "of w1", "let it own what it gets"}},
		{"a part of the sum is taken for all", 1, func(p *plan.Plan) {
			for _, name := range []string{"w1", "w1/m", "w1/v", "w1/grad"} {
				value(p, name).Sharded = false
			}
		}, []string{"reads all of w1/grad, of which the rank has its part of the sum"}},
		{"an update takes the whole gradient of its rank", 2, func(p *plan.Plan) {
			each(p, "compute update/w1", func(task *plan.Task) {
				for i, r := range task.In {
					if p.Values[r.Value].Name == "w1/grad.shard" {
						task.In[i].Value = slices.IndexFunc(p.Values, func(v plan.Value) bool { return v.Name == "w1/grad" })
					}
				}
			})
		}, []string{"update/w1", "of which one is sharded"}},
		{"a bucket is filled before it is scattered", 2, func(p *plan.Plan) {
			for r := range p.Ranks {
				for i := range p.Ranks[r] {
					if task := &p.Ranks[r][i]; task.Kind == plan.Compute {
						task.After = slices.DeleteFunc(task.After, func(d plan.Dep) bool { return d.Lag == 0 && p.Ranks[r][d.Task].Op == plan.ReduceScatter })
					}
				}
			}
		}, []string{"rank 0: task", "in memory that", "make it wait for that"}},
		{"a segment reads a shard", 3, func(p *plan.Plan) {
			whole, part := 0, 0
			for i := range p.Values {
				switch p.Values[i].Name {
				case "w1.whole":
					whole = i
				case "w1":
					part = i
				}
			}
			for r := range p.Ranks {
				for i := range p.Ranks[r] {
					if task := &p.Ranks[r][i]; task.Kind == plan.Compute {
						for k := range task.In {
							if task.In[k].Value == whole {
								task.In[k].Value = part
							}
						}
					}
				}
			}
		}, []string{"reads w1, of which the rank has a part"}},
		{"parameters are gathered while they are updated", 3, func(p *plan.Plan) {
			each(p, "collective b1", func(*plan.Task) {})
			for r := range p.Ranks {
				for i := range p.Ranks[r] {
					p.Ranks[r][i].After = slices.DeleteFunc(p.Ranks[r][i].After, func(d plan.Dep) bool { return d.Lag > 0 })
				}
			}
		}, []string{"while", "update/", "of step t-1"}},
		{"parameters are read that another bucket has overwritten", 3, func(p *plan.Plan) {
			gathers := 0
			for r := range p.Ranks {
				gathers = 0
				for i := range p.Ranks[r] {
					if p.Ranks[r][i].Op == plan.AllGather {
						gathers++
					}
				}
			}
			for r := range p.Ranks {
				n := 0
				for i := range p.Ranks[r] {
					if p.Ranks[r][i].Op == plan.AllGather {
						if n++; n == gathers { // the second gathering of the first bucket
							drop(p, r, i)
							break
						}
					}
				}
			}
		}, []string{"over which", "has written", "write it anew"}},
	} {
		t.Run(f.name, func(t *testing.T) {
			step := steps(t)["mlp"]
			if f.stage == 3 {
				step = cut.Step(step, 1)
			}
			program, err := strategy.Zero(step, strategy.Cluster{Workers: 2, Stage: f.stage, Bucket: 1})
			if err != nil {
				t.Fatal(err)
			}
			p := program.Plans[strategy.StepPlan]
			if err := check.Plan(p); err != nil {
				t.Fatal(err)
			}
			f.plant(p)
			expect(t, check.Plan(p), f.want, p)
		})
	}
}
