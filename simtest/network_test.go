package simtest

import (
	"time"

	"github.com/gangline/gangline/wire"
)

// message is on its way from one rank to another.
type message struct {
	head     [wire.HeaderSize]byte // a real frame's: with generation and tag
	from, to int
	body     any
}

// line is what keeps an order: messages of one tag between two processes.
type line struct {
	gen      uint32
	from, to int
	tag      uint32
}

// network carries messages. Those of one line arrive in order, others as the
// delays fall. What a process sent before it died may still arrive, also after
// its successor has begun.
type network struct {
	last    map[line]time.Duration   // when the last message of a line arrives
	clogged map[[2]int]time.Duration // until when, by from and to
	// refused counts messages of another generation that reached a process.
	refused int
}

func newNetwork() network {
	return network{last: map[line]time.Duration{}, clogged: map[[2]int]time.Duration{}}
}

// send gives a message to the network. The body must not change any more,
// except that a store's answer may be a view of its state (ps.Action.Blocks).
func (m *member) send(to int, tag uint32, body any) {
	c := m.c
	msg := &message{from: m.rank, to: to, body: body}
	if err := (wire.Header{Kind: wire.Data, Generation: m.gen, Tag: tag}).Encode(&msg.head); err != nil {
		c.violate("rank %d sends a frame that cannot be: %v", m.rank, err)
	}
	leave := max(c.now, c.clogged[[2]int{m.rank, to}])
	l := line{m.gen, m.rank, to, tag}
	at := max(leave+c.delay(m.rank), c.last[l])
	c.last[l] = at
	c.add(&event{at: at, msg: msg})
}

// delay draws how long a message of a rank takes.
func (c *cluster) delay(rank int) time.Duration {
	d := c.s.delay + time.Duration(c.rng.Int64N(int64(c.s.jitter)))
	if c.s.tail > 0 && c.rng.Float64() < c.s.tail {
		d *= 20
	}
	return time.Duration(float64(d) * min(c.s.slow[rank], 2))
}

// work draws how long a task of a rank takes.
func (c *cluster) work(rank int) time.Duration {
	d := time.Millisecond + time.Duration(c.rng.Int64N(int64(c.s.jitter)))
	return time.Duration(float64(d) * c.s.slow[rank])
}

// control draws how long a message to or from the coordinator takes.
func (c *cluster) control() time.Duration {
	return time.Duration(1+c.rng.IntN(20)) * time.Millisecond
}

// deliver is the reading side of an endpoint, with the fence: what another
// generation has sent goes no further (transport/sock refuses it likewise).
func (m *member) deliver(msg *message) {
	h, err := wire.Decode(&msg.head)
	if err != nil {
		m.c.violate("rank %d got a frame that cannot be: %v", m.rank, err)
		return
	}
	if h.Generation != m.gen {
		m.c.refused++
		m.c.note("rank %d refuses a message of generation %d from rank %d", m.rank, h.Generation, msg.from)
		return
	}
	m.take(msg.from, h.Tag, msg.body)
}
