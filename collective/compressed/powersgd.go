package compressed

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// PowerSGD sums vectors that consist of matrices, by two ring all-reduces of their factors:
// see compress.LowRank. What belongs to no matrix goes with the first, uncompressed.
type PowerSGD struct {
	collective.Party
	elems  int
	low    *compress.LowRank
	p, q   factor
	report compress.Report
	broken error
}

// factor is one of the two sums.
type factor struct {
	mem *tensor.Tensor
	run *collective.Runner
}

// NewPowerSGD binds the sum of vectors of elems elements, in which matrices lie, by factors
// of a rank. Rank 1 to 4 is usual; all ranks must have the same.
func NewPowerSGD(p collective.Party, elems, rank int, matrices []compress.Matrix) (*PowerSGD, error) {
	if err := validate(&p, elems); err != nil {
		return nil, err
	}
	low, err := compress.NewLowRank(elems, rank, matrices)
	if err != nil {
		return nil, err
	}
	if p.Streams == nil && len(p.Group) > 1 { // which both sums share, one after the other
		p.Streams = transport.NewMessageStreams(p.Endpoint, p.Group[p.Index], p.Group, p.Tag, 0)
	}
	s := &PowerSGD{Party: p, elems: elems, low: low}
	s.report.Plain = plainBytes(p.Index, len(p.Group), elems)
	if s.p, err = s.factor(low.P()); err != nil {
		return nil, err
	}
	s.q, err = s.factor(low.Q())
	return s, err
}

// factor binds the sum of a factor.
func (s *PowerSGD) factor(v []float32) (factor, error) {
	r, err := collective.NewRunner(s.Party, collective.RingAllReduce(len(s.Group)), tensor.F32, len(v))
	return factor{mem: tensor.From(v, len(v)), run: r}, err
}

// Bytes is what one Run moves, sent plus received: about 4(n-1)/n times the bytes of both
// factors, which are 4r(rows+cols) of each matrix and 4 of each other element.
func (s *PowerSGD) Bytes() int64 { return s.p.run.Bytes() + s.q.run.Bytes() }

// Run sums t, an f32 tensor of elems elements, over the group in place: as that of
// AllReduce.
func (s *PowerSGD) Run(ctx context.Context, t *tensor.Tensor) error {
	if err := fits(t, s.elems, s.broken); err != nil {
		return err
	}
	finite, err := s.run(ctx, t.F32())
	if err != nil {
		s.broken = fmt.Errorf("compressed: sum by factors: %w", err)
		return s.broken
	}
	s.report.Runs++
	if finite {
		s.report.Input = s.low.Input()
		s.low.Keep()
	} else {
		s.report.Skipped++
	}
	return nil
}

func (s *PowerSGD) run(ctx context.Context, v []float32) (finite bool, err error) {
	if len(s.Group) == 1 {
		return s.low.Whole(v), nil
	}
	s.low.Sketch(v)
	if err := s.p.run.Run(ctx, s.p.mem); err != nil {
		return false, err
	}
	s.low.Solve()
	if err := s.q.run.Run(ctx, s.q.mem); err != nil {
		return false, err
	}
	return s.low.Finish(v), nil
}
