package data

import "github.com/gangline/gangline/tensor"

// MicroFeeder turns a rank's part of a step's batch into the tensors of several
// micro-batches: the part is cut as a step's batch is cut into those of ranks, into
// pieces that differ by at most one row and may be empty.
type MicroFeeder struct {
	parts  []*Feeder
	inputs int
}

// NewMicroFeeder prepares to feed the given inputs, of every micro-batch. Which rows
// a rank reads in a step does not depend on how many there are.
func NewMicroFeeder(src Source, order Order, rank, ranks, micros int, inputs []InputSpec) (*MicroFeeder, error) {
	m := &MicroFeeder{inputs: len(inputs)}
	for i := range micros {
		// Part i of m of part r of n is part r·m+i of n·m: both begin at the same row.
		f, err := NewFeeder(src, order, rank*micros+i, ranks*micros, inputs)
		if err != nil {
			return nil, err
		}
		m.parts = append(m.parts, f)
	}
	return m, nil
}

// Feed fills out, one tensor an input of the first micro-batch, then those of the
// next; see Feeder.Feed.
func (m *MicroFeeder) Feed(step int64, out []*tensor.Tensor) error {
	for i, f := range m.parts {
		if err := f.Feed(step, out[i*m.inputs:(i+1)*m.inputs]); err != nil {
			return err
		}
	}
	return nil
}
