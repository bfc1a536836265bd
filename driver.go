package gangline

import (
	"context"
	"fmt"
	"time"

	"github.com/gangline/gangline/coord/crew"
)

// A group makes its calls one after the other. Who finds it idle drives it in its own
// goroutine; what was started waits in a queue for the driver, a goroutine that is
// started with the first Handle and ends with the group. Only who drives touches
// streams and runners.

// do makes a call and waits for it.
func (g *Group) do(c *call) error {
	g.mu.Lock()
	if err := g.unusable(); err != nil {
		g.mu.Unlock()
		return err
	}
	if g.busy {
		g.mu.Unlock()
		h := g.enqueue(c)
		g.waiting(1)
		<-h.done // its deadline bounds it
		g.waiting(-1)
		return h.err
	}
	g.busy = true
	g.waiters++
	g.mu.Unlock()
	err := g.perform(c)
	g.mu.Lock()
	g.waiters--
	if len(g.queue) > 0 {
		g.drive()
	} else {
		g.rest()
	}
	g.mu.Unlock()
	return err
}

// rest is when nobody drives any more. g.mu is held.
func (g *Group) rest() {
	g.busy = false
	g.idle.Broadcast()
}

// unusable returns why no call can be made. g.mu is held.
func (g *Group) unusable() error {
	if g.closed {
		return fmt.Errorf("gangline: group %s: %w", g.name, ErrClosed)
	}
	return g.world.over()
}

// enqueue starts a call. It waits for room in the queue: those in front have deadlines.
func (g *Group) enqueue(c *call) *Handle {
	h := &Handle{group: g, call: *c, done: make(chan struct{})}
	select {
	case g.slots <- struct{}{}:
	case <-c.ctx.Done():
		return h.fail(context.Cause(c.ctx))
	case <-g.world.ctx.Done():
		return h.fail(g.world.over())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.unusable(); err != nil {
		<-g.slots
		return h.fail(err)
	}
	g.queue = append(g.queue, h)
	if !g.busy {
		g.busy = true
		g.drive()
	}
	return h
}

// fail ends a call that was not made.
func (h *Handle) fail(err error) *Handle {
	h.err = err
	close(h.done)
	return h
}

// drive gives the turn to the driver. g.mu is held, and busy set.
func (g *Group) drive() {
	if !g.driver {
		g.driver = true
		g.running.Go(g.loop)
	}
	g.wake <- struct{}{} // there is room: only who is busy puts one there
}

// loop is the driver.
func (g *Group) loop() {
	for {
		select {
		case <-g.wake:
		case <-g.quit:
			return
		}
		for g.step() {
		}
	}
}

// step makes the next call of the queue; false if there is none, and the turn is over.
func (g *Group) step() bool {
	g.mu.Lock()
	if len(g.queue) == 0 {
		g.rest()
		g.mu.Unlock()
		return false
	}
	h := g.queue[0]
	g.queue = g.queue[1:]
	g.mu.Unlock()
	<-g.slots
	h.err = g.world.over()
	if h.err == nil {
		h.err = g.perform(&h.call)
	}
	close(h.done)
	return true
}

// drain waits until nobody drives: the calls that were begun have deadlines.
func (g *Group) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.busy {
		g.idle.Wait()
	}
}

// perform makes one call. Only who drives calls it.
func (g *Group) perform(c *call) error {
	if c.ctx.Err() != nil {
		return fmt.Errorf("gangline: %v on group %s was not begun: %w", c, g.name, context.Cause(c.ctx))
	}
	r, err := g.runner(c.key)
	if err != nil {
		return fmt.Errorf("gangline: %v on group %s: %w", c, g.name, err)
	}
	now := time.Now()
	g.mu.Lock()
	g.sequence++
	g.current, g.opened, g.began = c, true, now
	g.deadline = now.Add(c.within)
	if at, ok := c.ctx.Deadline(); ok && at.Before(g.deadline) {
		g.deadline = at
	}
	g.patience = now.Add(crew.Patience(g.deadline.Sub(now)))
	err = g.missed()
	deadline := g.deadline
	g.mu.Unlock()
	if err == nil {
		err = r(g.ctx, c)
	}
	if err != nil {
		err = g.broke(err, deadline)
	}
	g.streams.Forget()
	g.mu.Lock()
	g.opened, g.ended = false, time.Now()
	g.mu.Unlock()
	return err
}

// broke finds out why a call failed: that is why the job is over.
func (g *Group) broke(err error, deadline time.Time) error {
	if over := g.world.over(); over != nil {
		return over
	}
	return g.world.verdict(g, err, crew.VerdictTime(time.Until(deadline)))
}
