package strategy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
)

// find returns the index of the n-th task of a rank that a test describes by
// kind and name, as in "push store1".
func find(t *testing.T, p *plan.Plan, rank int, what string, n int) int {
	t.Helper()
	for i, task := range p.Ranks[rank] {
		name := task.Kind.String() + " " + task.Name
		if name == what {
			if n--; n < 0 {
				return i
			}
		}
	}
	t.Fatalf("rank %d has no task %q:\n%s", rank, what, plan.Format(p))
	return 0
}

// drop removes a task of one rank and all that waited for it.
func drop(p *plan.Plan, rank, i int) {
	tasks := slices.Delete(p.Ranks[rank], i, i+1)
	for j := range tasks {
		tasks[j].After = slices.DeleteFunc(tasks[j].After, func(d plan.Dep) bool { return d.Task == i })
		for k := range tasks[j].After {
			if tasks[j].After[k].Task > i {
				tasks[j].After[k].Task--
			}
		}
	}
	p.Ranks[rank] = tasks
}

// swap exchanges two tasks of one rank, without what they wait for.
func swap(p *plan.Plan, rank, i, j int) {
	tasks := p.Ranks[rank]
	tasks[i], tasks[j] = tasks[j], tasks[i]
	tasks[i].After, tasks[j].After = tasks[j].After, tasks[i].After
}

