package ps

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// planned is a step and a plan by hand: w in two ranges, b on store 0 only, a
// table on both, a slot, and a worker's copy.
func planned() (*graph.Step, *plan.Plan) {
	rule := optim.Rule{Kind: optim.Adagrad, LR: .1}
	variable := func(op graph.Op, name string, shape ...int) *graph.Node {
		return &graph.Node{Op: op, Name: name, DType: tensor.F32, Shape: shape, Attr: graph.Attr{Init: graph.Init{Kind: graph.Uniform, Scale: 1, Seed: 3}}}
	}
	step := &graph.Step{Params: []graph.Param{
		{Var: variable(graph.Variable, "w", 3, 2), Rule: rule},
		{Var: variable(graph.Table, "emb", 9, 4), Rule: rule, Keys: &graph.Node{}},
		{Var: variable(graph.Variable, "b", 2), Rule: rule},
	}}
	value := func(name string, class plan.Class) plan.Value {
		return plan.Value{Name: name, DType: tensor.F32, Class: class}
	}
	p := &plan.Plan{
		Stores: []plan.StoreInfo{{Name: "a"}, {Name: "b"}},
		Values: []plan.Value{value("x", plan.Act), value("b", plan.Param), value("emb", plan.Param), value("w", plan.Param), value("w/sum", plan.Slot)},
		Holdings: []plan.Holding{
			{State: 3, Lo: 0, Hi: 4, Rank: -1, Store: 0, Owner: true},
			{State: 3, Lo: 4, Hi: 6, Rank: -1, Store: 1, Owner: true},
			{State: 4, Lo: 0, Hi: 4, Rank: -1, Store: 0, Owner: true},
			{State: 2, Rank: -1, Store: 0, Owner: true},
			{State: 2, Rank: -1, Store: 1, Owner: true},
			{State: 1, Lo: 0, Hi: 2, Rank: -1, Store: 0, Owner: true},
			{State: 1, Lo: 2, Hi: 2, Rank: -1, Store: 1, Owner: true},
			{State: 3, Lo: 0, Hi: 6, Rank: 0, Store: -1},
		},
	}
	return step, p
}

// TestLayoutOf: holdings become states in order of index, without the empty
// range, the slots (they follow from the rule) and the copies of workers.
func TestLayoutOf(t *testing.T) {
	step, p := planned()
	got := map[int][]State{}
	for store := range 2 {
		l, err := LayoutOf(step, p, store)
		if err != nil {
			t.Fatal(err)
		}
		if l.Store != store || l.Stores != 2 {
			t.Errorf("store %d of %d", l.Store, l.Stores)
		}
		got[store] = l.States
	}
	state := func(index int, table bool, lo, hi int) State {
		v := step.Params[map[int]int{1: 2, 2: 1, 3: 0}[index]]
		return State{
			Index: index, Name: v.Var.Name, DType: tensor.F32, Shape: v.Var.Shape, Table: table, Lo: lo, Hi: hi,
			Rule: v.Rule, Init: v.Var.Attr.Init, Slots: v.Rule.Slots(),
		}
	}
	want := map[int][]State{
		0: {state(1, false, 0, 2), state(2, true, 0, 0), state(3, false, 0, 4)},
		1: {state(2, true, 0, 0), state(3, false, 4, 6)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLayoutOfRefuses plans that a store could not serve.
func TestLayoutOfRefuses(t *testing.T) {
	for text, change := range map[string]func(*graph.Step, *plan.Plan){
		"no parameter of the step": func(_ *graph.Step, p *plan.Plan) { p.Values[1].Name = "other" },
		"ascending order":          func(_ *graph.Step, p *plan.Plan) { p.Holdings[1].Store = 0 },
		"holds [0, 7) of 6":        func(_ *graph.Step, p *plan.Plan) { p.Holdings[0].Hi = 7 },
		"want [rows dim]":          func(s *graph.Step, _ *plan.Plan) { s.Params[1].Var.Shape = tensor.Shape{36} },
		"dynamic":                  func(s *graph.Step, _ *plan.Plan) { s.Params[0].Var.Shape[0] = tensor.Dynamic },
		"dtype i64":                func(s *graph.Step, _ *plan.Plan) { s.Params[0].Var.DType = tensor.I64 },
		"lr is -1":                 func(s *graph.Step, _ *plan.Plan) { s.Params[0].Rule.LR = -1 },
		"lamb divides by":          func(s *graph.Step, _ *plan.Plan) { s.Params[0].Rule = optim.Rule{Kind: optim.LAMB, LR: 1} },
		"clip_norm needs":          func(s *graph.Step, _ *plan.Plan) { s.Params[0].Rule.ClipNorm = 1 },
		"use more servers": func(s *graph.Step, p *plan.Plan) {
			s.Params[0].Var.Shape[0], p.Holdings[0].Hi = 1<<30, 1<<29
		},
	} {
		step, p := planned()
		change(step, p)
		if _, err := LayoutOf(step, p, 0); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want an error with %q, got %v", text, err)
		}
	}
}

// TestStoreOf: the hash is part of the format, so its values are pinned; ids in
// a row, and ids with a stride, spread evenly.
func TestStoreOf(t *testing.T) {
	// The first numbers of splitmix64 from seed 0, as published with it.
	const golden = int64(-0x61c8864680b583eb)
	if mix(0) != 0xe220a8397b1dcdaf || mix(golden) != 0x6e789e6aa1b965f4 {
		t.Errorf("mix is not splitmix64: %x %x", mix(0), mix(golden))
	}
	var got []int
	for _, id := range []int64{0, 1, 2, 3, 1000, 1 << 40} {
		got = append(got, StoreOf(id, 1000))
	}
	if diff := cmp.Diff([]int{883, 566, 591, 113, 234, 124}, got); diff != "" {
		t.Errorf("the hash changed (-want +got):\n%s", diff)
	}
	for _, stores := range []int{1, 2, 3, 7, 16} {
		for _, stride := range []int64{1, 16, 1000} {
			count := make([]int, stores)
			const n = 20000
			for i := range int64(n) {
				count[StoreOf(i*stride, stores)]++
			}
			for s, c := range count {
				if mean := n / stores; c < mean*9/10 || c > mean*11/10 {
					t.Errorf("%d stores, stride %d: store %d has %d of %d ids", stores, stride, s, c, n)
				}
			}
		}
	}
}

// TestIndex: the index finds what was put and nothing else, as a map does.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		want := map[int64]int{}
		ids := rapid.SliceOfN(rapid.Int64Range(0, 300), 0, 400).Draw(t, "ids")
		for _, id := range ids {
			if _, ok := want[id]; !ok {
				x.put(id, len(want))
				want[id] = len(want)
			}
		}
		for id := int64(-1); id < 302; id++ {
			slot, ok := want[id]
			if !ok {
				slot = -1
			}
			if got := x.get(id); got != slot {
				t.Fatalf("get(%d) = %d, want %d", id, got, slot)
			}
		}
	})
}
