package mem_test

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// Rank 1 posts before rank 0 sends, so nobody waits.
func ExampleNetwork() {
	w := mem.NewNetwork(2)
	ctx := context.Background()
	r := &transport.Receive{Peer: 0, Tag: 7, Buf: make([]byte, 64)}
	if err := w.Endpoint(1).Post(r); err != nil {
		fmt.Println(err)
	}
	if err := w.Endpoint(0).Send(ctx, 1, 7, []byte("gang"), []byte("line")); err != nil {
		fmt.Println(err)
	}
	if err := r.Wait(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s\n", r.Buf[:r.N])

	w.Kill(0)
	fmt.Println(w.Endpoint(1).Post(r))
	// Output:
	// gangline
	// rank 1: receive from rank 0 (tag 7): peer lost
}
