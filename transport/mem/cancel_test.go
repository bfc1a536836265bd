package mem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// A ctx that ends right after the receive was posted comes too late: the
// message is paired, and is delivered, and Send says so. Which of the two a
// waiting Send sees first is chance, hence the rounds.
func TestCancelAfterPost(t *testing.T) {
	for _, size := range []int{8, 1 << 20} { // copied by the receiver, and by the sender
		synctest.Test(t, func(t *testing.T) {
			net := mem.NewNetwork(2)
			for round := range 64 {
				ctx, cancel := context.WithCancelCause(t.Context())
				sent := make(chan error, 1)
				go func() { sent <- net.Endpoint(0).Send(ctx, 1, 5, nil, make([]byte, size)) }()
				synctest.Wait() // the send waits for its receive
				r := &transport.Receive{Peer: 0, Tag: 5, Buf: make([]byte, size)}
				if err := net.Endpoint(1).Post(r); err != nil {
					t.Fatal(err)
				}
				cancel(errors.New("too late"))
				if err := <-sent; err != nil {
					t.Fatalf("round %d: %d bytes: send: %v", round, size, err)
				}
				if err := r.Wait(t.Context()); err != nil || r.N != size {
					t.Fatalf("round %d: received %d bytes of %d: %v", round, r.N, size, err)
				}
			}
			for _, e := range net.Endpoints() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
