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

// time checks an algorithm on a buffer and times it. The Result is the same on all
// ranks.
func (m *meter) time(ctx context.Context, a algorithm, bytes, iterations int) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no end after %v", patience))
	defer cancel()
	n := len(m.party.Group)
	x := tensor.New(tensor.F32, bytes/4)
	run, err := collective.NewRunner(m.party, a.schedule(n), tensor.F32, bytes/4)
	if err != nil {
		return Result{}, err
	}
	if err := m.check(ctx, run, a.op, x); err != nil {
		return Result{}, err
	}
	times := make([]float64, iterations)
	for i := -(iterations/10 + 2); i < iterations; i++ {
		if err := m.wait(ctx); err != nil {
			return Result{}, err
		}
		begin := time.Now()
		if err := run.Run(ctx, x); err != nil {
			return Result{}, err
		}
		if i >= 0 {
			times[i] = float64(time.Since(begin).Nanoseconds()) / 1e3
		}
	}
	if err := m.slowest(ctx, times); err != nil {
		return Result{}, err
	}
	slices.Sort(times)
	r := Result{
		Op: a.op, Ranks: n, Algorithm: a.name, Bytes: bytes, Iterations: iterations,
		Median: times[iterations/2], Min: times[0], P99: times[iterations*99/100],
	}
	r.AlgBW = float64(bytes) / r.Median / 1e3
	r.BusBW = r.AlgBW * Factor(a.op, n)
	return r, nil
}

// check fills the buffer, runs once, compares every element, and leaves zeros.
func (m *meter) check(ctx context.Context, run *collective.Runner, op string, x *tensor.Tensor) error {
	v, n, me := x.F32(), len(m.party.Group), m.party.Index
	for i := range v {
		v[i] = given(me, i)
	}
	if err := run.Run(ctx, x); err != nil {
		return err
	}
	for i := range v {
		want, due := wanted(op, me, n, i, len(v))
		if due && v[i] != want {
			return fmt.Errorf("%w: rank %d: %s: element %d of %d is %v, not %v", ErrWrong, m.party.Group[me], op, i, len(v), v[i], want)
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
