package collective

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/collective/reduce"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// Options are what most runners leave as it is.
type Options struct {
	// Reduction is what becomes of values that meet: their sum, unless it says
	// otherwise.
	Reduction reduce.Op
	// Name and Shape of the value are what partners compare beside all else, and what
	// errors name. Neither is needed.
	Name  string
	Shape tensor.Shape
}

// Runner performs one schedule for one rank, again and again. Once warm, a Run
// allocates nothing. It is not safe for concurrent use.
type Runner struct {
	Party
	opening Opening
	engine  engine
	// own are streams that this runner alone has, or nil.
	own    *transport.MessageStreams
	broken error
}

// NewRunner binds a schedule to a place in a group and to buffers of elems
// elements. It fails if they do not fit each other, or if the type has no such
// reduction and the schedule needs one.
func NewRunner(p Party, s *Schedule, d tensor.DType, elems int, o ...Options) (*Runner, error) {
	if elems < 0 || d.Size() == 0 {
		return nil, fmt.Errorf("collective: %v of %d elements of type %v: size must be known", s.Goal, elems, d)
	}
	if s.Goal == AllToAll {
		return nil, fmt.Errorf("collective: %v has two buffers: use NewAllToAll", s.Goal)
	}
	return newRunner(p, s, d, elems, evenly(s.Chunks, elems, d.Size()), o)
}

// newRunner is NewRunner on chunks of any size.
func newRunner(p Party, s *Schedule, d tensor.DType, elems int, l layout, o []Options) (*Runner, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if s.N != len(p.Group) {
		return nil, fmt.Errorf("collective: %v for %d ranks on a group of %d", s.Goal, s.N, len(p.Group))
	}
	if b, ok := p.Streams.(transport.BlockStreams); ok {
		l.segment = max(l.segment, b.Block())
	}
	r := &Runner{Party: p}
	var opt Options
	if len(o) > 0 {
		opt = o[0]
	}
	r.opening = Opening{
		Goal: s.Goal, Reduction: opt.Reduction, DType: d, Elems: elems,
		Algorithm: s.Name, Digest: s.digest() ^ uint64(l.segment), Shape: opt.Shape, Name: opt.Name,
	}
	var complete []bool
	var kernel *reduce.Kernel
	if s.adds() {
		var err error
		if kernel, err = reduce.For(opt.Reduction, d, s.N); err != nil {
			return nil, fmt.Errorf("collective: %v cannot add up: %w", s.Goal, err)
		}
		if opt.Reduction == reduce.Mean {
			var ok bool
			if complete, ok = s.completes(p.Index); !ok {
				return nil, fmt.Errorf("%w: %v over %d: no step has the whole sum of its range", ErrSchedule, s.Goal, s.N)
			}
		}
	}
	prog := s.compile(p.Index, l, complete)
	streams := p.Streams
	if streams == nil && s.N > 1 {
		r.own = transport.NewMessageStreams(p.Endpoint, p.rank(), p.Group, p.Tag, max(openingBytes, prog.longest()))
		streams = r.own
	}
	r.engine = engine{program: prog, kernel: kernel, streams: streams, rank: p.rank(), size: d.Size()}
	return r, r.connect(prog)
}

// adds reports whether a step of any rank adds.
func (s *Schedule) adds() bool {
	for _, steps := range s.Ranks {
		for _, st := range steps {
			if st.From != Nobody && st.Action == Add {
				return true
			}
		}
	}
	return false
}

// connect opens a line to each partner and has the parts refer to lines.
func (r *Runner) connect(prog *program) error {
	lines := map[int]int{}
	for _, parts := range [][]part{prog.sends, prog.recvs} {
		for i := range parts {
			peer := parts[i].peer
			at, ok := lines[peer]
			if !ok {
				at = len(r.engine.lines)
				lines[peer] = at
				rank := r.Group[peer]
				s := r.engine.streams.To(rank)
				if s == nil {
					return r.fail("open a stream to", rank, transport.ErrNoPeer)
				}
				n := r.engine.connect(rank, peer, s)
				r.opening.encode(&n.mine)
				n.due = n.mine
			}
			parts[i].peer = at
		}
	}
	return nil
}

// Bytes is what one Run moves: sent plus received, without the openings.
func (r *Runner) Bytes() int64 { return r.engine.sentBytes + r.engine.receivedBytes }

// Run performs the collective in place on t, which must have the runner's type
// and number of elements. It blocks until this rank's part is done; ctx bounds
// every wait. An error names, as a transport.PeerError, the rank that was waited for
// or missing; t is then undefined and the runner used up. If a partner has begun
// another collective, the cause is a *MismatchError.
func (r *Runner) Run(ctx context.Context, t *tensor.Tensor) error {
	if t.DType() != r.opening.DType || t.Elems() != r.opening.Elems {
		return fmt.Errorf("collective: %v of %d %v elements given %d %v",
			r.opening.Goal, r.opening.Elems, r.opening.DType, t.Elems(), t.DType())
	}
	return r.run(ctx, t.Bytes(), nil)
}

// run performs the collective on the memory of one buffer or two.
func (r *Runner) run(ctx context.Context, first, second []byte) error {
	if r.broken != nil {
		return fmt.Errorf("%w: %w", ErrUsedUp, r.broken)
	}
	e := &r.engine
	e.begin(r.opening.Run, first, second)
	op, at, err := e.run(ctx)
	e.bufs = [2][]byte{}
	if err == nil && r.own != nil {
		// Others may close the endpoint as soon as this returns.
		if err = r.own.Flush(ctx); err != nil {
			op, at = "send to", 0
		}
	}
	if err != nil {
		err = r.fail(op, e.lines[at].rank, err)
		r.broken = fmt.Errorf("collective: %v%s over ranks %v, send %d of %d, receive %d of %d: %w", r.opening.Goal, r.named(), r.Group,
			min(e.s+1, len(e.sends)), len(e.sends), min(e.r+1, len(e.recvs)), len(e.recvs), err)
		return r.broken
	}
	r.opening.Run++
	return nil
}

// named is the name of the value, for errors.
func (r *Runner) named() string {
	if r.opening.Name == "" {
		return ""
	}
	return fmt.Sprintf(" of %q", r.opening.Name)
}
