package strategy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
)

// sums lists what a worker's all-reduces sum, by name.
func sums(p *plan.Plan) (buckets [][]string) {
	for _, task := range p.Ranks[0] {
		if task.Op == plan.AllReduce {
			var names []string
			for _, r := range task.In {
				names = append(names, p.Values[r.Value].Name)
			}
			buckets = append(buckets, names)
		}
	}
	return buckets
}

// made lists the dense gradients in the order in which the backward pass makes them.
func made(p *plan.Plan) (names []string) {
	for _, task := range p.Ranks[0] {
		for _, r := range task.Out {
			v := &p.Values[r.Value]
			if task.Kind == plan.Compute && v.Class == plan.Grad && v.Arena != 0 {
				names = append(names, v.Name)
			}
		}
	}
	return names
}

// TestBucketsCloseWhenFull: the gradients of a small network, of 12, 48, 16, 80, 20
// and 120 bytes in the order of the backward pass, in buckets of several sizes.
func TestBucketsCloseWhenFull(t *testing.T) {
	for _, c := range []struct {
		limit int
		want  []int // gradients in each bucket
	}{
		{1, []int{1, 1, 1, 1, 1, 1}},
		{60, []int{2, 1, 1, 1, 1}}, // 12+48 fill it
		{64, []int{2, 1, 1, 1, 1}}, // 60 do not, and 16 more are too many
		{100, []int{3, 2, 1}},      // 76, 100, and one that is larger
		{1000, []int{6}},           // all
		{0, []int{6}},              // the default
		{strategy.BucketDefault, []int{6}},
	} {
		program, err := strategy.AllReduce(steps(t)["mlp"], strategy.Cluster{Workers: 2, Bucket: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		p := program.Plans[strategy.StepPlan]
		var got []int
		for _, b := range sums(p) {
			got = append(got, len(b))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("buckets of %d bytes (-want +got):\n%s", c.limit, d)
		}
		if d := cmp.Diff(made(p), slices.Concat(sums(p)...)); d != "" {
			t.Errorf("buckets of %d bytes are not in the order of the backward pass (-made +summed):\n%s", c.limit, d)
		}
	}
}

// TestBucketsLeaveDuringBackward: a bucket waits for the segment that makes its last
// gradient, and no segment of the backward pass waits for a bucket, at once or by way
// of another task: so sending and computing overlap.
func TestBucketsLeaveDuringBackward(t *testing.T) {
	program, err := strategy.AllReduce(steps(t)["mlp"], strategy.Cluster{Workers: 2, Bucket: 100})
	if err != nil {
		t.Fatal(err)
	}
	p := program.Plans[strategy.StepPlan]
	waits := func(task int) map[int]bool { // all that must have ended before it
		before := map[int]bool{}
		for queue := []int{task}; len(queue) > 0; queue = queue[1:] {
			for _, d := range p.Ranks[0][queue[0]].After {
				if !before[d.Task] {
					before[d.Task] = true
					queue = append(queue, d.Task)
				}
			}
		}
		return before
	}
	maker, backward := map[int]int{}, []int{} // tasks by the gradient they make
	var leaves []int                          // by bucket: the task that makes its last gradient
	for i, task := range p.Ranks[0] {
		switch {
		case task.Kind == plan.Compute && p.Segs[task.Seg].Update == plan.NoState:
			backward = append(backward, i)
			for _, r := range task.Out {
				maker[r.Value] = i
			}
			for j := range waits(i) {
				if p.Ranks[0][j].Kind == plan.Collective {
					t.Errorf("%s waits for the bucket %s", task.Name, p.Ranks[0][j].Name)
				}
			}
		case task.Kind == plan.Collective:
			leaves = append(leaves, maker[task.In[len(task.In)-1].Value])
			if d := cmp.Diff([]plan.Dep{{Task: leaves[len(leaves)-1]}}, task.After); d != "" {
				t.Errorf("bucket %s (-want +got):\n%s", task.Name, d)
			}
		}
	}
	if d := cmp.Diff([]int{backward[2], backward[4], backward[5]}, leaves); d != "" {
		t.Errorf("buckets leave after other segments (-want +got):\n%s", d)
	}
}

// TestPlantedBucketFaults plants faults in buckets.
func TestPlantedBucketFaults(t *testing.T) {
	reduce := func(p *plan.Plan, rank int) *plan.Task {
		return &p.Ranks[rank][slices.IndexFunc(p.Ranks[rank], func(t plan.Task) bool { return t.Op == plan.AllReduce })]
	}
	both := func(p *plan.Plan, change func(t *plan.Task)) {
		for r := range p.Ranks {
			change(reduce(p, r))
		}
	}
	for _, f := range []struct {
		name  string
		plant func(p *plan.Plan)
		want  []string
	}{
		{"a gradient is left out", func(p *plan.Plan) {
			both(p, func(t *plan.Task) { t.In, t.Out = t.In[1:], t.Out[1:] })
		}, []string{"rank 0: task", "update/b3", "lacks the batch of rank 1"}},
		{"a gradient within is left out", func(p *plan.Plan) {
			both(p, func(t *plan.Task) { t.In = slices.Delete(t.In, 2, 3); t.Out = t.In })
		}, []string{"rank 0: task", "must be one run of an arena"}},
		{"a gradient comes twice", func(p *plan.Plan) {
			both(p, func(t *plan.Task) { t.In = append(t.In, t.In[5]); t.Out = t.In })
		}, []string{"rank 0: task", "must be one run of an arena"}},
		{"another order", func(p *plan.Plan) {
			both(p, func(t *plan.Task) { t.In[0], t.In[1] = t.In[1], t.In[0]; t.Out = t.In })
		}, []string{"rank 0: task", "b3/grad begins at 0", "must be one run of an arena"}},
		{"one rank sums fewer", func(p *plan.Plan) {
			t := reduce(p, 1)
			t.In = t.In[:5]
			t.Out = t.In
		}, []string{"rank 1: task", "comes as number 1 on group 0"}},
		{"sums go elsewhere", func(p *plan.Plan) {
			both(p, func(t *plan.Task) { t.Out = slices.Clone(t.Out[:5]) })
		}, []string{"rank 0: task", "want the same in and out"}},
		{"a gap of a line", func(p *plan.Plan) {
			p.Values[reduce(p, 0).In[5].Value].Offset += 128
		}, []string{"rank 0: task", "w1/grad begins at", "must be one run of an arena"}},
		{"another arena", func(p *plan.Plan) {
			p.Values[reduce(p, 0).In[5].Value].Arena = 2
		}, []string{"rank 0: task", "in arena 2", "must be one run of an arena"}},
		{"another value in a gap", func(p *plan.Plan) {
			i := slices.IndexFunc(p.Values, func(v plan.Value) bool { return v.Name == "loss" })
			p.Values[i].Arena, p.Values[i].Offset = 1, 16
		}, []string{"rank 0: task", "lies between them"}},
		{"other gaps on one rank", func(p *plan.Plan) {
			t := reduce(p, 1)
			for i, r := range t.In { // twins in an arena of their own, without gaps
				twin := p.Values[r.Value]
				twin.Name, twin.Arena = twin.Name+"'", 2
				if i > 0 {
					before := &p.Values[len(p.Values)-1]
					twin.Offset = (before.Offset + before.Bytes() + 7) / 8 * 8
				}
				p.Values = append(p.Values, twin)
				t.In[i].Value = len(p.Values) - 1
			}
			t.Out = t.In
		}, []string{"rank 1: task", "comes as number 1 on group 0", "f32[4 3]+16 ", "f32[4 3]+64 "}},
	} {
		t.Run(f.name, func(t *testing.T) {
			program, err := strategy.AllReduce(steps(t)["mlp"], strategy.Cluster{Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			p := program.Plans["step"]
			f.plant(p)
			expect(t, check.Plan(p), f.want, p)
		})
	}
}
