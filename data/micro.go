package data

import "github.com/gangline/gangline/tensor"

// MicroFeeder turns several parts of a step's batch, which is cut as into those of ranks,
// into tensors: pieces that differ by at most one row and may be empty.
type MicroFeeder struct {
	parts  []*Feeder
	inputs int
}

// NewMicroFeeder prepares to feed the given inputs, of every micro-batch of a rank's part.
// Which rows a rank reads in a step does not depend on how many there are.
func NewMicroFeeder(src Source, order Order, rank, ranks, micros int, inputs []InputSpec) (*MicroFeeder, error) {
	// Part i of m of part r of n is part r·m+i of n·m: both begin at the same row.
	return NewPartFeeder(src, order, rank*micros, (rank+1)*micros, ranks*micros, inputs)
}

// NewPartFeeder prepares to feed parts [first, last) of a step's batch, of so many.
func NewPartFeeder(src Source, order Order, first, last, parts int, inputs []InputSpec) (*MicroFeeder, error) {
	m := &MicroFeeder{inputs: len(inputs)}
	for i := first; i < last; i++ {
		f, err := NewFeeder(src, order, i, parts, inputs)
		if err != nil {
			return nil, err
		}
		m.parts = append(m.parts, f)
	}
	return m, nil
}

// Feed fills out, one tensor an input of the first part, then those of the next; see
// Feeder.Feed.
func (m *MicroFeeder) Feed(step int64, out []*tensor.Tensor) error {
	for i, f := range m.parts {
		if err := f.Feed(step, out[i*m.inputs:(i+1)*m.inputs]); err != nil {
			return err
		}
	}
	return nil
}
