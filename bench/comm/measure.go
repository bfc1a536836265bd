package comm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/tensor"
)

// ErrWrong says that a collective gave wrong numbers.
var ErrWrong = errors.New("wrong result")

// patience bounds all iterations of one size, and with them every wait.
const patience = 10 * time.Minute

// meter times collectives from the place of one rank. All ranks of the group call
// the same methods in the same order.
type meter struct {
	party   collective.Party
	hosts   [][]int // nil: all are on one
	barrier *collective.Runner
	one     *tensor.Tensor
}

func newMeter(p collective.Party) (*meter, error) {
	n := len(p.Group)
	b, err := collective.NewRunner(p, collective.DoublingAllReduce(n), tensor.F32, 1)
	return &meter{party: p, barrier: b, one: tensor.New(tensor.F32, 1)}, err
}

// wait returns when all ranks have come here.
func (m *meter) wait(ctx context.Context) error { return m.barrier.Run(ctx, m.one) }

// timed is one way to do an op on buffers of one size.
type timed struct {
	algorithm
	bytes int
	in    *tensor.Tensor
	out   *tensor.Tensor // in, where it is done in place
	run   func(ctx context.Context) error
}

// prepare makes what times an algorithm on a buffer, and checks it once.
func (m *meter) prepare(ctx context.Context, a algorithm, bytes int) (*timed, error) {
	x := tensor.New(tensor.F32, bytes/4)
	t := &timed{algorithm: a, bytes: bytes, in: x, out: x}
	switch a.op {
	case barrier:
		r, err := collective.NewBarrier(m.party)
		if err != nil {
			return nil, err
		}
		t.run = r.Run
	case allToAll:
		give, take := m.shares(x.Elems())
		r, err := collective.NewAllToAll(m.party, tensor.F32, give, take)
		if err != nil {
			return nil, err
		}
		t.out = tensor.New(tensor.F32, len(take)*take[0])
		t.run = func(ctx context.Context) error { return r.Run(ctx, t.in, t.out) }
	default:
		s, err := a.schedule(len(m.party.Group), m.hosts)
		if err != nil {
			return nil, err
		}
		r, err := collective.NewRunner(m.party, s, tensor.F32, x.Elems())
		if err != nil {
			return nil, err
		}
		t.run = func(ctx context.Context) error { return r.Run(ctx, x) }
	}
	return t, m.check(ctx, t)
}

// shares is what a rank gives each, and takes from each, if every rank's buffer is cut
// alike.
func (m *meter) shares(elems int) (give, take []int) {
	n := len(m.party.Group)
	share := func(i int) int { return collective.Bound(i+1, n, elems) - collective.Bound(i, n, elems) }
	for i := range n {
		give, take = append(give, share(i)), append(take, share(m.party.Index))
	}
	return give, take
}

// laps times some iterations, all of which the ranks begin together: each is so many
// runs one after the other, of which the mean counts. The times, in microseconds, are
// those of the slowest rank.
func (m *meter) laps(ctx context.Context, t *timed, iterations, runs int) ([]float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no end after %v", patience))
	defer cancel()
	times := make([]float64, iterations)
	for i := -(iterations/10 + 2); i < iterations; i++ {
		if err := m.wait(ctx); err != nil {
			return nil, err
		}
		begin := time.Now()
		for range runs {
			if err := t.run(ctx); err != nil {
				return nil, err
			}
		}
		if i >= 0 {
			times[i] = float64(time.Since(begin).Nanoseconds()) / 1e3 / float64(runs)
		}
	}
	return times, m.slowest(ctx, times)
}

// time checks an algorithm on a buffer and times it. The Result is the same on all
// ranks.
func (m *meter) time(ctx context.Context, a algorithm, bytes, iterations int) (Result, error) {
	t, err := m.prepare(ctx, a, bytes)
	if err != nil {
		return Result{}, err
	}
	times, err := m.laps(ctx, t, iterations, 1)
	if err != nil {
		return Result{}, err
	}
	slices.Sort(times)
	n := len(m.party.Group)
	r := Result{
		Op: a.op, Ranks: n, Algorithm: a.name, Bytes: bytes, Iterations: iterations,
		Median: times[iterations/2], Min: times[0], P99: times[iterations*99/100],
	}
	r.AlgBW = float64(bytes) / r.Median / 1e3
	r.BusBW = r.AlgBW * Factor(a.op, n)
	return r, nil
}

// check fills the buffer, runs once, compares every element, and leaves zeros.
func (m *meter) check(ctx context.Context, t *timed) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no end after %v", patience))
	defer cancel()
	v, n, me := t.in.F32(), len(m.party.Group), m.party.Index
	for i := range v {
		v[i] = given(me, i)
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	got := t.out.F32()
	for i := range got {
		want, due := wanted(t.op, me, n, i, len(v))
		if due && got[i] != want {
			return fmt.Errorf("%w: rank %d: %s: element %d of %d is %v, not %v", ErrWrong, m.party.Group[me], t.op, i, len(got), got[i], want)
		}
	}
	clear(v)
	return nil
}

// given is element i of a rank's buffer: small whole numbers, whose sums are exact.
func given(rank, i int) float32 { return float32(rank + 1 + i%7) }

// wanted is what element i of length must be afterwards on a rank, if the op says so.
func wanted(op string, me, n, i, length int) (v float32, due bool) {
	lo, hi := collective.Bound(me, n, length), collective.Bound(me+1, n, length)
	own := i >= lo && i < hi
	sum := float32(n*(n+1)/2 + n*(i%7))
	switch op {
	case "allreduce":
		return sum, true
	case "reducescatter":
		return sum, own
	case "reduce":
		return sum, me == 0
	case "broadcast":
		return given(0, i), true
	case "scatter":
		return given(0, i), own
	case allToAll: // from each rank in turn what is this one's
		return given(i/(hi-lo), lo+i%(hi-lo)), true
	case barrier:
		return 0, false
	}
	owner := 0 // gather, allgather
	for i >= collective.Bound(owner+1, n, length) {
		owner++
	}
	return given(owner, i), op == "allgather" || me == 0
}

// slowest makes each time that of the slowest rank.
func (m *meter) slowest(ctx context.Context, times []float64) error {
	mine := make([]byte, 8*len(times))
	for i, t := range times {
		binary.LittleEndian.PutUint64(mine[8*i:], math.Float64bits(t))
	}
	x, err := collective.NewExchange(m.party, len(mine))
	if err != nil {
		return err
	}
	all, err := x.Run(ctx, mine)
	if err != nil {
		return err
	}
	for k := range len(all) / 8 {
		i := k % len(times)
		times[i] = max(times[i], math.Float64frombits(binary.LittleEndian.Uint64(all[8*k:])))
	}
	return nil
}
