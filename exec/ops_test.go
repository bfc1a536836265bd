package exec_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// outputs collects copies of named values of each step.
func outputs(names ...string) (map[string][][]float64, func(int64, func(string) *tensor.Tensor) error) {
	got := map[string][][]float64{}
	return got, func(_ int64, get func(string) *tensor.Tensor) error {
		for _, n := range names {
			got[n] = append(got[n], slices.Clone(get(n).F64()))
		}
		return nil
	}
}

// from is a segment that writes f(rank, step, i) to element i of each output,
// after it was given size(rank, step) elements if that is not nil.
func from(size func(rank int, step int64) []int, f func(rank int, step int64, i int) float64) func(int) run {
	return func(rank int) run {
		return func(step int64, _, out []*tensor.Tensor) error {
			for _, o := range out {
				if size != nil {
					o.Resize(size(rank, step)...)
				}
				if o.DType() != tensor.F64 {
					continue
				}
				for i := range o.F64() {
					o.F64()[i] = f(rank, step, i)
				}
			}
			return nil
		}
	}
}

// A value whose rows the batch decides crosses from one rank to another with
// its shape, also when it is empty.
func TestSendRecvDynamic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDraft(2, 2)
		v := d.value("v", plan.Act, plan.NoState, tensor.Dynamic, 2)
		r := d.value("r", plan.Act, plan.NoState, tensor.Dynamic, 2)
		size := func(_ int, step int64) []int { return []int{int(4-step) * int(step%2), 2} }
		d.add([]int{0}, d.compute("make", nil, []plan.Ref{v}, from(size, func(_ int, s int64, i int) float64 { return float64(10*s) + float64(i) })))
		d.add([]int{0}, plan.Task{Kind: plan.Send, Name: "send", Peer: 1, Tag: 4, In: []plan.Ref{v}, Lane: plan.LinkLane(1, false)}, "make")
		d.add([]int{1}, plan.Task{Kind: plan.Recv, Name: "recv", Peer: 0, Tag: 4, Out: []plan.Ref{r}, Lane: plan.LinkLane(0, true)})
		w := mem.NewNetwork(2)
		cfg := d.config(1, w)
		var got []string
		cfg.OnOutput = func(_ int64, get func(string) *tensor.Tensor) error {
			got = append(got, fmt.Sprint(get("r").Shape(), get("r").F64()))
			return nil
		}
		_, errs := runAll(t, w, 4, d.config(0, w), cfg)
		must(t, errs)
		if d := cmp.Diff([]string{"[0 2] []", "[3 2] [10 11 12 13 14 15]", "[0 2] []", "[1 2] [30 31]"}, got); d != "" {
			t.Error(d)
		}
	})
}

