package ps

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is what the tests train: two dense states and a table.
type model struct {
	dtype  tensor.DType
	states []State // whole: Lo 0, Hi everything
}

func newModel(d tensor.DType, rule optim.Rule) *model {
	m := &model{dtype: d}
	add := func(name string, table bool, shape ...int) {
		s := State{
			Index: 10 * (len(m.states) + 1), Name: name, DType: d, Shape: shape, Table: table, Rule: rule,
			Init: graph.Init{Kind: graph.Uniform, Scale: 1, Seed: 7}, Slots: rule.Slots(),
		}
		if !table {
			s.Hi = s.Shape.Elems()
		}
		m.states = append(m.states, s)
	}
	add("w", false, 5, 3)
	add("b", false, 3)
	add("emb", true, 40, 2)
	return m
}

// layouts splits the model over stores: dense states in even ranges.
func (m *model) layouts(stores int) []Layout {
	all := make([]Layout, stores)
	for s := range all {
		all[s] = Layout{Store: s, Stores: stores}
		for _, st := range m.states {
			if !st.Table {
				n := st.Shape.Elems()
				st.Lo, st.Hi = n*s/stores, n*(s+1)/stores
			}
			if st.Table || st.Lo < st.Hi {
				all[s].States = append(all[s].States, st)
			}
		}
	}
	return all
}

func (m *model) shards(t rapid.TB, stores int, workers []int) []*Shard {
	t.Helper()
	var shards []*Shard
	for _, l := range m.layouts(stores) {
		s, err := NewShard(l, workers)
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, s)
	}
	return shards
}

// gradient is what one worker contributes to a step, whole.
type gradient struct {
	dense map[string]*tensor.Tensor
	keys  []int64
	rows  *tensor.Tensor
}

// reference trains the model in one place: the whole table is there from the
// start, and contributions are summed in the order of the workers.
type reference[T tensor.Float] struct {
	m     *model
	p     map[string][]T
	slots map[string][][]T
}

func newReference[T tensor.Float](m *model) *reference[T] {
	r := &reference[T]{m: m, p: map[string][]T{}, slots: map[string][][]T{}}
	for _, s := range m.states {
		p := make([]T, s.Shape.Elems())
		graph.Fill(s.Init, s.Name, 0, p)
		r.p[s.Name] = p
		for _, slot := range s.Slots {
			r.slots[s.Name] = append(r.slots[s.Name], slices.Repeat([]T{T(slot.Init)}, len(p)))
		}
	}
	return r
}

func (r *reference[T]) apply(step int64, total float64, grads []gradient) {
	for _, s := range r.m.states {
		if s.Table {
			dim := s.Dim()
			merged := map[int64][]T{}
			for _, g := range grads {
				for i, k := range g.keys {
					row := tensor.Data[T](g.rows)[i*dim : (i+1)*dim]
					if merged[k] == nil {
						merged[k] = slices.Clone(row)
						continue
					}
					for j := range row {
						merged[k][j] += row[j]
					}
				}
			}
			for k, g := range merged {
				optim.Rows(s.Rule, step, total, r.p[s.Name], []int{int(k)}, dim, g, r.slots[s.Name])
			}
			continue
		}
		sum := slices.Clone(tensor.Data[T](grads[0].dense[s.Name]))
		for _, g := range grads[1:] {
			for i, v := range tensor.Data[T](g.dense[s.Name]) {
				sum[i] += v
			}
		}
		optim.Dense(s.Rule, step, total, r.p[s.Name], sum, r.slots[s.Name])
	}
}

// blocks cuts a gradient to what a layout holds.
func (g gradient) blocks(l *Layout) []Block {
	var all []Block
	for i := range l.States {
		st := &l.States[i]
		b := Block{State: st.Index, Lo: st.Lo, Hi: st.Hi}
		if st.Table {
			b.Lo, b.Hi = 0, 0
			var at []int
			for i, k := range g.keys {
				if StoreOf(k, l.Stores) == l.Store {
					at = append(at, i)
				}
			}
			b.Keys, b.Data = tensor.New(tensor.I64, len(at)), tensor.New(st.DType, len(at), st.Dim())
			size := st.Dim() * st.DType.Size()
			for j, i := range at {
				b.Keys.I64()[j] = g.keys[i]
				copy(b.Data.Bytes()[j*size:], g.rows.Bytes()[i*size:(i+1)*size])
			}
		} else {
			size := st.DType.Size()
			b.Data = tensor.New(st.DType, st.Hi-st.Lo)
			copy(b.Data.Bytes(), g.dense[st.Name].Bytes()[st.Lo*size:st.Hi*size])
		}
		all = append(all, b)
	}
	return all
}

// fillWith sets the elements of a float tensor to what next gives.
func fillWith(t *tensor.Tensor, next func() float64) *tensor.Tensor {
	if t.DType() == tensor.F32 {
		for i := range t.F32() {
			t.F32()[i] = float32(next())
		}
		return t
	}
	for i := range t.F64() {
		t.F64()[i] = next()
	}
	return t
}

// sequence gives numbers that look random and are not: enough for gradients.
func sequence(seed int) func() float64 {
	n := seed
	return func() float64 {
		n++
		return math.Sin(float64(n)*12.9898) * 3
	}
}

func (m *model) gradient(seed int, keys []int64) gradient {
	next := sequence(seed)
	g := gradient{dense: map[string]*tensor.Tensor{}, keys: keys}
	for _, s := range m.states {
		if s.Table {
			g.rows = fillWith(tensor.New(m.dtype, len(keys), s.Dim()), next)
			continue
		}
		g.dense[s.Name] = fillWith(tensor.New(m.dtype, s.Shape...), next)
	}
	return g
}

func sameBits[T tensor.Float](t rapid.TB, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float64bits(float64(got[i])) != math.Float64bits(float64(want[i])) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// do steps the shard and returns the one answer to the event's sender.
func do(t rapid.TB, s *Shard, ev Event) Action {
	t.Helper()
	actions, why := s.Step(time.Time{}, ev)
	for _, a := range actions {
		if (a.Kind == ActionReply || a.Kind == ActionRefuse || a.Kind == ActionSnapshot) && a.To == ev.From {
			return a
		}
	}
	t.Fatalf("no answer to rank %d: %v (%s)", ev.From, fmt.Sprint(actions), why)
	return Action{}
}
