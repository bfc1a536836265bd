package sock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/sock"
)

// Two ranks of one process, as two processes would: each listens, learns the
// other's address, connects. Here rank 1 greets rank 0.
func Example() {
	ctx := context.Background()
	listeners, addrs := make([]*sock.Listener, 2), make([]string, 2)
	for rank := range 2 {
		l, err := sock.Listen(sock.Config{Network: "unix", Rank: rank, World: 2, Generation: 1, Token: "secret of the job"})
		if err != nil {
			fmt.Println(err)
			return
		}
		listeners[rank], addrs[rank] = l, l.Addr()
	}
	run := func(rank int) error {
		e, err := listeners[rank].Connect(ctx, addrs, nil)
		if err != nil {
			return err
		}
		defer e.Close()
		if rank == 1 {
			return e.Send(ctx, 0, 7, nil, []byte("hello from rank 1"))
		}
		r := &transport.Receive{Peer: 1, Tag: 7, Buf: make([]byte, 64)}
		if err := e.Post(r); err != nil {
			return err
		}
		if err := r.Wait(ctx); err != nil {
			return err
		}
		fmt.Printf("%s\n", r.Buf[:r.N])
		return nil
	}
	var wg sync.WaitGroup
	for rank := range 2 {
		wg.Go(func() {
			if err := run(rank); err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
	// Output: hello from rank 1
}