// Each collective does on values what plan.Op says, also where In or Out hold
// only this rank's part.
func TestCollectives(t *testing.T) {
	const ranks = 3
	element := func(rank int, step int64, i int) float64 {
		return float64(100*(rank+1)) + float64(10*step) + float64(i)
	}
	sum := func(step int64, i int) (v float64) {
		for r := range ranks {
			v += element(r, step, i)
		}
		return v
	}
	// A value of 6 elements: two to each rank.
	for _, c := range []struct {
		op      plan.Op
		in, out int
		inPlace bool
		by      plan.Algorithm
		want    func(rank int, step int64, i int) float64
	}{
		{op: plan.AllReduce, in: 6, out: 6, want: func(_ int, s int64, i int) float64 { return sum(s, i) }},
		{op: plan.AllReduce, in: 3000, out: 3000, want: func(_ int, s int64, i int) float64 { return sum(s, i) }}, // round a ring
		{op: plan.AllReduce, in: 6, inPlace: true, want: func(_ int, s int64, i int) float64 { return sum(s, i) }},
		{op: plan.AllReduce, in: 60, inPlace: true, by: plan.ByHalving, want: func(_ int, s int64, i int) float64 { return sum(s, i) }},
		{op: plan.AllReduce, in: 60, inPlace: true, by: plan.ByDoubling, want: func(_ int, s int64, i int) float64 { return sum(s, i) }},
		{op: plan.AllReduce, in: 60, inPlace: true, by: plan.ByTree, want: func(_ int, s int64, i int) float64 { return sum(s, i) }},
		{op: plan.AllReduce, in: 60, inPlace: true, by: plan.ByHosts, want: func(_ int, s int64, i int) float64 { return sum(s, i) }},
		{op: plan.Broadcast, in: 6, out: 6, want: func(_ int, s int64, i int) float64 { return element(0, s, i) }},
		{op: plan.ReduceScatter, in: 6, out: 2, want: func(r int, s int64, i int) float64 { return sum(s, 2*r+i) }},
		{op: plan.AllGather, in: 2, out: 6, want: func(_ int, s int64, i int) float64 { return element(i/2, s, i%2) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDraft(ranks, 2)
			in := d.value("in", plan.Grad, plan.NoState, c.in)
			out, name := in, "in"
			if !c.inPlace {
				out, name = d.value("out", plan.Grad, plan.NoState, c.out), "out"
			}
			all := []int{0, 1, 2}
			d.Hosts = [][]int{{0, 1}, {2}}
			d.add(all, d.compute("make", nil, []plan.Ref{in}, from(nil, element)))
			d.add(all, plan.Task{Kind: plan.Collective, Name: "it", Op: c.op, Algorithm: c.by, In: []plan.Ref{in}, Out: []plan.Ref{out}, Lane: plan.Lane{Kind: plan.Group}}, "make")
			w := mem.NewNetwork(ranks, mem.Options{Link: uneven})
			var cfgs []exec.Config
			var got []map[string][][]float64
			for r := range ranks {
				cfg := d.config(r, w)
				g, f := outputs(name)
				cfg.OnOutput = f
				cfgs, got = append(cfgs, cfg), append(got, g)
			}
			_, errs := runAll(t, w, 3, cfgs...)
			must(t, errs)
			for r, e := range w.Endpoints() {
				if st := e.Stats(); c.op == plan.AllReduce && st.BytesSent != 3*sent(t, c.by, r, c.in) {
					t.Errorf("%v by %v: rank %d sent %d bytes in 3 steps, want %d a step", c.op, c.by, r, st.BytesSent, sent(t, c.by, r, c.in))
				}
			}
			for r := range ranks {
				for s, v := range got[r][name] {
					for i := range v {
						if want := c.want(r, int64(s), i); v[i] != want {
							t.Errorf("%v: rank %d step %d element %d is %v, want %v", c.op, r, s, i, v[i], want)
						}
					}
				}
			}
		})
	}
}

// Rows of equal keys are summed over ranks.
func TestRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDraft(2, 2)
		k, g := d.value("k", plan.Key, plan.NoState, tensor.Dynamic), d.value("g", plan.Grad, plan.NoState, tensor.Dynamic, 1)
		sk, sg := d.value("sk", plan.Key, plan.NoState, tensor.Dynamic), d.value("sg", plan.Grad, plan.NoState, tensor.Dynamic, 1)
		all := []int{0, 1}
		d.add(all, d.compute("make", nil, []plan.Ref{k, g}, func(rank int) run {
			return func(step int64, _, out []*tensor.Tensor) error {
				out[0].Resize(2)
				out[1].Resize(2, 1)
				copy(out[0].I64(), []int64{step, 7 + int64(rank)})
				copy(out[1].F64(), []float64{1, float64(2 + rank)})
				return nil
			}
		}))
		d.add(all, plan.Task{
			Kind: plan.Collective, Op: plan.AllGatherRows, Name: "sum", In: []plan.Ref{k, g}, Out: []plan.Ref{sk, sg},
			Lane: plan.Lane{Kind: plan.Group},
		}, "make")
		w := mem.NewNetwork(2)
		var got []string
		cfg := d.config(1, w)
		cfg.OnOutput = func(_ int64, get func(string) *tensor.Tensor) error {
			got = append(got, fmt.Sprint(get("sk").I64(), get("sg").F64(), get("sg").Shape()))
			return nil
		}
		_, errs := runAll(t, w, 2, d.config(0, w), cfg)
		must(t, errs)
		if d := cmp.Diff([]string{"[0 7 8] [2 2 3] [3 1]", "[1 7 8] [2 2 3] [3 1]"}, got); d != "" {
			t.Error(d)
		}
	})
}

