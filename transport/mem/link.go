package mem

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gangline/gangline/transport"
)

// copyNow is the longest message that Post copies itself, in bytes. A longer
// one is copied by its sender, so that Post never takes long.
const copyNow = 32 << 10

// link is the way of messages from one rank to another. All fields below mu are
// guarded by it; nothing waits while holding it.
type link struct {
	Link
	from, to *Endpoint

	mu      sync.Mutex
	lines   transport.Lines[line]
	sendErr error // why nothing leaves any more
	recvErr error // why nothing arrives any more
	paused  int   // by how many of the two ranks
	freeAt  time.Time
	flights []*flight
	spare   []*sending
}

// line is what waits for one tag. Unless the link is paused, one of the two
// queues is empty.
type line struct {
	posted transport.Queue[*transport.Receive]
	sends  transport.Queue[*sending]
}

func idle(n *line) bool { return n.posted.Len() == 0 && n.sends.Len() == 0 }

// sending is a Send that waits for its receive.
type sending struct {
	head, body []byte
	r          *transport.Receive // nil if the message was copied by Post
	done       chan error
}

func (l *link) post(r *transport.Receive) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recvErr != nil {
		return l.recvErr
	}
	n := l.lines.Get(r.Tag, idle)
	if n == nil {
		return fmt.Errorf("%w: more than %d tags busy", transport.ErrLimit, transport.MaxTags)
	}
	if n.posted.Len() >= transport.MaxPosted {
		return fmt.Errorf("%w: more than %d receives posted", transport.ErrLimit, transport.MaxPosted)
	}
	r.Arm(l.to.rank)
	n.posted.Push(r)
	l.match(n)
	return nil
}

// match pairs receives with sends as far as both are there. l.mu is held.
func (l *link) match(n *line) {
	for l.paused == 0 && n.posted.Len() > 0 && n.sends.Len() > 0 {
		r, s := n.posted.Pop(), n.sends.Pop()
		if size := len(s.head) + len(s.body); size <= min(copyNow, len(r.Buf)) && !l.timed() {
			l.deliver(r, s.head, s.body)
		} else {
			s.r = r
		}
		s.done <- nil
	}
}

func (l *link) timed() bool { return l.Delay > 0 || l.BytesPerSecond > 0 }

func (l *link) send(ctx context.Context, tag uint32, head, body []byte) error {
	l.mu.Lock()
	if l.sendErr != nil {
		defer l.mu.Unlock()
		return l.sendErr
	}
	n := l.lines.Get(tag, idle)
	if n == nil {
		l.mu.Unlock()
		return fmt.Errorf("%w: more than %d tags busy", transport.ErrLimit, transport.MaxTags)
	}
	var r *transport.Receive
	if l.paused == 0 && n.posted.Len() > 0 {
		r = n.posted.Pop()
		l.mu.Unlock()
	} else {
		if n.sends.Len() >= transport.MaxSends {
			l.mu.Unlock()
			return fmt.Errorf("%w: more than %d sends waiting", transport.ErrLimit, transport.MaxSends)
		}
		s := l.sending(head, body)
		n.sends.Push(s)
		l.mu.Unlock()
		var err error
		if r, err = l.wait(ctx, tag, s); r == nil {
			return err
		}
	}
	return l.carry(ctx, tag, r, head, body)
}

// wait ends when s has its receive, or has been copied (nil, nil), or failed.
func (l *link) wait(ctx context.Context, tag uint32, s *sending) (*transport.Receive, error) {
	var err error
	select {
	case err = <-s.done:
	case <-ctx.Done():
		if l.forget(tag, s) {
			return nil, context.Cause(ctx)
		}
		err = <-s.done // it was paired at the same moment
	}
	r := s.r
	l.mu.Lock()
	*s = sending{done: s.done}
	l.spare = append(l.spare, s)
	l.mu.Unlock()
	return r, err
}

// forget takes s from its line and reports whether it was there still.
func (l *link) forget(tag uint32, s *sending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.lines.Get(tag, idle)
	return n != nil && n.sends.RemoveFunc(func(o *sending) bool { return o == s })
}

// sending returns one that is ready to wait. l.mu is held.
func (l *link) sending(head, body []byte) *sending {
	var s *sending
	if k := len(l.spare); k > 0 {
		s, l.spare = l.spare[k-1], l.spare[:k-1]
	} else {
		s = &sending{done: make(chan error, 1)}
	}
	s.head, s.body = head, body
	return s
}

// carry takes the message to r, which is in no queue any more.
func (l *link) carry(ctx context.Context, tag uint32, r *transport.Receive, head, body []byte) error {
	size := len(head) + len(body)
	if room := r.Room(); size > room {
		err := fmt.Errorf("%w: message of %d bytes, room for %d", transport.ErrLimit, size, room)
		r.Complete(0, l.to.errorOf(l.from.rank, "receive from", tag, err))
		return err
	}
	if !l.timed() {
		l.deliver(r, head, body)
		return nil
	}
	return l.fly(ctx, tag, r, head, body)
}

// deliver copies the message into r and completes it.
func (l *link) deliver(r *transport.Receive, head, body []byte) {
	if n, err := l.fill(r, head, body); err != nil {
		r.Complete(0, err)
	} else {
		l.count(n)
		r.Complete(n, nil)
	}
}

// fill copies the message into r and counts it as sent.
func (l *link) fill(r *transport.Receive, head, body []byte) (int, error) {
	n := len(head) + len(body)
	l.from.messagesSent.Add(1)
	l.from.bytesSent.Add(int64(n))
	if !r.Fit(n) {
		err := fmt.Errorf("%w: message of %d bytes, Grow gave %d", transport.ErrLimit, n, len(r.Buf))
		return 0, l.to.errorOf(l.from.rank, "receive from", r.Tag, err)
	}
	copy(r.Buf[copy(r.Buf, head):], body)
	return n, nil
}

// count counts a message of n bytes as received.
func (l *link) count(n int) {
	l.to.messagesReceived.Add(1)
	l.to.bytesReceived.Add(int64(n))
}

// broken says whether the link has failed.
func (l *link) broken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sendErr != nil || l.recvErr != nil
}

// fail ends everything that waits on the link; the first failure is the one
// that stays. With crash, messages that have left do not arrive.
func (l *link) fail(sendErr, recvErr error, crash bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sendErr == nil {
		l.sendErr, l.recvErr = sendErr, recvErr
		l.lines.All(func(tag uint32, n *line) {
			for n.posted.Len() > 0 {
				n.posted.Pop().Complete(0, l.to.errorOf(l.from.rank, "receive from", tag, recvErr))
			}
			for n.sends.Len() > 0 {
				n.sends.Pop().done <- sendErr
			}
		})
	}
	l.ground(sendErr, recvErr, crash)
}

// setPaused is called with the network's lock held.
func (l *link) setPaused(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on {
		l.paused++
		return
	}
	l.paused--
	l.lines.All(func(_ uint32, n *line) { l.match(n) })
}
