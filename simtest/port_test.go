package simtest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/collective/tree"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// port is a worker's Endpoint on the simulated network, for collectives that block. What
// is sent leaves at once; credits are not simulated. Whoever blocks in it is a goroutine
// that the simulation waits for (synctest.Wait) before it goes on, and messages then
// leave in an order that does not depend on goroutines.
type port struct {
	w      *worker
	ctx    context.Context //nolint:containedctx // of the process
	cancel context.CancelFunc

	mu     sync.Mutex // of what follows: a stream has a goroutine of its own that sends
	posted map[inlet][]*transport.Receive
	inbox  map[inlet][][]byte
	out    []parcel
}

// parcel is a message that has not left yet.
type parcel struct {
	to   int
	tag  uint32
	body []byte
}

// waitingMax is how many messages of one rank and tag may wait for who takes them.
const waitingMax = 16

func newPort(w *worker) *port {
	p := &port{w: w, posted: map[inlet][]*transport.Receive{}, inbox: map[inlet][][]byte{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Alloc implements transport.Endpoint.
func (p *port) Alloc(n int) []byte { return transport.Ordinary(n) }

// Post implements transport.Endpoint.
func (p *port) Post(r *transport.Receive) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Arm(p.w.rank)
	in := inlet{r.Peer, r.Tag}
	if q := p.inbox[in]; len(q) > 0 {
		p.inbox[in] = q[1:]
		put(r, q[0])
		return nil
	}
	p.posted[in] = append(p.posted[in], r)
	return nil
}

// Send implements transport.Endpoint.
func (p *port) Send(_ context.Context, peer int, tag uint32, head, body []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = append(p.out, parcel{peer, tag, slices.Concat(head, body)})
	return nil
}

// Stats implements transport.Endpoint.
func (p *port) Stats() transport.Stats { return transport.Stats{} }

// Close implements transport.Endpoint.
func (p *port) Close() error { return nil }

// put gives a message to who posted for it.
func put(r *transport.Receive, body []byte) {
	if !r.Fit(len(body)) {
		r.Complete(0, fmt.Errorf("%w: %d bytes", transport.ErrLimit, len(body)))
		return
	}
	r.Complete(copy(r.Buf, body), nil)
}

// deliver takes a message of the network.
func (p *port) deliver(in inlet, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.posted[in]; len(q) > 0 {
		p.posted[in] = q[1:]
		put(q[0], body)
		return
	}
	p.inbox[in] = append(p.inbox[in], body)
	if n := len(p.inbox[in]); n > waitingMax {
		p.w.c.violate("%d messages of rank %d with tag %d wait on rank %d", n, in.from, in.tag, p.w.rank)
	}
}

// quiet waits until all goroutines of the process wait for messages, and sends what they
// have written.
func (p *port) quiet() {
	synctest.Wait()
	p.mu.Lock()
	out := p.out
	p.out = nil
	p.mu.Unlock()
	slices.SortStableFunc(out, func(a, b parcel) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.tag, b.tag)) })
	for _, m := range out {
		p.w.send(m.to, m.tag, bytes.Clone(m.body))
	}
}

// blocking runs a collective of the production code in a goroutine of its own.
type blocking struct {
	place
	do    func(ctx context.Context, c int) error
	ended chan error
}

func (b *blocking) begin(step int64, c int) {
	b.start(step, c)
	b.ended = make(chan error, 1)
	go func() { b.ended <- b.do(b.w.port.ctx, c) }()
	b.arrived()
}

func (b *blocking) arrived() {
	b.w.port.quiet()
	if !b.busy || b.w.failed {
		return
	}
	select {
	case err := <-b.ended:
		b.w.must(err)
		b.finish()
	default:
	}
}

// newBlocking binds a collective as package exec does.
func newBlocking(p place) (machine, error) {
	b := &blocking{place: p}
	party := collective.Party{Endpoint: p.w.port, Group: p.d.plan.Groups[p.t.Group], Index: p.me, Tag: p.t.Tag}
	var err error
	switch t := p.t; {
	case t.Order == plan.Tree && t.Op == plan.AllGatherRows:
		err = b.treeRows(party)
	case t.Order == plan.Tree && t.Op == plan.AllReduce:
		err = b.tree(party)
	case t.Codec != "":
		err = b.compressed(party)
	case t.Op == plan.AllGatherRows:
		v := &p.d.plan.Values[t.In[1].Value]
		var sum *collective.Rows
		sum, err = collective.NewRows(party, v.DType, v.Shape[1], p.d.plan.Values[v.State].Shape[0])
		b.do = func(ctx context.Context, c int) error {
			in, out := b.tensors(c)
			return sum.Run(ctx, in[0], in[1], out[0], out[1])
		}
	case t.Op == plan.AllReduce, t.Op == plan.ReduceScatter, t.Op == plan.AllGather:
		err = b.dense(party)
	default:
		err = fmt.Errorf("the simulation has no %v", t.Op)
	}
	return b, err
}

