package ps

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// table is the rows of a table that this store owns and that a step has
// updated. A row is born when it is first updated; before, reading it gives
// graph.Fill of its elements, so neither the order of births nor the number of
// stores can be seen in the values.
type table[T tensor.Float] struct {
	*State
	store, stores int
	dim           int
	index         index
	ids           []int64 // of each row slot
	p             []T     // row slots side by side
	slots         [][]T

	// Scratch of apply: the merged gradient, its row slots, and for each row
	// slot its place in them plus one (0 outside of apply).
	g    []T
	at   []int
	mark []int32

	seen []uint16 // of each row slot, while loading: the arrays that came
}

func newTable[T tensor.Float](s *State, l *Layout) *table[T] {
	return &table[T]{State: s, store: l.Store, stores: l.Stores, dim: s.Dim(), slots: make([][]T, len(s.Slots))}
}

func (t *table[T]) view() *tensor.Tensor { panic("ps: view of a table") }
func (t *table[T]) rows() int            { return len(t.ids) }

func (t *table[T]) read(keys []int64, dst *tensor.Tensor) {
	dst.Resize(len(keys), t.dim)
	out := tensor.Data[T](dst)
	for i, id := range keys {
		row := out[i*t.dim : (i+1)*t.dim]
		if slot := t.index.get(id); slot >= 0 {
			copy(row, t.p[slot*t.dim:])
			continue
		}
		graph.Fill(t.Init, t.Name, int(id)*t.dim, row)
	}
}

// born returns the row slot of an id, and makes it if there is none.
func (t *table[T]) born(id int64) int {
	if slot := t.index.get(id); slot >= 0 {
		return slot
	}
	slot := len(t.ids)
	t.index.put(id, slot)
	t.ids = append(t.ids, id)
	t.mark = append(t.mark, 0)
	n := len(t.p)
	t.p = slices.Grow(t.p, t.dim)[:n+t.dim]
	graph.Fill(t.Init, t.Name, int(id)*t.dim, t.p[n:])
	for i, s := range t.Slots {
		t.slots[i] = slices.Grow(t.slots[i], t.dim)[:n+t.dim]
		for j := range t.dim {
			t.slots[i][n+j] = T(s.Init)
		}
	}
	return slot
}

// apply merges by key: each key's rows are summed in the order of from. It
// costs one look-up for each key of each contribution.
func (t *table[T]) apply(step int64, total float64, from []contribution) {
	t.at, t.g = t.at[:0], t.g[:0]
	for _, c := range from {
		rows := tensor.Data[T](c.data)
		for i, id := range c.keys.I64() {
			slot, row := t.born(id), rows[i*t.dim:(i+1)*t.dim]
			if m := int(t.mark[slot]); m > 0 {
				addTo(t.g[(m-1)*t.dim:m*t.dim], row)
				continue
			}
			t.at = append(t.at, slot)
			t.g = append(t.g, row...)
			t.mark[slot] = int32(len(t.at))
		}
	}
	for _, slot := range t.at {
		t.mark[slot] = 0
	}
	optim.Rows(t.Rule, step, total, t.p, t.at, t.dim, t.g, t.slots)
}

func (t *table[T]) export(to []checkpoint.Piece) []checkpoint.Piece {
	order := make([]int, len(t.ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(t.ids[a], t.ids[b]) })
	keys := make([]int64, len(order))
	for i, slot := range order {
		keys[i] = t.ids[slot]
	}
	for a := range 1 + len(t.slots) {
		data := make([]T, 0, len(order)*t.dim)
		for _, slot := range order {
			data = append(data, t.row(a, slot)...)
		}
		to = append(to, checkpoint.Piece{
			Name: t.arrayName(a), Shape: t.Shape.Clone(), Keys: keys, Data: tensor.From(data, len(keys), t.dim),
		})
	}
	return to
}

// row returns row slot of array a.
func (t *table[T]) row(a, slot int) []T {
	if a == 0 {
		return t.p[slot*t.dim : (slot+1)*t.dim]
	}
	return t.slots[a-1][slot*t.dim : (slot+1)*t.dim]
}

func (t *table[T]) load(p checkpoint.Piece, a int) error {
	if p.Keys == nil {
		return fmt.Errorf("%s comes dense, and is a table here", p.Name)
	}
	if p.Data.Elems() != len(p.Keys)*t.dim {
		return fmt.Errorf("%s: %d keys with %d elements, want rows of %d", p.Name, len(p.Keys), p.Data.Elems(), t.dim)
	}
	data := tensor.Data[T](p.Data)
	for i, id := range p.Keys {
		if id < 0 || id >= int64(t.Shape[0]) {
			return fmt.Errorf("%s: key %d is outside [0, %d)", p.Name, id, t.Shape[0])
		}
		if StoreOf(id, t.stores) != t.store {
			continue
		}
		slot := t.born(id)
		if slot == len(t.seen) {
			t.seen = append(t.seen, 0)
		}
		if t.seen[slot]&(1<<a) != 0 {
			return fmt.Errorf("%s: row %d comes twice", p.Name, id)
		}
		t.seen[slot] |= 1 << a
		copy(t.row(a, slot), data[i*t.dim:(i+1)*t.dim])
	}
	return nil
}

func (t *table[T]) loaded() error {
	for slot, seen := range t.seen {
		if a := bits.TrailingZeros16(^seen); a <= len(t.slots) {
			return fmt.Errorf("%s: row %d is missing", t.arrayName(a), t.ids[slot])
		}
	}
	t.seen = nil
	return nil
}

// checkKeys tests what a request says of a table's keys.
func checkKeys(s *State, l *Layout, keys []int64) error {
	last := int64(math.MinInt64)
	for i, id := range keys {
		switch {
		case id < 0 || id >= int64(s.Shape[0]):
			return fmt.Errorf("key %d of table %s is outside [0, %d)", id, s.Name, s.Shape[0])
		case i > 0 && id <= last:
			return fmt.Errorf("keys of table %s do not ascend: %d after %d", s.Name, id, last)
		case StoreOf(id, l.Stores) != l.Store:
			return fmt.Errorf("key %d of table %s belongs to store %d, this is store %d", id, s.Name, StoreOf(id, l.Stores), l.Store)
		}
		last = id
	}
	return nil
}
