package data

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/shuffle"
	"github.com/gangline/gangline/internal/distinct"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/tensor"
)

// The parts of a column that a Feeder delivers; the same words as graph.Part.
const (
	partDense   = "dense"
	partOffsets = "offsets"
	partIDs     = "ids"
	partWeights = "weights"
	partKeys    = "keys"
	partPos     = "pos"
	partIndex   = "index"
)

// InputSpec names one tensor of a step's input.
type InputSpec struct {
	// Column is the name of a column of the source; for an index any name.
	Column string
	// Part is "dense" of a dense column; "offsets", "ids", "weights", "keys" or
	// "pos" of a ragged one. Keys are the distinct ids of the rank's rows,
	// ascending; pos is for every entry the index of its id in them. "index" is
	// where each row stands in the step's whole batch.
	Part string
	// DType is F32 or F64 for dense and weights, I64 for the others.
	DType tensor.DType
	// Dims is the number of dims: 2 for dense as [rows dim], or 1 for [rows],
	// which a column of Dim 1 may be declared as; 1 for the others.
	Dims int
}

// Feeder turns a rank's part of a step's batch into tensors. It is used by one
// goroutine at a time; several feeders may share a source.
type Feeder struct {
	src         Source
	order       Order
	rank, ranks int
	columns     []ColumnSpec
	inputs      []boundInput
	keyed       []keyed // one a column; of use for those whose keys are asked for
	batch       Batch
	rows        []int
	first       int           // where rows[0] stands in the step's batch
	ahead       []int         // blocks of the next window
	table       shuffle.Table // of the epoch
	checked     bool          // all ids of the source are of their columns
	inMemory    bool          // the source reads by rows.Read, which keeps count of ones
	ones        rows.KnownOnes
}

// boundInput is an InputSpec with its column found, -1 for an index.
type boundInput struct {
	InputSpec
	column int
	// lent is the tensor's memory while the source reads into it; room is how many
	// elements it should have.
	floats []float32
	ints   []int64
	room   int
}

// keyed is the distinct ids of one column.
type keyed struct {
	wanted    bool
	sorter    *distinct.Sorter
	keys, pos []int64
	room      []int64
}

// NewFeeder prepares to feed the given inputs. The order must fit the source. An
// error about a column or part names those that there are.
func NewFeeder(src Source, order Order, rank, ranks int, inputs []InputSpec) (*Feeder, error) {
	if err := order.Validate(); err != nil {
		return nil, err
	}
	if n := src.Rows(); n != order.Rows {
		return nil, fmt.Errorf("data: an order of %d rows does not fit a source of %d", order.Rows, n)
	}
	if rank < 0 || rank >= ranks {
		return nil, fmt.Errorf("data: rank %d is not in [0,%d)", rank, ranks)
	}
	f := &Feeder{src: src, order: order, rank: rank, ranks: ranks, columns: src.Columns()}
	f.keyed = make([]keyed, len(f.columns))
	if s, ok := src.(interface{ checked() bool }); ok {
		f.checked = s.checked()
	}
	_, f.inMemory = src.(*memory)
	for _, in := range inputs {
		if in.Part == partIndex {
			if in.DType != tensor.I64 || in.Dims != 1 {
				return nil, fmt.Errorf("data: an index cannot be %v with %d dims, want i64 with 1", in.DType, in.Dims)
			}
			f.inputs = append(f.inputs, boundInput{InputSpec: in, column: -1})
			continue
		}
		c := slices.IndexFunc(f.columns, func(c ColumnSpec) bool { return c.Name == in.Column })
		if c < 0 {
			return nil, fmt.Errorf("data: there is no column %q%s", in.Column, nearest.Hint(in.Column, rows.Names(f.columns)))
		}
		if err := in.check(f.columns[c]); err != nil {
			return nil, err
		}
		f.inputs = append(f.inputs, boundInput{InputSpec: in, column: c})
		if k := &f.keyed[c]; (in.Part == partKeys || in.Part == partPos) && !k.wanted {
			k.wanted, k.sorter = true, new(distinct.Sorter)
		}
	}
	return f, nil
}

// check tells whether a column can deliver the input.
func (in InputSpec) check(c ColumnSpec) error {
	parts := []string{partDense}
	if c.Kind == RaggedColumn {
		parts = []string{partOffsets, partIDs, partWeights, partKeys, partPos}
	}
	if !slices.Contains(parts, in.Part) {
		return fmt.Errorf("data: %s column %s has no part %q%s", c.Kind, c.Name, in.Part, nearest.Hint(in.Part, parts))
	}
	isFloat := in.Part == partDense || in.Part == partWeights
	if in.DType.IsFloat() != isFloat || (!isFloat && in.DType != tensor.I64) {
		want := "i64"
		if isFloat {
			want = "f32 or f64"
		}
		return fmt.Errorf("data: %s of column %s cannot be %v, want %s", in.Part, c.Name, in.DType, want)
	}
	if in.Dims == 1 && (in.Part != partDense || c.Dim == 1) {
		return nil
	}
	if in.Dims == 2 && in.Part == partDense {
		return nil
	}
	return fmt.Errorf("data: %s of column %s (dim %d) cannot have %d dims", in.Part, c.Name, c.Dim, in.Dims)
}

// Rows returns the rows that the last Feed delivered, valid until the next.
func (f *Feeder) Rows() []int { return f.rows }

