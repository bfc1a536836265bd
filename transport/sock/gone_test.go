package sock

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/transport"
)

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
