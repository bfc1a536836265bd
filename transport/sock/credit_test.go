package sock

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/transport"
)

// A send whose ctx ends at the moment in which it is served gives its credit to
// the send behind it: without that, the receive would stay posted for ever.
func TestForgottenSendReturnsItsCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, theirs := pipeEndpoint()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		p := e.peers[1]
		const tag = 5
		first, second := &waiter{done: make(chan error, 1)}, &waiter{done: make(chan error, 1)}
		p.mu.Lock()
		line := p.lines.Get(tag, idle)
		line.waiting.Push(first)
		line.waiting.Push(second)
		p.mu.Unlock()
		if err := p.credited(tag, 10); err != nil {
			t.Fatal(err)
		}
		why := errors.New("step 12 took too long")
		if err := p.forget(tag, first, why); !errors.Is(err, why) {
			t.Errorf("the send that gave up: %v", err)
		}
		select {
		case err := <-second.done:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the credit is lost")
		}
		_ = theirs.Close()
		_ = e.Close()
	})
}

// When a peer is gone, what waits on it ends at once: receives that were posted,
// and sends that wait for a credit.
func TestGoneEndsAllWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, theirs := pipeEndpoint()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		r := &transport.Receive{Peer: 1, Tag: 1, Buf: make([]byte, 4)}
		if err := e.Post(r); err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		go func() { sent <- e.Send(soon, 1, 2, nil, []byte("body")) }()
		synctest.Wait()
		_ = theirs.Close()
		wantIs(t, r.Wait(soon), transport.ErrPeerLost)
		wantIs(t, <-sent, transport.ErrPeerLost)
		_ = e.Close()
	})
}
