package vector

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/tensor"
)

// vectorsMax bounds the limit of a set.
const vectorsMax = 1 << 16

// Set holds one shard's share, elements [lo, hi), of named vectors. It is not
// safe for concurrent use.
//
// Guarantees: (1) a command that fails has changed nothing, and its number is
// still free; (2) a command with a number is done once, however often it comes;
// (3) there are never more vectors than the limit; (4) a vector that is being
// gathered is neither read nor changed by a command before it has each of its
// portions, and has each of them once.
type Set struct {
	lo, hi int
	dtype  tensor.DType
	at     map[string]int
	names  []string // by place; "" is free
	values []*tensor.Tensor
	math   arrays

	last   uint64 // number of the last numbered command
	done   []byte // its bytes
	answer []Sum

	gather gather
}

// gather is what a vector is collected from.
type gather struct {
	at         int // place of the vector, -1: none
	evaluation uint64
	portions   int
	got        []uint64 // a bit a portion
	missing    int
}

// New makes an empty set of at most limit vectors of float32 or float64: elements
// [lo, hi) of vectors of the whole model. The range may be empty. Memory is taken
// as vectors come into being.
func New(d tensor.DType, lo, hi, limit int) (*Set, error) {
	if lo < 0 || hi < lo {
		return nil, fmt.Errorf("ps/vector: [%d, %d) is no range of elements", lo, hi)
	}
	if limit < 1 || limit > vectorsMax {
		return nil, fmt.Errorf("ps/vector: a set holds 1 to %d vectors, not %d", vectorsMax, limit)
	}
	if d != tensor.F32 && d != tensor.F64 {
		return nil, fmt.Errorf("ps/vector: elements are f32 or f64, not %v", d)
	}
	s := &Set{
		lo: lo, hi: hi, dtype: d, at: map[string]int{},
		names: make([]string, limit), values: make([]*tensor.Tensor, limit), gather: gather{at: -1},
	}
	s.math = &of[float64]{v: make([][]float64, limit), n: hi - lo}
	if d == tensor.F32 {
		s.math = &of[float32]{v: make([][]float32, limit), n: hi - lo}
	}
	return s, nil
}

// Range returns which elements of the whole vectors the set holds.
func (s *Set) Range() (lo, hi int) { return s.lo, s.hi }

// Names returns the names of the vectors there are, ascending.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.at)) }

// Last returns the number of the last numbered command, 0 if there was none.
func (s *Set) Last() uint64 { return s.last }

// Bind makes t, of hi-lo elements, a vector of the set: not a copy. It replaces
// one of that name.
func (s *Set) Bind(name string, t *tensor.Tensor) error {
	switch {
	case name == "" || len(name) > NameMax:
		return fmt.Errorf("ps/vector: %w: the name of a vector has 1 to %d bytes, %q has %d", ErrUsage, NameMax, name, len(name))
	case t.DType() != s.dtype || t.Elems() != s.hi-s.lo:
		return fmt.Errorf("ps/vector: %w: %q is %d elements of %v here, got %d of %v",
			ErrUsage, name, s.hi-s.lo, s.dtype, t.Elems(), t.DType())
	}
	at, ok := s.at[name]
	if ok && at == s.gather.at {
		return s.incomplete(name)
	}
	if !ok {
		if err := s.room(name); err != nil {
			return err
		}
		at = s.place(name)
	}
	s.values[at] = t
	s.math.bind(at, t)
	return nil
}

// Tensor returns a vector itself, not a copy: it changes with the next command
// that writes to it.
func (s *Set) Tensor(name string) (*tensor.Tensor, error) {
	at, err := s.read(name)
	if err != nil {
		return nil, fmt.Errorf("ps/vector: %w", err)
	}
	return s.values[at], nil
}

// Do does one command. Of dots it returns the answers, in the order of the pairs:
// add up those of all shards with Merge. Callers must not change them.
func (s *Set) Do(c *Command) ([]Sum, error) {
	var answer []Sum
	if c.Number == 0 {
		err := c.check()
		if err == nil {
			answer, err = s.do(c)
		}
		if err != nil {
			return nil, fmt.Errorf("ps/vector: elements [%d, %d): %w", s.lo, s.hi, err)
		}
		return answer, nil
	}
	encoded, err := c.Append(nil)
	switch {
	case err != nil:
	case c.Number == s.last && bytes.Equal(encoded, s.done):
		return s.answer, nil
	case c.Number == s.last:
		err = fmt.Errorf("%w: number %d was another command", ErrUsage, c.Number)
	case c.Number < s.last || c.Number != s.last+1 && c.Op != OpBegin:
		err = fmt.Errorf("%w: number %d cannot follow %d: numbers go up by 1", ErrUsage, c.Number, s.last)
	default:
		answer, err = s.do(c)
	}
	if err != nil {
		return nil, fmt.Errorf("ps/vector: elements [%d, %d), command %d: %w", s.lo, s.hi, c.Number, err)
	}
	s.last, s.done, s.answer = c.Number, encoded, answer
	return answer, nil
}

// do does a command that was checked. What does it looks at everything first, and
// changes something only when nothing can fail any more.
func (s *Set) do(c *Command) ([]Sum, error) {
	switch c.Op {
	case OpBegin:
		return nil, s.begin(c.Dst)
	case OpFree:
		if _, ok := s.at[c.Dst]; !ok {
			return nil, s.unknown(c.Dst)
		}
		s.free(c.Dst)
		return nil, nil
	case OpCopy:
		return nil, s.copy(c.Dst, c.Src)
	case OpScale:
		dst, err := s.read(c.Dst)
		if err == nil {
			s.math.scale(dst, c.A)
		}
		return nil, err
	case OpAxpy:
		return nil, s.axpy(c)
	case OpCombine:
		return nil, s.combine(c)
	case OpDots:
		return s.dots(c.Pairs)
	case OpGather:
		return nil, s.open(c)
	}
	panic("ps/vector: a command that was not checked")
}