// Feed fills out, one tensor an input, with this rank's rows of a step's batch;
// there may be none. The tensors are resized in place; their dtypes must be
// those of the inputs. An id outside its column is an error that names the row.
// A warm Feed allocates nothing. Cost: Source.Read, one more copy of each
// value, and a radix sort of the ids of each column whose keys are asked for.
func (f *Feeder) Feed(step int64, out []*tensor.Tensor) error {
	if len(out) != len(f.inputs) {
		panic(fmt.Sprintf("data: Feed of %d tensors for %d inputs", len(out), len(f.inputs)))
	}
	f.rows = f.order.rankRows(step, f.rank, f.ranks, f.rows, &f.table)
	f.first = f.order.RankStart(step, f.rank, f.ranks)
	f.batch.Reset(0, len(f.columns))
	for i := range f.inputs {
		f.lend(&f.inputs[i], out[i])
	}
	if err := f.src.Read(f.rows, &f.batch); err != nil {
		return fmt.Errorf("data: feed step %d: %w", step, err)
	}
	for c := range f.columns {
		if err := f.prepare(c); err != nil {
			return fmt.Errorf("data: feed step %d: %w", step, err)
		}
	}
	for i := range f.inputs {
		in := &f.inputs[i]
		f.feed(in, out[i])
	}
	return f.warm(step)
}

// lend gives the batch the memory of a tensor to read a part of a column into, so that
// nothing has to be copied, if the tensor is of the part's type.
func (f *Feeder) lend(in *boundInput, t *tensor.Tensor) {
	if t.DType() != in.DType {
		panic(fmt.Sprintf("data: %s of column %s was declared %v, fed into %v", in.Part, in.Column, in.DType, t.DType()))
	}
	in.floats, in.ints = nil, nil
	switch in.Part {
	case partDense, partWeights:
		if in.DType == tensor.F32 {
			t.Resize(in.room)
			in.floats = t.F32()
			c := &f.batch.Columns[in.column]
			c.Values = in.floats[:0]
			if f.inMemory && in.Part == partWeights {
				c.Ones = f.ones.Of(in.floats)
			}
		}
	case partOffsets:
		t.Resize(in.room)
		in.ints = t.I64()
		f.batch.Columns[in.column].Offsets = in.ints[:0]
	case partIDs:
		t.Resize(in.room)
		in.ints = t.I64()
		f.batch.Columns[in.column].IDs = in.ints[:0]
	}
}

// same reports whether a was read into b.
func same[T any](a, b []T) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// warm loads blocks that later steps read, before they are waited for.
func (f *Feeder) warm(step int64) error {
	src, ok := f.src.(Blocked)
	if !ok {
		return nil
	}
	f.ahead = f.order.Ahead(step, f.ahead)
	for _, b := range f.ahead {
		if err := src.Warm(b); err != nil {
			return fmt.Errorf("data: feed step %d: %w", step, err)
		}
	}
	return nil
}

// prepare checks the ids of a column and finds its keys if they are wanted.
func (f *Feeder) prepare(c int) error {
	if f.columns[c].Kind != RaggedColumn {
		return nil
	}
	col, dim := &f.batch.Columns[c], uint64(f.columns[c].Dim)
	if !f.checked {
		for i, id := range col.IDs {
			if uint64(id) >= dim {
				return f.outOfRange(c, i)
			}
		}
	}
	if k := &f.keyed[c]; k.wanted {
		k.room = rows.Resize(k.room, len(col.IDs))
		k.pos = rows.Resize(k.pos, len(col.IDs))
		k.keys = k.sorter.Find(col.IDs, k.room, k.pos)
	}
	return nil
}

// outOfRange names the row that owns an entry whose id is not of its column.
func (f *Feeder) outOfRange(c, entry int) error {
	col := &f.batch.Columns[c]
	i, found := slices.BinarySearch(col.Offsets, int64(entry))
	for found && i+1 < len(col.Offsets) && col.Offsets[i+1] == int64(entry) {
		i++ // rows without entries
	}
	if !found {
		i--
	}
	return fmt.Errorf("row %d: id %d of column %s is not in [0,%d)",
		f.rows[i], col.IDs[entry], f.columns[c].Name, f.columns[c].Dim)
}

// feed copies one part of a column into t.
func (f *Feeder) feed(in *boundInput, t *tensor.Tensor) {
	if in.Part == partIndex {
		t.Resize(len(f.rows))
		for i := range t.I64() {
			t.I64()[i] = int64(f.first + i)
		}
		return
	}
	col := &f.batch.Columns[in.column]
	switch in.Part {
	case partDense:
		if in.Dims == 1 {
			in.putFloats(t, col.Values, len(f.rows))
		} else {
			in.putFloats(t, col.Values, len(f.rows), f.columns[in.column].Dim)
		}
	case partWeights:
		in.putFloats(t, col.Values, len(col.Values))
		if col.Ones != nil && !same(col.Values, in.floats) {
			*col.Ones = 0 // what was read into other memory says nothing of the tensor's
		}
		col.Ones = nil
	case partOffsets:
		in.putInts(t, col.Offsets)
	case partIDs:
		in.putInts(t, col.IDs)
	case partKeys:
		in.putInts(t, f.keyed[in.column].keys)
	case partPos:
		in.putInts(t, f.keyed[in.column].pos)
	}
}

// putInts makes v the tensor's elements. They are there already if they were read
// into its memory.
func (in *boundInput) putInts(t *tensor.Tensor, v []int64) {
	in.room = max(in.room, len(v)+len(v)/4)
	t.Resize(len(v))
	if !same(v, in.ints) {
		copy(t.I64(), v)
	}
}

// putFloats is putInts for floats, of either type.
func (in *boundInput) putFloats(t *tensor.Tensor, v []float32, shape ...int) {
	in.room = max(in.room, len(v)+len(v)/4)
	t.Resize(shape...)
	if same(v, in.floats) {
		return
	}
	if t.DType() == tensor.F32 {
		copy(t.F32(), v)
		return
	}
	dst := t.F64()
	for i, x := range v {
		dst[i] = float64(x)
	}
}
