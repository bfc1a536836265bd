package ps

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

var rules = []optim.Rule{
	{Kind: optim.SGD, LR: .1},
	{Kind: optim.Momentum, LR: .1, Nesterov: true},
	{Kind: optim.Adagrad, LR: .1, L2: .01, InitialAccumulator: .1},
	{Kind: optim.Adam, LR: .01},
	{Kind: optim.RMSProp, LR: .01, Centered: true, Momentum: .5, ClipValue: .5},
	{Kind: optim.AdamW, LR: .01, AMSGrad: true, Schedule: optim.Schedule{Kind: optim.Stairs, Warmup: 2, Every: 3, Factor: .5}},
	{Kind: optim.FTRL, LR: .1, L1: .01},
}

// TestRandomRuns: whatever the interleaving of pushes, repetitions, verdicts
// and pulls, the state is bit for bit that of a serial loop, every contribution
// is accounted for, and the state moves to any number of stores unchanged.
func TestRandomRuns(t *testing.T) {
	t.Run("f32", rapid.MakeCheck(randomRun[float32]))
	t.Run("f64", rapid.MakeCheck(randomRun[float64]))
}

// run is one random run of workers against shards.
type run[T tensor.Float] struct {
	t       *rapid.T
	m       *model
	workers []int
	shards  []*Shard
	ref     *reference[T]
	seq     uint64
}

