package ps

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// State is a parameter as one store holds it.
type State struct {
	// Index is the plan's value index of the parameter.
	Index int
	Name  string
	DType tensor.DType
	// Shape is that of the whole parameter; [rows dim] for a table.
	Shape tensor.Shape
	// Table: the store holds the rows whose ids hash to it. Otherwise it holds
	// the elements [Lo, Hi).
	Table  bool
	Lo, Hi int
	Rule   optim.Rule
	Init   graph.Init
	// Slots are those of the rule, in its order.
	Slots []optim.Slot
}

// Dim returns the elements of a table's row, and 1 for a dense state.
func (s *State) Dim() int {
	if s.Table {
		return s.Shape[1]
	}
	return 1
}

// arrayName names array a of the state: the parameter, then its slots.
func (s *State) arrayName(a int) string {
	if a == 0 {
		return s.Name
	}
	return s.Name + "/" + s.Slots[a-1].Name
}

// check refuses a state that no store could hold.
func (s *State) check() error {
	switch {
	case !s.DType.IsFloat():
		return fmt.Errorf("state %s has dtype %v, want f32 or f64", s.Name, s.DType)
	case !s.Shape.Static():
		return fmt.Errorf("state %s has a dynamic shape %v", s.Name, s.Shape)
	case s.Table && (len(s.Shape) != 2 || s.Shape[0] < 1 || s.Shape[1] < 1):
		return fmt.Errorf("table %s has shape %v, want [rows dim]", s.Name, s.Shape)
	case s.Table && s.Shape[1] > dimMax:
		return fmt.Errorf("table %s has rows of %d elements, the limit is %d", s.Name, s.Shape[1], dimMax)
	case !s.Table && (s.Hi-s.Lo)*s.DType.Size() > transport.MaxMessage:
		return fmt.Errorf("state %s has %d elements on one store: more than a message, use more servers", s.Name, s.Hi-s.Lo)
	case !s.Table && (s.Lo < 0 || s.Lo >= s.Hi || s.Hi > s.Shape.Elems()):
		return fmt.Errorf("state %s holds [%d, %d) of %d elements", s.Name, s.Lo, s.Hi, s.Shape.Elems())
	}
	if want := s.Rule.Slots(); !slices.Equal(want, s.Slots) {
		return fmt.Errorf("state %s has slots %v, rule %s has %v", s.Name, s.Slots, s.Rule.Kind, want)
	}
	if err := s.Rule.Validate(); err != nil {
		return fmt.Errorf("state %s: %w", s.Name, err)
	}
	if err := s.Rule.Separable(); err != nil {
		return fmt.Errorf("state %s: %w", s.Name, err)
	}
	return nil
}

// Layout is what one store holds.
//
// Guarantees, of a Layout that LayoutOf made or NewShard took: (1) States
// ascend by Index and by it are distinct; (2) a dense state has a range that
// is not empty.
type Layout struct {
	// Store is this store, of Stores.
	Store, Stores int
	States        []State
}

// find returns the position of a state by its value index, or -1.
func (l *Layout) find(index int) int {
	i, ok := slices.BinarySearchFunc(l.States, index, func(s State, i int) int { return cmp.Compare(s.Index, i) })
	if !ok {
		return -1
	}
	return i
}

// check tests the guarantees.
func (l *Layout) check() error {
	if l.Store < 0 || l.Store >= min(l.Stores, storesMax) || len(l.States) > statesMax {
		return fmt.Errorf("ps: store %d of %d (limit %d) with %d states (limit %d)", l.Store, l.Stores, storesMax, len(l.States), statesMax)
	}
	for i := range l.States {
		if err := l.States[i].check(); err != nil {
			return fmt.Errorf("ps: store %d: %w", l.Store, err)
		}
		if i > 0 && l.States[i-1].Index >= l.States[i].Index {
			return fmt.Errorf("ps: store %d: states %s and %s are not in ascending order of index", l.Store, l.States[i-1].Name, l.States[i].Name)
		}
	}
	return nil
}

// LayoutOf reads from the plan's holdings what a store holds, and from the step
// how it starts and is updated. Dense ranges that are empty are left out. It
// fails if a holding names a value that is no parameter of the step, or if a
// store owns two ranges of one state.
func LayoutOf(step *graph.Step, p *plan.Plan, store int) (Layout, error) {
	l := Layout{Store: store, Stores: len(p.Stores)}
	params := make(map[string]*graph.Param, len(step.Params))
	for i := range step.Params {
		params[step.Params[i].Var.Name] = &step.Params[i]
	}
	for _, h := range p.Holdings {
		if h.Store != store || h.Rank >= 0 || !h.Owner || p.Values[h.State].Class != plan.Param {
			continue
		}
		v := p.Values[h.State]
		param := params[v.Name]
		if param == nil {
			return Layout{}, fmt.Errorf("ps: store %d holds %s, which is no parameter of the step", store, v.Name)
		}
		if !param.IsTable() && h.Lo == h.Hi {
			continue
		}
		l.States = append(l.States, State{
			Index: h.State, Name: v.Name, DType: param.Var.DType, Shape: param.Var.Shape.Clone(),
			Table: param.IsTable(), Lo: h.Lo, Hi: h.Hi,
			Rule: param.Rule, Init: param.Var.Attr.Init, Slots: param.Rule.Slots(),
		})
	}
	slices.SortFunc(l.States, func(a, b State) int { return cmp.Compare(a.Index, b.Index) })
	if err := l.check(); err != nil {
		return Layout{}, err
	}
	return l, nil
}

// mix spreads an id over 64 bits: the finalizer of splitmix64 (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014, with the
// constants of Stafford's variant 13). It is a bijection: no two ids collide.
func mix(id int64) uint64 {
	h := uint64(id) + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// StoreOf returns the store, of stores, that owns the row of an id: the high
// bits of mix(id), scaled to the number of stores. It is part of the format: a
// client and a server that disagree about it refuse each other's keys. About
// 2 ns.
func StoreOf(id int64, stores int) int {
	hi, _ := bits.Mul64(mix(id), uint64(stores))
	return int(hi)
}