func (p *place) tensors(c int) (in, out []*tensor.Tensor) {
	t := &p.d.tasks[p.task]
	return t.in[c], t.out[c]
}

// tree sums the branches of all ranks.
func (b *blocking) tree(party collective.Party) error {
	t, branches := b.t, make([][]*tensor.Tensor, b.d.plan.Window)
	for k := 0; k < len(t.In); k += len(t.Out) {
		runs, _, err := b.d.run(t.In[k : k+len(t.Out)])
		if err != nil {
			return err
		}
		for c, run := range runs {
			branches[c] = append(branches[c], run)
		}
	}
	first := branches[0][0]
	sum, err := tree.NewAllReduce(party, tree.Config{
		Slices: b.d.plan.Slices, Algorithm: t.Algorithm, DType: first.DType(), Elems: first.Elems(), Name: t.Name,
	})
	b.do = func(ctx context.Context, c int) error { return sum.Run(ctx, branches[c]) }
	return err
}

func (b *blocking) treeRows(party collective.Party) error {
	v := &b.d.plan.Values[b.t.Out[1].Value]
	sum, err := tree.NewRows(party, b.d.plan.Slices, v.DType, v.Shape[1])
	b.do = func(ctx context.Context, c int) error {
		in, out := b.tensors(c)
		return sum.Run(ctx, in, out[0], out[1])
	}
	return err
}

// compressed sums a bucket by a codec.
func (b *blocking) compressed(party collective.Party) error {
	spec, err := compress.ParseSpec(b.t.Codec)
	if err != nil {
		return err
	}
	var parts []compressed.Part
	for _, r := range b.t.In {
		v := &b.d.plan.Values[r.Value]
		parts = append(parts, compressed.Part{Name: b.d.plan.Values[v.State].Name, Shape: v.Shape})
	}
	sum, err := compressed.NewBucket(party, b.t.Name, spec, parts)
	if err != nil {
		return err
	}
	b.w.buckets = append(b.w.buckets, sum)
	b.do = func(ctx context.Context, c int) error {
		in, _ := b.tensors(c)
		return sum.Run(ctx, in)
	}
	return nil
}

// dense runs a schedule on a run of an arena, with the parts of sliced values copied from or
// to where they are, if that is elsewhere.
func (b *blocking) dense(party collective.Party) error {
	t, n := b.t, len(party.Group)
	whole, parts := t.In, t.Out
	schedule := collective.RingReduceScatter(n)
	var err error
	if t.Op == plan.AllGather {
		whole, parts, schedule = t.Out, t.In, collective.RingAllGather(n)
	}
	if t.Op == plan.AllReduce {
		schedule, err = collective.AllReduceBy(t.Algorithm, n, b.d.plan.HostsOf(party.Group))
	}
	if err != nil {
		return err
	}
	runs, lo, err := b.d.run(whole)
	if err != nil {
		return err
	}
	runner, err := collective.NewRunner(party, schedule, runs[0].DType(), runs[0].Elems())
	if err != nil {
		return err
	}
	elsewhere := !slices.Equal(whole, parts)
	b.do = func(ctx context.Context, c int) error {
		if elsewhere && t.Op == plan.AllGather {
			b.exchange(whole, parts, runs[c], lo, c, true)
		}
		err := runner.Run(ctx, runs[c])
		if elsewhere && t.Op == plan.ReduceScatter {
			b.exchange(whole, parts, runs[c], lo, c, false)
		}
		return err
	}
	return nil
}

// exchange copies the parts of the rank into the run, or out of it.
func (b *blocking) exchange(whole, parts []plan.Ref, run *tensor.Tensor, lo, c int, into bool) {
	in, out := b.tensors(c)
	own := out
	if into {
		own = in
	}
	for i, r := range parts {
		from, to := b.d.plan.Part(b.w.rank, r.Value)
		v := &b.d.plan.Values[whole[i].Value]
		at := v.Offset - lo + from*v.DType.Size()
		there := run.Bytes()[at : at+(to-from)*v.DType.Size()]
		if into {
			copy(there, own[i].Bytes())
		} else {
			copy(own[i].Bytes(), there)
		}
	}
}
