package ps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/gangline/gangline/transport"
)

// Client is a worker's side of the stores. Requests to different stores may go
// on at the same time; those to one store take turns. Once warm, Push and Pull
// allocate nothing, but the verdict of a step. After an error other than ErrLate, the store that gave it
// takes no more requests from this client: memory of the failed one may still
// be posted, so the endpoint must be closed before it is used for anything else.
type Client struct {
	ep    transport.Endpoint
	rank  int
	links []*link
}

// NewClient makes the client of the worker at rank. stores are the ranks that
// serve the stores (routing), layouts what each holds.
func NewClient(ep transport.Endpoint, rank int, stores []int, layouts []Layout) (*Client, error) {
	if len(stores) != len(layouts) {
		return nil, fmt.Errorf("ps: rank %d: %d stores with %d layouts", rank, len(stores), len(layouts))
	}
	c := &Client{ep: ep, rank: rank}
	for i := range layouts {
		if err := layouts[i].check(); err != nil {
			return nil, err
		}
		if layouts[i].Store != i || layouts[i].Stores != len(stores) {
			return nil, fmt.Errorf("ps: rank %d: layout %d is of store %d of %d", rank, i, layouts[i].Store, layouts[i].Stores)
		}
		c.links = append(c.links, newLink(c, &layouts[i], i, stores[i]))
	}
	return c, nil
}

// turn makes a request when it is its turn.
func (c *Client) turn(ctx context.Context, store int, what string, step int64, parts []Part, do func(*link, context.Context, int64, []Part) error) error {
	if store < 0 || store >= len(c.links) {
		return fmt.Errorf("ps: rank %d: there is no store %d of %d", c.rank, store, len(c.links))
	}
	l := c.links[store]
	if err := l.acquire(ctx); err != nil {
		return l.wrap(err, what, step)
	}
	defer l.release()
	return l.wrap(do(l, ctx, step, parts), what, step)
}

// Push gives the gradient sums of step to a store and returns when it holds
// them ("stored"): they change nothing before the step's verdict. Dense ranges
// are sent from Data itself, and so are rows if all are the store's. Of a step,
// every worker must push every state of the store exactly once, in one Push or
// several. Parts that are empty here are passed over. Two round trips.
func (c *Client) Push(ctx context.Context, store int, step int64, parts []Part) error {
	return c.turn(ctx, store, "push of step", step, parts, (*link).push)
}

func (l *link) push(ctx context.Context, step int64, parts []Part) error {
	if err := l.prepare(parts); err != nil || len(l.parts) == 0 {
		return err
	}
	if err := l.exchange(ctx, requestPush, step, "", l.body()); err != nil {
		return err
	}
	if l.reply.status != Continue {
		return nil // stored before
	}
	if err := l.c.ep.Post(&l.in); err != nil {
		return l.fail(err)
	}
	for i := range l.parts {
		if l.parts[i].bytes == 0 {
			continue
		}
		buf := l.buffer(i)
		l.move(i, true)
		if err := l.c.ep.Send(ctx, l.rank, tag(l.store, tagData), nil, buf); err != nil {
			return l.fail(err)
		}
	}
	return l.await(ctx)
}

// Pull reads states at version step: dense ranges into Data itself at [Lo, Hi),
// rows into the places of their keys. It waits until the store has that
// version, and fails if it has a later one. One round trip.
func (c *Client) Pull(ctx context.Context, store int, step int64, parts []Part) error {
	return c.turn(ctx, store, "pull for step", step, parts, (*link).pull)
}

func (l *link) pull(ctx context.Context, step int64, parts []Part) error {
	if err := l.prepare(parts); err != nil || len(l.parts) == 0 {
		return err
	}
	for i := range l.parts {
		if l.parts[i].bytes == 0 {
			continue
		}
		l.data[i].Buf = l.buffer(i)
		if err := l.c.ep.Post(l.data[i]); err != nil {
			return l.fail(err)
		}
	}
	if err := l.exchange(ctx, requestPull, step, "", l.body()); err != nil {
		return err
	}
	for i := range l.parts {
		r := l.data[i]
		if l.parts[i].bytes == 0 {
			continue
		}
		if err := r.Wait(ctx); err != nil {
			return l.fail(err)
		}
		if r.N != len(r.Buf) {
			return l.fail(fmt.Errorf("%w: data of %d bytes, want %d", errMalformed, r.N, len(r.Buf)))
		}
		r.Buf = nil
		l.move(i, false)
	}
	return nil
}

// Committed tells the client the verdict on a step. It rides on all requests
// until the next one; there must be one to every store that holds anything.
func (c *Client) Committed(step int64, weight float64) {
	v := &Verdict{Given: true, Step: step, Weight: weight}
	for _, l := range c.links {
		l.verdict.Store(v)
	}
}

// Flush brings the last verdict to every store and returns when all have
// carried it out.
func (c *Client) Flush(ctx context.Context) error {
	_, err := c.all(ctx, requestFlush, noStep, "")
	return err
}

// Snapshot asks every store to save its state, which must be at version step,
// under a name, and returns what each gave back for it (Config.OnSnapshot).
func (c *Client) Snapshot(ctx context.Context, step int64, name string) ([][]byte, error) {
	if len(name) > nameMax {
		return nil, fmt.Errorf("ps: rank %d: the snapshot's name has %d bytes, the limit is %d", c.rank, len(name), nameMax)
	}
	return c.all(ctx, requestSnapshot, step, name)
}

// Stats asks every store for its counts.
func (c *Client) Stats(ctx context.Context) ([]Stats, error) {
	tails, err := c.all(ctx, requestStats, noStep, "")
	if err != nil {
		return nil, err
	}
	stats := make([]Stats, len(tails))
	for i, tail := range tails {
		if err := json.Unmarshal(tail, &stats[i]); err != nil {
			return nil, c.links[i].wrap(err, "stats", noStep)
		}
	}
	return stats, nil
}

// Close says bye to every store, with the last verdict. A store's Run ends when all workers have. It does not close the
// endpoint.
func (c *Client) Close(ctx context.Context) error {
	_, err := c.all(ctx, requestBye, noStep, "")
	return err
}

// all makes a request without parts to all stores at once, and returns the
// tails of their replies and all errors, in order.
func (c *Client) all(ctx context.Context, kind requestKind, step int64, name string) ([][]byte, error) {
	tails, errs := make([][]byte, len(c.links)), make([]error, len(c.links))
	var wg sync.WaitGroup
	for i, l := range c.links {
		wg.Go(func() {
			var err error
			tails[i], err = l.plain(ctx, kind, step, name)
			errs[i] = l.wrap(err, kind.String(), step)
		})
	}
	wg.Wait()
	return tails, errors.Join(errs...)
}

func (l *link) plain(ctx context.Context, kind requestKind, step int64, name string) ([]byte, error) {
	if err := l.acquire(ctx); err != nil {
		return nil, err
	}
	defer l.release()
	l.q.parts = l.q.parts[:0]
	if err := l.exchange(ctx, kind, step, name, nil); err != nil {
		return nil, err
	}
	l.in.Buf = make([]byte, replyRoom) // the tail is the caller's now
	return l.reply.tail, nil
}
