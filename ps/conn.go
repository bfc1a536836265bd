package ps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
)

// conn is the server's side of one worker: one loop that receives a request,
// takes its data, waits for the machine's answer and sends it.
type conn struct {
	s       *Server
	rank    int
	store   int
	mailbox chan Action // 1: a worker has one request at a time
	pieces  []checkpoint.Piece

	in     transport.Receive
	q      request
	blocks []Block
	keys   []*tensor.Tensor // by part
	data   []*transport.Receive
	out    []byte
	bye    bool // said and answered
}

func newConn(s *Server, rank int) *conn {
	c := &conn{s: s, rank: rank, store: s.shard.layout.Store, mailbox: make(chan Action, 1)}
	c.in = transport.Receive{Peer: rank, Tag: tag(c.store, tagRequest)}
	c.in.Buf = make([]byte, requestHead+partHead*len(s.shard.layout.States)+nameMax)
	c.in.Grow = func(n int) []byte {
		if n > s.cfg.RequestMax {
			return nil // too short: transport.ErrLimit
		}
		return make([]byte, n+n/2)
	}
	return c
}

// serve runs until bye. Requests are awaited until serve ends, which another
// worker's loss may bring about; what was decided is sent as long as send
// lasts, which is a little longer, so that the reason of the end arrives.
func (c *conn) serve(send, serve context.Context) error {
	for !c.bye {
		if err := c.receive(serve); err != nil {
			if serve.Err() != nil {
				return context.Cause(serve)
			}
			return c.s.lost(c.rank, err)
		}
		if err := c.handle(send, serve); err != nil {
			if serve.Err() != nil {
				return context.Cause(serve)
			}
			return c.s.lost(c.rank, err)
		}
	}
	return nil
}

// receive takes the next request and prepares its blocks.
func (c *conn) receive(serve context.Context) error {
	if err := c.s.ep.Post(&c.in); err != nil {
		return err
	}
	if err := c.in.Wait(serve); err != nil {
		return err
	}
	if err := decodeRequest(c.in.Buf[:c.in.N], &c.q); err != nil {
		return err
	}
	c.blocks = c.blocks[:0]
	for len(c.keys) < len(c.q.parts) {
		c.keys = append(c.keys, tensor.New(tensor.I64, 0))
		c.data = append(c.data, &transport.Receive{Peer: c.rank, Tag: tag(c.store, tagData)})
	}
	raw := c.q.keys
	for i := range c.q.parts {
		p := &c.q.parts[i]
		b := Block{State: p.state}
		if p.table {
			b.Keys = c.keys[i]
			b.Keys.Resize(p.a)
			raw = raw[copy(b.Keys.Bytes(), raw):]
		} else {
			b.Lo, b.Hi = p.a, p.b
		}
		c.blocks = append(c.blocks, b)
	}
	return nil
}

// handle answers one request.
func (c *conn) handle(send, serve context.Context) error {
	kinds := [requestKinds]EventKind{
		requestPush: EventOffer, requestPull: EventPull, requestFlush: EventFlush,
		requestSnapshot: EventSnapshot, requestStats: EventFlush, requestBye: EventBye,
	}
	ev := Event{Kind: kinds[c.q.kind], From: c.rank, Seq: c.q.seq, Step: c.q.step, Verdict: c.q.verdict, Blocks: c.blocks}
	a, err := c.ask(serve, ev)
	if err != nil {
		return err
	}
	if a.Status == Continue {
		return c.push(send, serve, ev, a)
	}
	var tail []byte
	switch {
	case a.Kind == ActionSnapshot:
		tail, err = c.snapshot()
	case a.Kind == ActionReply && c.q.kind == requestStats:
		tail, err = json.Marshal(c.s.Stats())
	}
	if err != nil {
		a = Action{Kind: ActionRefuse, Status: Refused, Version: a.Version, Err: err}
	}
	c.bye = c.q.kind == requestBye && a.Kind == ActionReply
	if err := c.answer(send, a, tail); err != nil || a.Kind != ActionReply || c.q.kind != requestPull {
		return err
	}
	for i := range a.Blocks {
		if data := a.Blocks[i].Data.Bytes(); len(data) > 0 {
			if err := c.s.ep.Send(send, c.rank, tag(c.store, tagReplyData), data, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// push takes the data of an offer that was accepted. The receives are posted
// before the worker is told, so its data finds them.
func (c *conn) push(send, serve context.Context, ev Event, a Action) error {
	for i := range a.Blocks {
		r := c.data[i]
		if r.Buf = a.Blocks[i].Data.Bytes(); len(r.Buf) == 0 {
			continue
		}
		if err := c.s.ep.Post(r); err != nil {
			return err
		}
	}
	if err := c.answer(send, a, nil); err != nil {
		return err
	}
	for _, r := range c.data[:len(a.Blocks)] {
		if len(r.Buf) == 0 {
			continue
		}
		if err := r.Wait(serve); err != nil {
			return err
		}
		if r.N != len(r.Buf) {
			return fmt.Errorf("%w: data of %d bytes where %d were announced", errMalformed, r.N, len(r.Buf))
		}
	}
	ev.Kind, ev.Blocks, ev.Verdict = EventPush, append(c.blocks[:0], a.Blocks...), Verdict{}
	a, err := c.ask(serve, ev)
	if err != nil {
		return err
	}
	return c.answer(send, a, nil)
}

// ask steps the machine and waits for the answer. If the server ends while it
// waits, an answer that is there is taken first.
func (c *conn) ask(serve context.Context, ev Event) (Action, error) {
	c.s.step(ev)
	select {
	case a := <-c.mailbox:
		return a, nil
	case <-serve.Done():
	}
	select {
	case a := <-c.mailbox:
		return a, nil
	default:
		return Action{}, context.Cause(serve)
	}
}

// answer sends the head of a reply.
func (c *conn) answer(send context.Context, a Action, tail []byte) error {
	if a.Err != nil {
		tail = []byte(a.Err.Error())
	}
	if len(tail) > tailMax {
		a.Status, tail = Refused, fmt.Appendf(nil, "the reply has %d bytes, the limit is %d", len(tail), tailMax)
	}
	r := reply{kind: c.q.kind, status: a.Status, seq: c.q.seq, version: a.Version, tail: tail}
	c.out = appendReply(c.out[:0], &r)
	return c.s.ep.Send(send, c.rank, tag(c.store, tagReply), c.out, tail)
}

func (c *conn) snapshot() ([]byte, error) {
	pieces := c.pieces
	c.pieces = nil
	if c.s.cfg.OnSnapshot == nil {
		return nil, errors.New("this server takes no snapshots")
	}
	return c.s.cfg.OnSnapshot(c.q.step, c.q.name, pieces)
}
