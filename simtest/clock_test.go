package simtest

import (
	"container/heap"
	"time"
)

// event is something that is going to happen.
type event struct {
	at  time.Duration
	seq uint64
	// m is whose event it is: it waits while m is paused and never happens once
	// m is dead. Of a message, m is whoever then lives at its destination. nil
	// is the world outside of all processes.
	m   *member
	msg *message
	do  func()
}

// events is a heap by (at, seq).
type events []*event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(*event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// clock is virtual time. Nothing in a scenario waits for anything else.
type clock struct {
	now   time.Duration
	seq   uint64
	queue events
	count int // events that happened
}

// add puts an event where it belongs.
func (c *clock) add(e *event) {
	c.seq++
	e.seq = c.seq
	heap.Push(&c.queue, e)
}

// after makes something happen to the world.
func (c *clock) after(d time.Duration, do func()) { c.add(&event{at: c.now + d, do: do}) }

// next takes the next event that can happen now; false if there is none at all.
// Events of a paused process are put off to its return. They keep their
// sequence, so that the order of messages outlives the pause.
func (c *cluster) next() bool {
	if len(c.queue) == 0 {
		return false
	}
	e := heap.Pop(&c.queue).(*event)
	m := e.m
	if e.msg != nil {
		m = c.members[e.msg.to]
	}
	if m == nil && e.msg == nil {
		c.now = e.at
		c.count++
		e.do()
		return true
	}
	if m == nil || m.dead {
		return true
	}
	if m.pausedUntil > e.at {
		e.at = m.pausedUntil
		heap.Push(&c.queue, e)
		return true
	}
	c.now = e.at
	if c.strike(m) { // it died, or stopped before this event
		if !m.dead {
			heap.Push(&c.queue, e)
		}
		return true
	}
	c.count++
	m.handled++
	if e.msg != nil {
		m.deliver(e.msg)
	} else {
		e.do()
	}
	return true
}