func randomRun[T tensor.Float](t *rapid.T) {
	m := newModel(tensor.TypeOf[T](), rapid.SampledFrom(rules).Draw(t, "rule"))
	workers := []int{0, 1, 2, 3}[:rapid.IntRange(1, 4).Draw(t, "workers")]
	r := &run[T]{t: t, m: m, workers: workers, ref: newReference[T](m)}
	r.shards = m.shards(t, rapid.IntRange(1, 4).Draw(t, "stores"), workers)
	for step := range int64(rapid.IntRange(1, 4).Draw(t, "steps")) {
		r.step(step)
	}
	for _, s := range r.shards {
		r.check(s)
	}
	other := m.shards(t, rapid.IntRange(1, 5).Draw(t, "other stores"), workers)
	pieces := exportAll(r.shards)
	pieces = rapid.Permutation(pieces).Draw(t, "order of pieces")
	for _, s := range other {
		if err := s.Import(pieces); err != nil {
			t.Fatal(err)
		}
		s.SetVersion(r.shards[0].Version())
		r.check(s)
	}
	want := assembled(exportAll(r.shards))
	for _, s := range r.shards { // back again, over what is there
		if err := s.Import(exportAll(other)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, assembled(exportAll(r.shards))); diff != "" {
		t.Fatalf("moving back changed the state (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(want, assembled(exportAll(other))); diff != "" {
		t.Fatalf("moving to %d stores changed the state (-before +after):\n%s", len(other), diff)
	}
}

// step draws gradients, delivers the pushes of all workers to all shards in
// any order, some twice, then the verdict, first by any worker.
func (r *run[T]) step(step int64) {
	var grads []gradient
	for range r.workers {
		keys := rapid.SliceOfNDistinct(rapid.Int64Range(0, 39), 0, 12, rapid.ID[int64]).Draw(r.t, "keys")
		slices.Sort(keys)
		grads = append(grads, r.m.gradient(rapid.IntRange(0, 1<<20).Draw(r.t, "seed"), keys))
	}
	type delivery struct {
		shard, worker int
		ev            Event
	}
	var todo []delivery
	for i, s := range r.shards {
		for w := range r.workers {
			blocks := grads[w].blocks(&s.layout)
			cut := rapid.IntRange(0, len(blocks)).Draw(r.t, "cut")
			for _, part := range [][]Block{blocks[:cut], blocks[cut:]} {
				if len(part) == 0 {
					continue
				}
				r.seq++
				todo = append(todo, delivery{i, w, Event{Kind: EventPush, From: r.workers[w], Seq: r.seq, Step: step, Blocks: part}})
			}
		}
	}
	for _, d := range rapid.Permutation(todo).Draw(r.t, "order") {
		repetition := d.ev
		repetition.Blocks = nil
		for _, b := range d.ev.Blocks {
			b.Data = b.Data.Clone()
			repetition.Blocks = append(repetition.Blocks, b)
		}
		if a := do(r.t, r.shards[d.shard], d.ev); a.Status != Stored {
			r.t.Fatalf("push: %v %v", a.Status, a.Err)
		}
		if rapid.Bool().Draw(r.t, "again") {
			if a := do(r.t, r.shards[d.shard], repetition); a.Status != Duplicate {
				r.t.Fatalf("repeated push: %v %v", a.Status, a.Err)
			}
		}
	}
	weight := float64(rapid.IntRange(0, 3).Draw(r.t, "weight"))
	if weight > 0 {
		r.ref.apply(step, weight, grads)
	}
	for _, s := range r.shards {
		for _, w := range rapid.Permutation(r.workers).Draw(r.t, "verdicts") {
			a := do(r.t, s, Event{Kind: EventFlush, From: w, Verdict: Verdict{Given: true, Step: step, Weight: weight}})
			if a.Status != Done || a.Version != step+1 {
				r.t.Fatalf("verdict: %v %v at version %d", a.Status, a.Err, a.Version)
			}
		}
		r.check(s)
	}
}

// check pulls everything the shard has and compares it with the reference.
func (r *run[T]) check(s *Shard) {
	if st := s.Stats(); !st.Balanced() || st.Pending != 0 || slices.ContainsFunc(st.Workers, func(w WorkerStats) bool { return !w.Balanced() }) {
		r.t.Fatalf("not accounted for: %+v", st)
	}
	var blocks []Block
	for _, st := range s.layout.States {
		b := Block{State: st.Index, Lo: st.Lo, Hi: st.Hi}
		if st.Table {
			var keys []int64
			for k := range int64(st.Shape[0]) {
				if StoreOf(k, s.layout.Stores) == s.layout.Store {
					keys = append(keys, k)
				}
			}
			b = Block{State: st.Index, Keys: tensor.From(keys, len(keys))}
		}
		blocks = append(blocks, b)
	}
	a := do(r.t, s, Event{Kind: EventPull, From: r.workers[0], Step: s.Version(), Blocks: blocks})
	if a.Status != Done {
		r.t.Fatalf("pull: %v", a.Err)
	}
	for i, b := range a.Blocks {
		st := s.layout.States[i]
		want := r.ref.p[st.Name]
		if !st.Table {
			sameBits(r.t, st.Name, tensor.Data[T](b.Data), want[st.Lo:st.Hi])
			continue
		}
		for j, k := range b.Keys.I64() {
			sameBits(r.t, st.Name, tensor.Data[T](b.Data)[j*2:j*2+2], want[k*2:k*2+2])
		}
	}
}

func exportAll(shards []*Shard) []checkpoint.Piece {
	var all []checkpoint.Piece
	for _, s := range shards {
		all = append(all, s.Export()...)
	}
	return all
}

// assembled is every element that pieces name: by array, by index.
func assembled(pieces []checkpoint.Piece) map[string]map[int]float64 {
	all := map[string]map[int]float64{}
	for _, p := range pieces {
		if all[p.Name] == nil {
			all[p.Name] = map[int]float64{}
		}
		for i := range p.Data.Elems() {
			at := p.Lo + i
			if p.Keys != nil {
				at = int(p.Keys[i/p.Shape[1]])*p.Shape[1] + i%p.Shape[1]
			}
			if p.Data.DType() == tensor.F32 {
				all[p.Name][at] = float64(p.Data.F32()[i])
			} else {
				all[p.Name][at] = p.Data.F64()[i]
			}
		}
	}
	return all
}

// TestExportAscends: keys of an exported table ascend whatever the order of
// births was, and only rows that were updated are there.
func TestExportAscends(t *testing.T) {
	m := newModel(tensor.F32, rules[3])
	s := m.shards(t, 1, []int{0, 1})[0]
	for w, keys := range [][]int64{{30, 39}, {2, 17, 30}} {
		do(t, s, Event{Kind: EventPush, From: w, Seq: 1, Blocks: m.gradient(w, keys).blocks(&s.layout)})
	}
	do(t, s, Event{Kind: EventPull, From: 0, Step: 1, Verdict: Verdict{Given: true, Weight: 1}, Blocks: []Block{
		{State: 30, Keys: tensor.From([]int64{5, 6}, 2)},
	}})
	var got [][]int64
	for _, p := range s.Export() {
		if p.Keys != nil {
			got = append(got, p.Keys)
		}
	}
	keys := []int64{2, 17, 30, 39}
	if diff := cmp.Diff([][]int64{keys, keys, keys}, got); diff != "" {
		t.Fatalf("keys of emb, emb/m, emb/v (-want +got):\n%s", diff)
	}
}

// TestImportRefuses what would leave a hole or a doubt.
func TestImportRefuses(t *testing.T) {
	m := newModel(tensor.F64, rules[3])
	trained := m.shards(t, 2, []int{0})
	for _, s := range trained {
		do(t, s, Event{Kind: EventPush, From: 0, Seq: 1, Blocks: m.gradient(1, []int64{1, 2, 3, 4}).blocks(&s.layout)})
		do(t, s, Event{Kind: EventFlush, From: 0, Verdict: Verdict{Given: true, Weight: 1}})
	}
	find := func(all []checkpoint.Piece, name string) int {
		return slices.IndexFunc(all, func(p checkpoint.Piece) bool { return p.Name == name })
	}
	second := rules[3].Slots()[1].Name
	cases := map[string]func([]checkpoint.Piece) []checkpoint.Piece{
		"range missing": func(p []checkpoint.Piece) []checkpoint.Piece { return slices.Delete(p, 0, 1) },
		"range twice":   func(p []checkpoint.Piece) []checkpoint.Piece { return append(p, p[0]) },
		"row twice":     func(p []checkpoint.Piece) []checkpoint.Piece { return append(p, p[find(p, "emb")]) },
		"slot missing": func(p []checkpoint.Piece) []checkpoint.Piece {
			i := find(p, "emb/"+second)
			return slices.Delete(p, i, i+1)
		},
		"shape": func(p []checkpoint.Piece) []checkpoint.Piece { p[0].Shape = tensor.Shape{15}; return p },
		"dtype": func(p []checkpoint.Piece) []checkpoint.Piece {
			p[0].Data = tensor.New(tensor.F32, p[0].Data.Elems())
			return p
		},
		"short data":     func(p []checkpoint.Piece) []checkpoint.Piece { p[0].Data = tensor.New(tensor.F64, 1); return p },
		"range outside":  func(p []checkpoint.Piece) []checkpoint.Piece { p[0].Lo += 100; p[0].Hi += 100; return p },
		"dense as rows":  func(p []checkpoint.Piece) []checkpoint.Piece { p[0].Keys = []int64{1}; return p },
		"table as dense": func(p []checkpoint.Piece) []checkpoint.Piece { p[find(p, "emb")].Keys = nil; return p },
		"key outside": func(p []checkpoint.Piece) []checkpoint.Piece {
			i := find(p, "emb")
			p[i].Keys = slices.Clone(p[i].Keys)
			p[i].Keys[0] = 40
			return p
		},
	}
	fresh := m.shards(t, 1, []int{0})[0]
	if err := fresh.Import(exportAll(trained)); err != nil {
		t.Fatalf("untouched: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if err := fresh.Import(cases[name](exportAll(trained))); err == nil {
			t.Errorf("%s: was taken", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestStableView: a dense pull gives the state itself only as long as nothing
// can change it; a worker that owes nothing gets a copy.
func TestStableView(t *testing.T) {
	m := newModel(tensor.F64, rules[0])
	s := m.shards(t, 1, []int{0, 1})[0]
	pull := Event{Kind: EventPull, From: 0, Blocks: []Block{{State: 10, Lo: 0, Hi: 15}}}
	if a := do(t, s, pull); a.Blocks[0].Data != s.cells[0].view() {
		t.Error("a worker that owes a contribution got a copy")
	}
	for w := range 2 {
		do(t, s, Event{Kind: EventPush, From: w, Seq: 1, Blocks: m.gradient(w, []int64{1}).blocks(&s.layout)})
	}
	a := do(t, s, pull)
	before := a.Blocks[0].Data.Clone()
	s.Step(time.Time{}, Event{Kind: EventFlush, From: 1, Verdict: Verdict{Given: true, Weight: 1}})
	sameBits(t, "w as pulled", a.Blocks[0].Data.F64(), before.F64())
}