// Micro-batches of one value have memory of their own, but share parameters,
// and Add sums them.
func TestAddMicroBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDraft(1, 2)
		g, sum := d.value("g", plan.Grad, plan.NoState, tensor.Dynamic), d.value("sum", plan.Grad, plan.NoState, tensor.Dynamic)
		w := d.value("w", plan.Param, 0, 1)
		var parts []plan.Ref
		for m := range 3 {
			r, p := plan.Ref{Value: g.Value, Micro: m}, plan.Ref{Value: w.Value, Micro: m}
			parts = append(parts, r)
			d.add([]int{0}, d.compute(fmt.Sprint("part", m), []plan.Ref{p}, []plan.Ref{r}, func(int) run {
				return func(step int64, in, out []*tensor.Tensor) error {
					out[0].Resize(2)
					out[0].F64()[0], out[0].F64()[1] = float64(m)+float64(step), in[0].Scalar()
					return nil
				}
			}))
		}
		d.add([]int{0}, plan.Task{Kind: plan.Add, Name: "add", In: parts, Out: []plan.Ref{sum}, Lane: plan.Lane{Kind: plan.Device}})
		cfg := d.config(0, nil)
		cfg.State["w"] = tensor.From([]float64{11}, 1)
		got, f := outputs("sum")
		cfg.OnOutput = f
		_, errs := runAll(t, nil, 2, cfg)
		must(t, errs)
		if d := cmp.Diff([][]float64{{3, 33}, {6, 33}}, got["sum"]); d != "" {
			t.Error(d)
		}
	})
}

// fakeStores records what it is asked, and fills rows with their keys.
type fakeStores struct {
	mu  sync.Mutex
	log []string
	err error
}

func (f *fakeStores) say(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *fakeStores) describe(p ps.Part) string {
	if p.Keys != nil {
		return fmt.Sprintf(" %d:keys%v rows%v", p.State, p.Keys.I64(), p.Data.Shape())
	}
	return fmt.Sprintf(" %d:[%d %d) of %v", p.State, p.Lo, p.Hi, p.Data.Shape())
}

func (f *fakeStores) Pull(_ context.Context, store int, step int64, parts []ps.Part) error {
	line := fmt.Sprintf("pull store %d step %d", store, step)
	for _, p := range parts {
		line += f.describe(p)
		if p.Keys == nil {
			continue
		}
		for i, k := range p.Keys.I64() {
			if int(k)%2 == store {
				p.Data.F64()[i] = float64(k)
			}
		}
	}
	f.say("%s", line)
	return f.err
}

func (f *fakeStores) Push(_ context.Context, store int, step int64, parts []ps.Part) error {
	line := fmt.Sprintf("push store %d step %d", store, step)
	for _, p := range parts {
		line += f.describe(p)
	}
	f.say("%s", line)
	return nil
}

func (f *fakeStores) Committed(step int64, weight float64) {
	f.say("committed step %d weight %v", step, weight)
}