// TestPlantedFaults plants one fault in a proved plan of two or three workers
// and expects the checker to find it, and to name the rank, the task and the cure.
func TestPlantedFaults(t *testing.T) {
	type fault struct {
		name  string
		plant func(t *testing.T, p *plan.Plan)
		want  []string // parts of one finding
	}
	value := func(p *plan.Plan, name string) int {
		return slices.IndexFunc(p.Values, func(v plan.Value) bool { return v.Name == name })
	}
	faults := map[string][]fault{
		"allreduce": {
			{"collectives in another order on one rank", func(t *testing.T, p *plan.Plan) {
				swap(p, 1, find(t, p, 1, "collective b", 0), find(t, p, 1, "collective w", 0))
			}, []string{"rank 1: task", "allreduce w", "number 1 on group 0", "rank 0 has task", "same order"}},
			{"a collective is missing on one rank", func(t *testing.T, p *plan.Plan) {
				drop(p, 2, find(t, p, 2, "collective w", 0))
			}, []string{"rank 2: takes no part in task 4 (allreduce w) of rank 0"}},
			{"a gradient is not reduced", func(t *testing.T, p *plan.Plan) {
				for r := range p.Ranks {
					drop(p, r, find(t, p, r, "collective w", 0))
				}
			}, []string{"rank 0: task", "compute update/w", "lacks the batch of ranks 1 2", "reduce it"}},
			{"a gradient is reduced twice", func(t *testing.T, p *plan.Plan) {
				for r := range p.Ranks {
					again := p.Ranks[r][find(t, p, r, "collective w", 0)]
					again.Tag = 99
					i := find(t, p, r, "commit step", 0)
					p.Ranks[r][i].Name = "was commit"
					commit := p.Ranks[r][i]
					p.Ranks[r] = append(p.Ranks[r][:i:i], append([]plan.Task{again, commit}, p.Ranks[r][i+1:]...)...)
					for j := i + 2; j < len(p.Ranks[r]); j++ {
						p.Ranks[r][j].After = []plan.Dep{{Task: i + 1}}
					}
				}
			}, []string{"rank 1: task", "allreduce w", "counts twice", "the batch of ranks 0 1 2"}},
			{"the update does not wait for the commit", func(t *testing.T, p *plan.Plan) {
				p.Ranks[1][find(t, p, 1, "compute update/w", 0)].After = nil
				p.Ranks[1][find(t, p, 1, "compute update/b", 0)].After = nil
			}, []string{"rank 1: task", "compute update/w", "reads total while task 5 (commit step) may still write it"}},
			{"the reduction does not wait for the gradient", func(t *testing.T, p *plan.Plan) {
				p.Ranks[2][find(t, p, 2, "collective w", 0)].After = nil
			}, []string{"rank 2: task", "allreduce w", "while task", "compute forward/w", "may still write"}},
			{"a copy is not updated", func(t *testing.T, p *plan.Plan) {
				drop(p, 1, find(t, p, 1, "compute update/b", 0))
			}, []string{"rank 1: holds b but never updates it"}},
			{"a parameter is updated twice", func(t *testing.T, p *plan.Plan) {
				p.Ranks[1] = append(p.Ranks[1], p.Ranks[1][find(t, p, 1, "compute update/b", 0)])
			}, []string{"rank 1: task", "updates b a second time"}},
			{"the update divides by the local weight", func(t *testing.T, p *plan.Plan) {
				u := &p.Ranks[0][find(t, p, 0, "compute update/b", 0)]
				u.In[slices.IndexFunc(u.In, func(r plan.Ref) bool { return r.Value == value(p, "total") })].Value = value(p, "weight")
			}, []string{"rank 0: task", "update/b", "divides by weight, which is no total of a commit"}},
			{"a gradient is not looked at by the commit", func(t *testing.T, p *plan.Plan) {
				m := &p.Ranks[0][find(t, p, 0, "commit step", 0)]
				m.In = m.In[:3]
			}, []string{"rank 0: task", "no commit looks whether"}},
			{"the commit is over some of the workers", func(t *testing.T, p *plan.Plan) {
				p.Groups = append(p.Groups, []int{0, 1}, []int{2})
				for r := range p.Ranks {
					m := &p.Ranks[r][find(t, p, r, "commit step", 0)]
					m.Group = 1 + r/2
					m.Lane.ID = m.Group
					m.After = append(m.After, plan.Dep{Task: find(t, p, r, "collective w", 0)})
				}
			}, []string{"rank 2: task", "commit step", "total weight lacks the batch of ranks 0 1"}},
			{"a parameter from the gradient of another", func(t *testing.T, p *plan.Plan) {
				u := &p.Ranks[1][find(t, p, 1, "compute update/w", 0)]
				u.In[1] = p.Ranks[1][find(t, p, 1, "collective b", 0)].In[0]
			}, []string{"rank 1: task 7 (compute update/w)", "the gradient of another parameter"}},
			{"groups disagree on shapes", func(t *testing.T, p *plan.Plan) {
				i := find(t, p, 1, "collective w", 0)
				p.Ranks[1][i].In = p.Ranks[1][find(t, p, 1, "collective b", 0)].In
				p.Ranks[1][i].Out = p.Ranks[1][i].In
			}, []string{"rank 1: task", "allreduce w", "f32[3] f32[3]", "f32[6 3] f32[6 3]"}},
			{"a tag is used twice", func(t *testing.T, p *plan.Plan) {
				for r := range p.Ranks {
					p.Ranks[r][find(t, p, r, "collective w", 0)].Tag = p.Ranks[r][find(t, p, r, "collective b", 0)].Tag
				}
			}, []string{"rank 0: task", "allreduce w", "tag 1 is taken by task", "allreduce b"}},
			{"a task waits for a later one", func(t *testing.T, p *plan.Plan) {
				i := find(t, p, 0, "collective b", 0)
				p.Ranks[0][i].After = []plan.Dep{{Task: i + 1}}
			}, []string{"rank 0: task", "allreduce b", "does not come before it"}},
			{"the reader's work is on the device", func(_ *testing.T, p *plan.Plan) {
				p.Ranks[0][0].Lane = plan.Lane{Kind: plan.Device}
			}, []string{"rank 0: task 0 (feed batch)", "is on lane device: want reader"}},
			{
				"two owners", func(_ *testing.T, p *plan.Plan) { p.Holdings[2].Owner = true },
				[]string{"two owners", "make one of them a copy"},
			},
			{
				"nobody owns", func(_ *testing.T, p *plan.Plan) { p.Holdings[0].Owner = false },
				[]string{"nobody owns elements 0..3 of b"},
			},
			{
				"a rank does not feed", func(_ *testing.T, p *plan.Plan) { drop(p, 1, 0) },
				[]string{"rank 1: task 0 (compute forward/b)", "reads x, which nothing before it has written"},
			},
		},
		"ps": {
			{"a push is missing", func(t *testing.T, p *plan.Plan) {
				drop(p, 1, find(t, p, 1, "push store1", 0))
			}, []string{"rank 1: never gives store 1 its gradient of w"}},
			{"a push twice", func(t *testing.T, p *plan.Plan) {
				i := find(t, p, 1, "push store1", 0)
				again := p.Ranks[1][i]
				again.Tag = 99
				j := find(t, p, 1, "commit step", 0)
				p.Ranks[1][j].After = append(p.Ranks[1][j].After, plan.Dep{Task: i})
				commit := p.Ranks[1][j]
				commit.After = append(slices.Clone(commit.After), plan.Dep{Task: j})
				p.Ranks[1] = append(p.Ranks[1][:j:j], again, commit)
				for k := range p.Ranks[1] {
					for m, d := range p.Ranks[1][k].After {
						if d.Lag == 1 {
							p.Ranks[1][k].After[m].Task = j + 1
						}
					}
				}
			}, []string{"rank 1: task", "push store1", "a second time", "the batch of rank 1"}},
			{"a reduced gradient is pushed", func(t *testing.T, p *plan.Plan) {
				for r := range p.Ranks {
					for i := range p.Ranks[r] {
						if task := &p.Ranks[r][i]; task.Kind == plan.Push && task.Name == "store1" {
							*task = plan.Task{
								Kind: plan.Collective, Op: plan.AllReduce, Name: "w", In: task.In[:1], Out: task.In[:1],
								Lane: plan.Lane{Kind: plan.Group}, Tag: 98, After: task.After,
							}
							push := p.Ranks[r][find(t, p, r, "push store0", 1)]
							push.After = append(slices.Clone(push.After), plan.Dep{Task: i})
							p.Ranks[r][find(t, p, r, "push store0", 1)] = push
							swap(p, r, i, find(t, p, r, "push store0", 1))
							j := find(t, p, r, "push store0", 1)
							p.Ranks[r][j].After = []plan.Dep{{Task: j - 1}}
							p.Ranks[r][j-1].After = []plan.Dep{{Task: j - 2}}
						}
					}
				}
			}, []string{"rank 1: task", "push store0", "a second time", "the batch of ranks 0 1"}},
			{"the commit does not wait for a push", func(t *testing.T, p *plan.Plan) {
				m := &p.Ranks[0][find(t, p, 0, "commit step", 0)]
				push := find(t, p, 0, "push store1", 0)
				m.After = slices.DeleteFunc(m.After, func(d plan.Dep) bool { return d.Task == push })
			}, []string{"rank 0: task", "push store1", "no commit comes after it"}},
			{"the pull does not wait for the step before", func(t *testing.T, p *plan.Plan) {
				pull := &p.Ranks[1][find(t, p, 1, "pull store1", 0)]
				pull.After = slices.DeleteFunc(pull.After, func(d plan.Dep) bool { return d.Lag == 1 })
			}, []string{"rank 1: task", "pull store1", "as it was two steps ago"}},
			{"compute does not wait for one of two pulls", func(t *testing.T, p *plan.Plan) {
				f := &p.Ranks[1][find(t, p, 1, "compute forward/b", 0)]
				pull := find(t, p, 1, "pull store1", 0)
				f.After = slices.DeleteFunc(f.After, func(d plan.Dep) bool { return d.Task == pull })
			}, []string{"rank 1: task", "compute forward/b", "may read a stale w", "store 1"}},
			{"a pull is missing", func(t *testing.T, p *plan.Plan) {
				drop(p, 0, find(t, p, 0, "pull store0", 0))
			}, []string{"rank 0: task", "compute forward/b", "may read a stale w", "store 0"}},
			{"a gap between the stores", func(_ *testing.T, p *plan.Plan) {
				h := &p.Holdings[len(p.Holdings)-1]
				h.Lo++
			}, []string{"nobody owns elements", "of w"}},
			{"an overlap of the stores", func(_ *testing.T, p *plan.Plan) {
				h := &p.Holdings[len(p.Holdings)-1]
				h.Lo--
			}, []string{"of w", "two owners"}},
			{"a push that is only queued", func(t *testing.T, p *plan.Plan) {
				p.Ranks[0][find(t, p, 0, "push store0", 0)].Done = plan.Queued
			}, []string{"rank 0: task", "push store0", "ends when queued", "must be stored"}},
			{"a pull after the commit", func(t *testing.T, p *plan.Plan) {
				again := p.Ranks[0][find(t, p, 0, "pull store0", 0)]
				again.Tag = 99
				p.Ranks[0] = append(p.Ranks[0], again)
			}, []string{"rank 0: task 9 (pull store0)", "may read store 0 when this step has changed it already"}},
			{"a pushed gradient is not looked at by the commit", func(t *testing.T, p *plan.Plan) {
				m := &p.Ranks[1][find(t, p, 1, "commit step", 0)]
				m.In = m.In[:3]
			}, []string{"rank 1: task", "push store", "no commit looks whether"}},
			{"a tag of a push is that of a pull", func(t *testing.T, p *plan.Plan) {
				p.Ranks[0][find(t, p, 0, "push store0", 0)].Tag = p.Ranks[0][find(t, p, 0, "pull store1", 0)].Tag
			}, []string{"rank 0: task 4 (push store0)", "is taken by task 2 (pull store1)"}},
			{"no commit at all", func(t *testing.T, p *plan.Plan) {
				for r := range p.Ranks {
					drop(p, r, find(t, p, r, "commit step", 0))
				}
			}, []string{"rank 0: task", "push store0", "no commit comes after it"}},
			{"a push to a store without a part", func(t *testing.T, p *plan.Plan) {
				push := &p.Ranks[1][find(t, p, 1, "push store1", 0)]
				push.In = append(slices.Clone(push.In), p.Ranks[1][find(t, p, 1, "push store0", 0)].In...)
			}, []string{"rank 1: task", "push store1", "store 1 owns no part of b"}},
		},
	}
	step := steps(t)["softmax"]
	for kind, list := range faults {
		c := strategy.Cluster{Workers: 3, Bucket: 1}
		if kind == "ps" {
			c = strategy.Cluster{Workers: 2, Servers: 2}
		}
		for _, f := range list {
			t.Run(kind+"/"+f.name, func(t *testing.T) {
				build, err := strategy.ByName(kind)
				if err != nil {
					t.Fatal(err)
				}
				program, err := build(step, c)
				if err != nil {
					t.Fatal(err)
				}
				p := program.Plans["step"]
				f.plant(t, p)
				expect(t, check.Plan(p), f.want, p)
			})
		}
	}
}

