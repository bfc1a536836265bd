package compressed

import (
	"github.com/gangline/gangline/collective/compress"
)

// Revert undoes what the last Run did to the residuals, for a step that was skipped. All
// ranks must do it, or none. It does nothing after a Run whose sum was not finite, or a
// second time.
func (a *AllReduce) Revert() {
	if a.first != nil && a.first.Revert() {
		a.second.Revert()
		a.report.Skipped++
	}
}

// State is what this rank remembers: memory that is valid until the next Run. Without
// feedback it is empty.
func (a *AllReduce) State() compress.State {
	if a.first == nil {
		return compress.State{}
	}
	return compress.State{First: a.first.Residual(), Second: a.second.Residual(), Lo: a.bounds[a.Index]}
}

// Restore takes over this rank's share of what the ranks of an old group remembered, given
// in their order: see compress.Restore. The old group may be of any size and had vectors of
// the same length. Without feedback it does nothing.
func (a *AllReduce) Restore(old []compress.State) error {
	if a.first == nil {
		return nil
	}
	if err := compress.Restore(a.first.Residual(), a.second.Residual(), a.bounds[a.Index], a.Index, len(a.Group), old); err != nil {
		return err
	}
	a.first.Drop()
	a.second.Drop()
	return nil
}

// Report says what was saved and lost so far. It costs one reading of the residuals. Without
// feedback, Input, First and Second are of the last run that was looked at: the first, and
// every 64th after it.
func (a *AllReduce) Report() compress.Report {
	r := a.report
	r.Bytes, r.Plain = r.Runs*a.bytes, r.Runs*r.Plain
	if a.first != nil {
		r.First, r.Second = compress.Norm(a.first.Residual()), compress.Norm(a.second.Residual())
	}
	return r
}

// Revert is as that of AllReduce.
func (s *PowerSGD) Revert() {
	if s.low.Revert() {
		s.report.Skipped++
	}
}

// State is as that of AllReduce: a residual of this rank, and the factors Q, which are the
// same on all ranks.
func (s *PowerSGD) State() compress.State { return s.low.State() }

// Restore is as that of AllReduce. The matrices and the rank must be those of before.
func (s *PowerSGD) Restore(old []compress.State) error {
	return s.low.Restore(s.Index, len(s.Group), old)
}

// Report is as that of AllReduce. Input and First are of the matrices alone.
func (s *PowerSGD) Report() compress.Report {
	r := s.report
	r.Bytes, r.Plain = r.Runs*s.Bytes(), r.Runs*r.Plain
	r.First = compress.Norm(s.low.State().First)
	return r
}