// storePlan pulls a dense parameter and rows from two stores, and pushes
// gradients of both.
func storePlan() *draft {
	d := newDraft(1, 2)
	w := d.value("w", plan.Param, 0, 5)
	table := d.value("table", plan.Param, 0, 100, 1)
	keys := d.value("keys", plan.Key, table.Value, tensor.Dynamic)
	rows := d.value("rows", plan.Act, table.Value, tensor.Dynamic, 1)
	grad := d.value("dw", plan.Grad, w.Value, 5)
	gradRows := d.value("drows", plan.Grad, table.Value, tensor.Dynamic, 1)
	weight := d.value("weight", plan.Scalar, plan.NoState)
	d.Stores = []plan.StoreInfo{{Name: "a"}, {Name: "b"}}
	for s := range 2 {
		d.Holdings = append(d.Holdings,
			plan.Holding{State: w.Value, Lo: 3 * s, Hi: 3 + 2*s, Rank: -1, Store: s, Owner: true},
			plan.Holding{State: table.Value, Rank: -1, Store: s, Owner: true})
	}
	all := []int{0}
	d.add(all, plan.Task{Kind: plan.Feed, Name: "feed", Out: []plan.Ref{keys}, Lane: plan.Lane{Kind: plan.Reader}})
	for s := range 2 {
		d.add(all, plan.Task{
			Kind: plan.Pull, Name: fmt.Sprint("pull", s), Store: s, In: []plan.Ref{keys}, Out: []plan.Ref{w, rows},
			Lane: plan.Lane{Kind: plan.Store, ID: s},
		}, "feed")
	}
	d.add(all, d.compute("grad", []plan.Ref{w, rows}, []plan.Ref{grad, gradRows, weight}, func(int) run {
		return func(_ int64, in, out []*tensor.Tensor) error {
			out[1].Resize(in[1].Shape()...)
			copy(out[1].F64(), in[1].F64())
			out[2].SetScalar(3)
			return nil
		}
	}), "pull0", "pull1")
	for s := range 2 {
		d.add(all, plan.Task{
			Kind: plan.Push, Name: fmt.Sprint("push", s), Store: s, In: []plan.Ref{grad, keys, gradRows},
			Lane: plan.Lane{Kind: plan.Store, ID: s},
		}, "grad")
	}
	d.add(all, plan.Task{
		Kind: plan.Commit, Name: "commit", In: []plan.Ref{weight, weight}, Out: []plan.Ref{weight, weight},
		Lane: plan.Lane{Kind: plan.Group},
	}, "push0", "push1")
	return d
}

// Pulls and pushes hand the client what the plan's layout says, rows come sized
// to the keys though two stores fill them at once, and a verdict follows.
func TestStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := storePlan()
		cfg := d.config(0, nil)
		stores := &fakeStores{}
		cfg.Stores = stores
		cfg.Feeder = feedFunc(func(step int64, out []*tensor.Tensor) error {
			keys := [][]int64{{2, 3, 8}, {5}}[step]
			out[0].Resize(len(keys))
			copy(out[0].I64(), keys)
			return nil
		})
		got, f := outputs("rows", "drows")
		cfg.OnOutput = f
		_, errs := runAll(t, nil, 2, cfg)
		must(t, errs)
		want := [][]float64{{2, 3, 8}, {5}}
		if d := cmp.Diff(map[string][][]float64{"rows": want, "drows": want}, got); d != "" {
			t.Error(d)
		}
		slices.Sort(stores.log)
		var wantLog []string
		for s, keys := range []string{"1:keys[2 3 8] rows[3 1]", "1:keys[5] rows[1 1]"} {
			wantLog = append(wantLog, fmt.Sprintf("committed step %d weight 3", s))
			for _, verb := range []string{"pull", "push"} {
				wantLog = append(wantLog, fmt.Sprintf("%s store 0 step %d 0:[0 3) of [5] %s", verb, s, keys),
					fmt.Sprintf("%s store 1 step %d 0:[3 5) of [5] %s", verb, s, keys))
			}
		}
		slices.Sort(wantLog)
		if d := cmp.Diff(wantLog, stores.log); d != "" {
			t.Error(d)
		}
	})
}

