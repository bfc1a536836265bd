// Package memory holds the tensors of one rank: state by name, shared between executors;
// of every other value one for each step in flight, in memory of its own or of an arena.
package memory

import (
	"fmt"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// Values holds the tensors of a rank.
type Values struct {
	plan  *plan.Plan
	rank  int
	state map[string]*tensor.Tensor
	// copies holds one tensor for each step in flight; for state, the same
	// tensor each time.
	copies map[plan.Ref][]*tensor.Tensor
	names  map[string][]*tensor.Tensor
	// same gives the life whose memory another one has, too.
	same map[plan.Ref]plan.Ref
	// arenas hold the memory of a plan's arenas, by number and copy.
	arenas map[int][][]byte
}

// New allocates the arenas of a plan by alloc. State, by name, is used where it is there
// and added where it is missing; nil is none.
func New(p *plan.Plan, rank int, state map[string]*tensor.Tensor, alloc func(n int) []byte) *Values {
	if state == nil {
		state = map[string]*tensor.Tensor{}
	}
	return &Values{
		plan: p, rank: rank, state: state, copies: map[plan.Ref][]*tensor.Tensor{}, names: map[string][]*tensor.Tensor{},
		arenas: newArenas(p, alloc), same: sharedLives(p, p.Ranks[rank]),
	}
}

// newArenas allocates what the values placed in arenas need.
func newArenas(p *plan.Plan, alloc func(n int) []byte) map[int][][]byte {
	size, once := map[int]int{}, map[int]bool{}
	for i := range p.Values {
		if v := &p.Values[i]; v.Arena != 0 {
			size[v.Arena], once[v.Arena] = max(size[v.Arena], v.Offset+v.Bytes()), v.Once
		}
	}
	arenas := map[int][][]byte{}
	for arena, n := range size {
		for c := range p.Window {
			if c == 0 || !once[arena] {
				arenas[arena] = append(arenas[arena], alloc(n))
			} else {
				arenas[arena] = append(arenas[arena], arenas[arena][0])
			}
		}
	}
	return arenas
}

// Arena returns the memory of an arena, one for each copy.
func (v *Values) Arena(arena int) [][]byte { return v.arenas[arena] }

// placed returns a value's part of its arena, in one copy.
func (v *Values) placed(val *plan.Value, c int) (*tensor.Tensor, error) {
	mem := v.arenas[val.Arena][c]
	end := val.Offset + val.Bytes()
	if !val.Shape.Static() || val.Offset < 0 || val.Offset > end {
		return nil, fmt.Errorf("value %q of shape %v cannot be at %d of an arena", val.Name, val.Shape, val.Offset)
	}
	return tensor.Wrap(val.DType, mem[val.Offset:end], val.Shape...)
}

// value returns the plan's value of a ref.
func (v *Values) value(r plan.Ref) (*plan.Value, error) {
	if r.Value < 0 || r.Value >= len(v.plan.Values) {
		return nil, fmt.Errorf("no value %d", r.Value)
	}
	return &v.plan.Values[r.Value], nil
}

// Get returns the copies of a ref and makes them at its first use. Dynamic
// dims start at 0.
func (v *Values) Get(r plan.Ref) ([]*tensor.Tensor, error) {
	val, err := v.value(r)
	if err != nil {
		return nil, err
	}
	held := val.Class == plan.Param || val.Class == plan.Slot
	if held {
		r = plan.Ref{Value: r.Value}
	}
	if first, ok := v.same[r]; ok {
		r = first
	}
	if c, ok := v.copies[r]; ok {
		return c, nil
	}
	if val.DType.Size() == 0 {
		return nil, fmt.Errorf("value %q has type %v", val.Name, val.DType)
	}
	c := make([]*tensor.Tensor, v.plan.Window)
	for i := range c {
		switch {
		case i > 0 && (held || val.Once):
			c[i] = c[0]
		case held:
			c[i], err = v.held(val, r.Value)
		case val.Arena != 0 && (r.Micro != 0 || r.Use != 0):
			err = fmt.Errorf("value %q is in an arena and can have one life a step only", val.Name)
		case val.Arena != 0:
			c[i], err = v.placed(val, i)
		default:
			c[i] = tensor.New(val.DType, startShape(v.shape(val, r.Value))...)
		}
		if err != nil {
			return nil, err
		}
	}
	v.copies[r] = c
	if _, ok := v.names[val.Name]; !ok {
		v.names[val.Name] = c
	}
	return c, nil
}

// shape is that of what this rank has of a value: of a shard, so many elements.
func (v *Values) shape(val *plan.Value, index int) tensor.Shape {
	if !val.Partial() {
		return val.Shape
	}
	lo, hi := v.plan.Part(v.rank, index)
	return tensor.Shape{hi - lo}
}

// held finds state by name, or makes it. Where the plan places it in an arena, that is
// where it is from then on, for all who share the state.
func (v *Values) held(val *plan.Value, index int) (*tensor.Tensor, error) {
	if !val.Shape.Static() {
		return nil, fmt.Errorf("state %q has dynamic shape %v", val.Name, val.Shape)
	}
	shape := v.shape(val, index)
	t := v.state[val.Name]
	if t == nil {
		t = tensor.New(val.DType, shape...)
		v.state[val.Name] = t
	}
	if t.DType() != val.DType || !shape.Equal(t.Shape()) {
		return nil, fmt.Errorf("state %q is %v %v where the plan says %v %v", val.Name, t.DType(), t.Shape(), val.DType, shape)
	}
	if val.Arena == 0 {
		return t, nil
	}
	placed, err := v.placed(val, 0)
	if err == nil {
		copy(placed.Bytes(), t.Bytes())
		v.state[val.Name] = placed
	}
	return placed, err
}

// startShape is a shape with its dynamic dims at 0.
func startShape(s tensor.Shape) tensor.Shape {
	s = s.Clone()
	for i := range s {
		if s[i] == tensor.Dynamic {
			s[i] = 0
		}
	}
	return s
}

// Lists returns, for each copy, the tensors of refs in order.
func (v *Values) Lists(refs []plan.Ref) ([][]*tensor.Tensor, error) {
	out := make([][]*tensor.Tensor, v.plan.Window)
	for _, r := range refs {
		c, err := v.Get(r)
		if err != nil {
			return nil, err
		}
		for i := range out {
			out[i] = append(out[i], c[i])
		}
	}
	return out, nil
}

// ByName returns copy c of a value, or nil. Of several micro-batches or uses it
// is the first in the list, whose memory a later one may have by now.
func (v *Values) ByName(name string, c int) *tensor.Tensor {
	t, ok := v.names[name]
	if !ok {
		return nil
	}
	return t[c]
}
