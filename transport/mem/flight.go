package mem

import (
	"context"
	"time"

	"github.com/gangline/gangline/transport"
)

// flight is a message on a link that takes time. It is in link.flights from the
// moment it has its receive until that is completed or given back.
type flight struct {
	r     *transport.Receive
	bytes int
	err   error       // of filling r
	over  chan error  // to the sender, if the link fails before all has left
	timer *time.Timer // until it lands; nil while it leaves
}

// fly waits until the link has taken the message; it lands later by itself.
func (l *link) fly(ctx context.Context, tag uint32, r *transport.Receive, head, body []byte) error {
	f := &flight{r: r, over: make(chan error, 1)}
	l.mu.Lock()
	if l.sendErr != nil {
		defer l.mu.Unlock()
		r.Complete(0, l.to.errorOf(l.from.rank, "receive from", tag, l.recvErr))
		return l.sendErr
	}
	now := time.Now()
	if l.freeAt.Before(now) {
		l.freeAt = now
	}
	if l.BytesPerSecond > 0 {
		l.freeAt = l.freeAt.Add(time.Duration(float64(len(head)+len(body)) / l.BytesPerSecond * float64(time.Second)))
	}
	wait := l.freeAt.Sub(now)
	l.flights = append(l.flights, f)
	l.mu.Unlock()

	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case err := <-f.over:
			return err
		case <-ctx.Done():
			if l.giveBack(tag, f) {
				return context.Cause(ctx)
			}
			return <-f.over
		}
	}
	return l.launch(f, head, body)
}

// giveBack undoes a flight that has not left; it reports false if the link
// failed meanwhile.
func (l *link) giveBack(tag uint32, f *flight) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.remove(f) {
		return false
	}
	n := l.lines.Get(tag, idle)
	if n == nil { // the tag's place was taken: as good as lost
		f.r.Complete(0, l.to.errorOf(l.from.rank, "receive from", tag, transport.ErrLimit))
		return true
	}
	n.posted.PushFront(f.r)
	l.match(n)
	return true
}

// launch copies the message and lets it land Delay later.
func (l *link) launch(f *flight, head, body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case err := <-f.over:
		return err
	default:
	}
	f.bytes, f.err = l.fill(f.r, head, body)
	l.from.flying.Add(1)
	if l.Delay <= 0 {
		l.landed(f)
		return nil
	}
	f.timer = time.AfterFunc(l.Delay, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.landed(f)
	})
	return nil
}

// landed completes f's receive, unless the link failed first. l.mu is held.
func (l *link) landed(f *flight) {
	defer l.from.flying.Done()
	if !l.remove(f) {
		return
	}
	if f.err == nil {
		l.count(f.bytes)
	}
	f.r.Complete(f.bytes, f.err)
}

// remove takes f from the flights and reports whether it was there.
func (l *link) remove(f *flight) bool {
	for i, o := range l.flights {
		if o == f {
			l.flights = append(l.flights[:i], l.flights[i+1:]...)
			return true
		}
	}
	return false
}

// ground ends all flights, or without crash those that have not left. l.mu is
// held.
func (l *link) ground(sendErr, recvErr error, crash bool) {
	kept := l.flights[:0]
	for _, f := range l.flights {
		if f.timer != nil && !crash {
			kept = append(kept, f)
			continue
		}
		if f.timer == nil {
			f.over <- sendErr
		} else if f.timer.Stop() {
			l.from.flying.Done()
		}
		f.r.Complete(0, l.to.errorOf(l.from.rank, "receive from", f.r.Tag, recvErr))
	}
	clear(l.flights[len(kept):])
	l.flights = kept
}