// New refuses what cannot run and names the task.
func TestNewRefuses(t *testing.T) {
	w := mem.NewNetwork(2)
	defer closeAll(w)
	for want, edit := range map[string]func(*exec.Config){
		"no plan for rank 2":       func(c *exec.Config) { c.Rank = 2 },
		"window 0":                 func(c *exec.Config) { c.Plan.Window = 0 },
		"no Feeder":                func(c *exec.Config) { c.Feeder = nil },
		"no Step or no Backend":    func(c *exec.Config) { c.Backend = nil },
		"no segment 9":             func(c *exec.Config) { c.Plan.Ranks[0][1].Seg = 9 },
		"no group 4":               func(c *exec.Config) { c.Plan.Ranks[0][2].Group = 4 },
		"rank 0 is not in group":   func(c *exec.Config) { c.Plan.Groups[0] = []int{1} },
		"is in no arena":           func(c *exec.Config) { c.Plan.Ranks[0][2].Order = plan.Tree },
		"no endpoint":              func(c *exec.Config) { c.Endpoint = nil },
		"want 3 and 1":             func(c *exec.Config) { c.Plan.Ranks[0][4].In = c.Plan.Ranks[0][4].In[1:] },
		"no value 77":              func(c *exec.Config) { c.Plan.Ranks[0][0].Out[0].Value = 77 },
		"no collective":            func(c *exec.Config) { c.Plan.Ranks[0][2].Op = plan.NoOp },
		"no such kind":             func(c *exec.Config) { c.Plan.Ranks[0][2].Kind = 99 },
		`task 1 compute "forward"`: func(c *exec.Config) { c.Plan.Values[0].DType = tensor.F32 },
		`state "w" is f32 [2]`:     func(c *exec.Config) { c.State["w"] = tensor.New(tensor.F32, 2) },
		"no Stores":                func(c *exec.Config) { *c = storePlan().config(0, nil); c.Feeder = feedFunc(nil) },
		"holds nothing of \"w\"": func(c *exec.Config) {
			*c = storePlan().config(0, nil)
			c.Feeder, c.Stores, c.Plan.Holdings = feedFunc(nil), &fakeStores{}, nil
		},
	} {
		cfg := newLearn(2, 2).config(0, w)
		edit(&cfg)
		e, err := exec.New(cfg)
		if err == nil {
			t.Errorf("%s: accepted", want)
			_ = e.Close()
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in %q", want, err)
		}
	}
}

// An error of a store names the task.
func TestStoreErrorNamesTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := storePlan().config(0, nil)
		cfg.Feeder = feedFunc(func(int64, []*tensor.Tensor) error { time.Sleep(time.Second); return nil })
		late := errors.New("store is late")
		cfg.Stores = &fakeStores{err: late}
		_, errs := runAll(t, nil, 1, cfg)
		if te, _ := taskError(t, errs[0]); !errors.Is(te, late) || te.Kind != plan.Pull {
			t.Error(te)
		}
	})
}

// sent is what index r of three sends by an algorithm for so many float64, the last
// two hosts apart: by its schedule, and an opening of 128 bytes to each partner.
func sent(t *testing.T, by plan.Algorithm, r, elems int) int64 {
	t.Helper()
	hosts, err := collective.HierarchicalAllReduce([][]int{{0, 1}, {2}})
	if err != nil {
		t.Fatal(err)
	}
	s := map[plan.Algorithm]*collective.Schedule{
		plan.ByRing: collective.RingAllReduce(3), plan.ByHalving: collective.HalvingAllReduce(3),
		plan.ByDoubling: collective.DoublingAllReduce(3), plan.ByTree: collective.TreeAllReduce(3), plan.ByHosts: hosts,
	}[by]
	partners := map[int]bool{}
	for _, step := range s.Ranks[r] {
		if step.To != collective.Nobody {
			partners[step.To] = true
		}
	}
	bytes, _ := s.Traffic(r, elems, 8)
	return bytes + int64(128*len(partners))
}