func (s *Set) begin(keep string) error {
	if _, err := s.read(keep); err != nil {
		return err
	}
	for _, name := range s.Names() {
		if name != keep {
			s.free(name)
		}
	}
	return nil
}

func (s *Set) copy(to, from string) error {
	src, err := s.read(from)
	if err != nil {
		return err
	}
	dst, err := s.written(to)
	if err == nil {
		s.math.copy(dst, src)
	}
	return err
}

func (s *Set) axpy(c *Command) error {
	dst, err := s.read(c.Dst)
	if err != nil {
		return err
	}
	src, err := s.read(c.Src)
	if err == nil {
		s.math.axpy(dst, c.A, src)
	}
	return err
}

func (s *Set) combine(c *Command) error {
	factors, terms := make([]float64, len(c.Terms)), make([]int, len(c.Terms))
	for i, t := range c.Terms {
		at, err := s.read(t.V)
		if err != nil {
			return err
		}
		factors[i], terms[i] = t.A, at
	}
	dst, err := s.written(c.Dst)
	if err == nil {
		s.math.combine(dst, factors, terms)
	}
	return err
}

// open begins to gather a vector.
func (s *Set) open(c *Command) error {
	dst, err := s.gathered(c.Dst)
	if err != nil {
		return err
	}
	s.math.zero(dst)
	s.gather = gather{
		at: dst, evaluation: c.Evaluation, portions: c.Portions, missing: c.Portions,
		got: make([]uint64, (c.Portions+63)/64),
	}
	return nil
}

func (s *Set) dots(pairs []Pair) ([]Sum, error) {
	places := make([][2]int, len(pairs))
	for i, p := range pairs {
		for j, name := range p {
			at, err := s.read(name)
			if err != nil {
				return nil, err
			}
			places[i][j] = at
		}
	}
	return s.math.dots(places), nil
}

// Taken says what became of a portion.
type Taken uint8

// What becomes of portions.
const (
	// Counted: the portion was added.
	Counted Taken = iota + 1
	// Repeated: the portion was there before; nothing changed.
	Repeated
	// Stale: another evaluation is being gathered, or none; nothing changed.
	Stale
)

// Add adds data, a portion's share of the vector that is being gathered, unless
// the portion is in it already or belongs to another evaluation: late answers
// do no harm. Portions count from 0. Sums depend on the order of arrival in their
// last bits.
func (s *Set) Add(evaluation uint64, portion int, data *tensor.Tensor) (Taken, error) {
	g := &s.gather
	if evaluation != g.evaluation || evaluation == 0 {
		return Stale, nil
	}
	switch {
	case portion < 0 || portion >= g.portions:
		return 0, fmt.Errorf("ps/vector: %w: evaluation %d has portions 0 to %d, got %d", ErrUsage, evaluation, g.portions-1, portion)
	case data.DType() != s.dtype || data.Elems() != s.hi-s.lo:
		return 0, fmt.Errorf("ps/vector: %w: portion %d of evaluation %d: elements [%d, %d) of %v wanted, got %d of %v",
			ErrUsage, portion, evaluation, s.lo, s.hi, s.dtype, data.Elems(), data.DType())
	}
	word, bit := portion/64, uint64(1)<<(portion%64)
	if g.got[word]&bit != 0 {
		return Repeated, nil
	}
	g.got[word] |= bit
	g.missing--
	s.math.add(g.at, data)
	if g.missing == 0 {
		g.at = -1 // as any other vector now; what comes late is still known
	}
	return Counted, nil
}

// read returns the place of a vector that a command reads.
func (s *Set) read(name string) (int, error) {
	at, ok := s.at[name]
	if !ok {
		return 0, s.unknown(name)
	}
	if at == s.gather.at {
		return 0, s.incomplete(name)
	}
	return at, nil
}

// written returns the place of a vector that a command writes whole, which may
// be a new one.
func (s *Set) written(name string) (int, error) {
	if at, ok := s.at[name]; ok && at == s.gather.at {
		return 0, s.incomplete(name)
	}
	return s.gathered(name)
}

// gathered is written, but lets a gathering begin anew.
func (s *Set) gathered(name string) (int, error) {
	if at, ok := s.at[name]; ok {
		return at, nil
	}
	if err := s.room(name); err != nil {
		return 0, err
	}
	at := s.place(name)
	s.values[at] = tensor.New(s.dtype, s.hi-s.lo)
	s.math.bind(at, s.values[at])
	return at, nil
}

// room fails if there cannot be one more vector.
func (s *Set) room(name string) error {
	if len(s.at) < len(s.names) {
		return nil
	}
	return fmt.Errorf("%w: there are %d, and %q is new: free one, or allow more", ErrFull, len(s.at), name)
}

// place gives a new vector the first free place.
func (s *Set) place(name string) int {
	at := slices.Index(s.names, "")
	s.names[at], s.at[name] = name, at
	return at
}

func (s *Set) free(name string) {
	at := s.at[name]
	delete(s.at, name)
	s.names[at], s.values[at] = "", nil
	s.math.bind(at, nil)
	if at == s.gather.at {
		s.gather = gather{at: -1}
	}
}

func (s *Set) unknown(name string) error {
	return fmt.Errorf("%w: %q%s", ErrUnknown, name, nearest.Hint(name, s.Names()))
}

func (s *Set) incomplete(name string) error {
	g := &s.gather
	return fmt.Errorf("%w: %q has %d of %d portions of evaluation %d", ErrIncomplete, name, g.portions-g.missing, g.portions, g.evaluation)
}