// TestTableFaults does as TestPlantedFaults with tables.
func TestTableFaults(t *testing.T) {
	step := steps(t)["sparse"]
	for _, f := range []struct {
		name  string
		make  strategy.Strategy
		plant func(t *testing.T, p *plan.Plan)
		want  []string
	}{
		{"a store without its rows", strategy.PS, func(_ *testing.T, p *plan.Plan) {
			i := slices.IndexFunc(p.Holdings, func(h plan.Holding) bool { return h.Store == 1 && h.Hi == 0 })
			p.Holdings = slices.Delete(p.Holdings, i, i+1)
		}, []string{"nobody owns the rows on stores 1..2"}},
		{"keys without rows", strategy.PS, func(_ *testing.T, p *plan.Plan) {
			for i := range p.Ranks[1] {
				if push := &p.Ranks[1][i]; push.Kind == plan.Push && len(push.In) == 2 {
					push.In = push.In[:1]
				}
			}
		}, []string{"rank 1: task", "push store1", "the last keys have no rows after them"}},
		{"rows named by no keys", strategy.PS, func(t *testing.T, p *plan.Plan) {
			pull := &p.Ranks[0][find(t, p, 0, "pull store1", 0)]
			pull.In[0] = pull.Out[len(pull.Out)-1]
		}, []string{"rank 0: task 2 (pull store1)", "want parameters out first"}},
		{"merged rows with local keys", strategy.AllReduce, func(_ *testing.T, p *plan.Plan) {
			all := slices.IndexFunc(p.Ranks[0], func(o plan.Task) bool { return o.Op == plan.AllGatherRows })
			for i := range p.Ranks[0] {
				if u := &p.Ranks[0][i]; p.Segs[u.Seg].Update != plan.NoState && len(u.In) > 1 && u.In[1] == p.Ranks[0][all].Out[0] {
					u.In[1] = p.Ranks[0][all].In[0]
				}
			}
		}, []string{"rank 0: task", "compute update/", ".keys, which lacks the batch of rank 1"}},
	} {
		t.Run(f.name, func(t *testing.T) {
			c := strategy.Cluster{Workers: 2, Servers: 2}
			if f.name == "merged rows with local keys" {
				c.Servers = 0
			}
			program, err := f.make(step, c)
			if err != nil {
				t.Fatal(err)
			}
			p := program.Plans["step"]
			f.plant(t, p)
			expect(t, check.Plan(p), f.want, p)
		})
	}
}

// TestWindowOfOne: with one step in flight, nothing needs to wait for the step
// before.
func TestWindowOfOne(t *testing.T) {
	program, err := strategy.PS(steps(t)["ctr"], strategy.Cluster{Workers: 2, Servers: 2})
	if err != nil {
		t.Fatal(err)
	}
	p := program.Plans["step"]
	p.Window = 1
	for r := range p.Ranks {
		for i := range p.Ranks[r] {
			p.Ranks[r][i].After = slices.DeleteFunc(p.Ranks[r][i].After, func(d plan.Dep) bool { return d.Lag > 0 })
		}
	}
	if err := check.Plan(p); err != nil {
		t.Error(err)
	}
}

// expect fails unless one finding says all that is wanted.
func expect(t *testing.T, err error, want []string, p *plan.Plan) {
	t.Helper()
	if err == nil {
		t.Fatalf("the fault was not found:\n%s", plan.Format(p))
	}
	if _, ok := errors.AsType[*check.Finding](err); !ok {
		t.Fatalf("%T is no finding", err)
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(line, part) }) {
			return
		}
	}
	t.Errorf("no finding says all of %s:\n%v\n%s", fmt.Sprintf("%q", want), err, plan.Format(p))
}
