package exec

import (
	"context"
	"errors"
	"sync"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// A Feeder is asked for batches before their Feed tasks may run, as long as they are
// small: waking the goroutine that does takes as long as feeding some hundred rows, and
// so it is woken once for several steps.
const (
	aheadSteps = 8       // at most
	aheadBytes = 2 << 20 // in all
)

// feed asks the Feeder for a batch, or takes one that was fed ahead.
type feed struct {
	still
	operands
	e    *Exec
	task int
	// ahead says that batches are fed ahead. With one step in flight none are, as
	// such a plan says.
	ahead bool
	sized bool
	kick  chan struct{} // wakes the goroutine that feeds ahead

	// feeding is full while the Feeder is asked, and until what it gave is in the ring.
	feeding chan struct{}
	next    int64 // the step to be fed next
	last    int64 // steps before it may be fed

	mu    sync.Mutex // guards the ring; taken last
	ring  []batch
	first int // the oldest of the ring
	count int // batches in the ring
}

// batch is one that was fed ahead.
type batch struct {
	step int64
	out  []*tensor.Tensor
	err  error
}

func (b *binder) feed(t *plan.Task, io operands) (op, error) {
	e := b.e
	if e.cfg.Feeder == nil {
		return nil, errors.New("no Feeder")
	}
	o := &feed{operands: io, e: e, kick: make(chan struct{}, 1), feeding: make(chan struct{}, 1)}
	if e.feed != nil {
		return nil, errors.New("there is a Feed before, and a rank has one")
	}
	o.ahead = e.window > 1
	for _, r := range t.Out {
		o.ahead = o.ahead && e.cfg.Plan.Values[r.Value].Arena == 0
	}
	e.feed = o
	return o, io.counts(0, -1)
}

// begin prepares for steps [first, last).
func (o *feed) begin(first, last int64) {
	o.feeding <- struct{}{}
	o.next, o.last = first, last // the ring is empty: the last Run took all or failed
	<-o.feeding
}

// quiet returns when nobody asks the Feeder any more, nor will until the next begin.
func (o *feed) quiet() {
	o.feeding <- struct{}{}
	o.last = 0
	<-o.feeding
}

// run delivers the batch of a step. If nobody has begun to feed it, it does not wait
// for who would.
func (o *feed) run(ctx context.Context, step int64, c int) error {
	select {
	case o.feeding <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-o.feeding }()
	if taken, err := o.take(step, c); taken || err != nil {
		return err
	}
	start := o.e.now()
	err := o.e.cfg.Feeder.Feed(step, o.out[c])
	o.e.fed(o, step, start)
	o.next = step + 1
	if err == nil && o.ahead {
		o.room(o.out[c])
		o.wake()
	}
	return err
}

// take delivers the batch of a step if it was fed ahead. It waits for nobody.
func (o *feed) take(step int64, c int) (taken bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == 0 || o.ring[o.first].step != step {
		return false, nil
	}
	b := &o.ring[o.first]
	if b.err != nil {
		return false, b.err
	}
	for i, t := range b.out {
		*t, *o.out[c][i] = *o.out[c][i], *t
	}
	o.first = (o.first + 1) % len(o.ring)
	if o.count--; o.count <= len(o.ring)/2 {
		o.wake()
	}
	return true, nil
}

// wake has batches fed ahead.
func (o *feed) wake() {
	if len(o.ring) == 0 || len(o.kick) > 0 {
		return
	}
	o.e.waiting(1)
	select {
	case o.kick <- struct{}{}:
	default:
		o.e.waiting(-1)
	}
}

// room makes room for batches of this size, if they are small enough.
func (o *feed) room(like []*tensor.Tensor) {
	if o.sized {
		return
	}
	o.sized = true
	bytes := 0
	for _, t := range like {
		bytes += t.Elems() * t.DType().Size()
	}
	ring := make([]batch, min(aheadSteps, aheadBytes/max(1, bytes)))
	for i := range ring {
		for _, t := range like {
			ring[i].out = append(ring[i].out, tensor.New(t.DType(), t.Shape()...))
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ring = ring
}

// serve feeds ahead until Close.
func (o *feed) serve() {
	for range o.kick {
		o.e.waiting(-1)
		for o.one() {
		}
	}
}

// one feeds a batch ahead, if there is one to feed and room for it.
func (o *feed) one() bool {
	o.feeding <- struct{}{}
	defer func() { <-o.feeding }()
	b := o.free()
	if b == nil {
		return false
	}
	start := o.e.now()
	b.step, b.err = o.next, o.e.cfg.Feeder.Feed(o.next, b.out)
	o.e.fed(o, b.step, start)
	if o.next++; b.err != nil {
		o.last = 0 // nothing is fed behind an error
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	return b.err == nil
}

// free is where the next batch goes, or nil.
func (o *feed) free() *batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == len(o.ring) || o.next >= o.last {
		return nil
	}
	return &o.ring[(o.first+o.count)%len(o.ring)]
}
