package ps

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// contribution is what one worker gave to one state for one step.
type contribution struct {
	stored bool
	keys   *tensor.Tensor // i64, kept from step to step; nil for a dense state
	data   *tensor.Tensor
}

// cell is one state's values: dense or table, f32 or f64.
type cell interface {
	// apply sums the contributions in the order given and applies the rule. It
	// may change the data of the contributions.
	apply(step int64, total float64, from []contribution)
	// view returns the values of a dense state themselves.
	view() *tensor.Tensor
	// read copies the rows of keys to dst, which it resizes.
	read(keys []int64, dst *tensor.Tensor)
	// rows returns how many rows a table has, 0 for a dense state.
	rows() int
	// export appends copies of the parameter and its slots.
	export(to []checkpoint.Piece) []checkpoint.Piece
	// load takes what it holds of a piece of array a (0 is the parameter, a is
	// slot a-1).
	load(p checkpoint.Piece, a int) error
	// loaded ends a series of loads; it fails if something was not covered.
	loaded() error
}

func newCell(s *State, l *Layout) cell {
	switch {
	case s.Table && s.DType == tensor.F32:
		return newTable[float32](s, l)
	case s.Table:
		return newTable[float64](s, l)
	case s.DType == tensor.F32:
		return newDense[float32](s)
	}
	return newDense[float64](s)
}

// span is a range of elements.
type span struct{ lo, hi int }

// dense is a range of a variable and of its slots.
type dense[T tensor.Float] struct {
	*State
	val   *tensor.Tensor
	p     []T
	slots [][]T
	cover [][]span // of each array, while loading
}

func newDense[T tensor.Float](s *State) *dense[T] {
	n := s.Hi - s.Lo
	d := &dense[T]{State: s, val: tensor.New(s.DType, n), cover: make([][]span, 1+len(s.Slots))}
	d.p = tensor.Data[T](d.val)
	graph.Fill(s.Init, s.Name, s.Lo, d.p)
	for _, slot := range s.Slots {
		d.slots = append(d.slots, slices.Repeat([]T{T(slot.Init)}, n))
	}
	return d
}

func (d *dense[T]) view() *tensor.Tensor         { return d.val }
func (d *dense[T]) read([]int64, *tensor.Tensor) { panic("ps: rows of a dense state") }
func (d *dense[T]) rows() int                    { return 0 }

// array returns the parameter (0) or slot a-1.
func (d *dense[T]) array(a int) []T {
	if a == 0 {
		return d.p
	}
	return d.slots[a-1]
}

func addTo[T tensor.Float](dst, src []T) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}

func (d *dense[T]) apply(step int64, total float64, from []contribution) {
	g := tensor.Data[T](from[0].data)
	for _, c := range from[1:] {
		addTo(g, tensor.Data[T](c.data))
	}
	optim.Dense(d.Rule, step, total, d.p, g, d.slots)
}

func (d *dense[T]) export(to []checkpoint.Piece) []checkpoint.Piece {
	for a := range 1 + len(d.slots) {
		to = append(to, checkpoint.Piece{
			Name: d.arrayName(a), Shape: d.Shape.Clone(), Lo: d.Lo, Hi: d.Hi,
			Data: tensor.From(slices.Clone(d.array(a)), d.Hi-d.Lo),
		})
	}
	return to
}

func (d *dense[T]) load(p checkpoint.Piece, a int) error {
	if p.Keys != nil {
		return fmt.Errorf("%s comes as rows, and is dense here", p.Name)
	}
	if p.Lo < 0 || p.Hi > d.Shape.Elems() || p.Lo > p.Hi || p.Data.Elems() != p.Hi-p.Lo {
		return fmt.Errorf("%s: range [%d, %d) with %d elements, of %d", p.Name, p.Lo, p.Hi, p.Data.Elems(), d.Shape.Elems())
	}
	lo, hi := max(p.Lo, d.Lo), min(p.Hi, d.Hi)
	if lo >= hi {
		return nil
	}
	copy(d.array(a)[lo-d.Lo:hi-d.Lo], tensor.Data[T](p.Data)[lo-p.Lo:hi-p.Lo])
	d.cover[a] = append(d.cover[a], span{lo, hi})
	return nil
}

func (d *dense[T]) loaded() error {
	for a, c := range d.cover {
		slices.SortFunc(c, func(x, y span) int { return cmp.Compare(x.lo, y.lo) })
		at := d.Lo
		for _, s := range append(c, span{d.Hi, d.Hi}) {
			switch {
			case s.lo > at:
				return fmt.Errorf("%s: elements [%d, %d) are missing", d.arrayName(a), at, s.lo)
			case s.lo < at:
				return fmt.Errorf("%s: elements [%d, %d) come twice", d.arrayName(a), s.lo, min(at, s.hi))
			}
			at = s.hi
		}
		d.cover[a] = nil
	}
	return nil
}
