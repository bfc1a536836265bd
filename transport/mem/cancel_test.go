package mem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// A ctx that ends just before the receive is posted: the send is paired before
// it can give up. Whatever it then says is what happened: either the message
// was delivered, or the receive is left for the next one.
func TestCancelAsReceiveIsPosted(t *testing.T) {
	for _, size := range []int{8, 1 << 20} { // copied by the receiver, and by the sender
		synctest.Test(t, func(t *testing.T) {
			net := mem.NewNetwork(2)
			a, b := net.Endpoint(0), net.Endpoint(1)
			for round := range 64 {
				ctx, cancel := context.WithCancelCause(t.Context())
				sent := make(chan error, 1)
				go func() { sent <- a.Send(ctx, 1, 5, nil, make([]byte, size)) }()
				synctest.Wait() // the send waits for its receive
				r := &transport.Receive{Peer: 0, Tag: 5, Buf: make([]byte, size)}
				cancel(errors.New("too late"))
				if err := b.Post(r); err != nil {
					t.Fatal(err)
				}
				soon, stop := context.WithTimeout(t.Context(), time.Second)
				if err := <-sent; err != nil {
					if err := a.Send(soon, 1, 5, nil, make([]byte, size)); err != nil {
						t.Fatalf("round %d: the receive of %d bytes is lost: %v", round, size, err)
					}
				}
				if err := r.Wait(soon); err != nil || r.N != size {
					t.Fatalf("round %d: received %d bytes of %d: %v", round, r.N, size, err)
				}
				stop()
			}
			for _, e := range net.Endpoints() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
