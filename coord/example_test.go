package coord_test

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/gangline/gangline/coord"
)

// Two ranks meet, work, and report.
func Example() {
	ctx := context.Background()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := coord.NewServer(coord.ServerConfig{World: 2, Token: "a secret", Generation: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(ln); err != nil {
			fmt.Println(err)
		}
	})
	rank := func(rank int) error {
		s, err := coord.Join(ctx, coord.JoinConfig{
			Address: ln.Addr().String(), Token: "a secret", Rank: rank, World: 2, Role: "worker", Digest: "of the plan",
		})
		if err != nil {
			return err
		}
		defer s.Close()
		// Work under s.Context() with s.Peers; give s.Fail the first error.
		return s.Done(ctx, []byte(fmt.Sprintf("rank %d of %d is done", rank, len(s.Peers))))
	}
	for r := range 2 {
		running.Go(func() {
			if err := rank(r); err != nil {
				fmt.Println(err)
			}
		})
	}
	outcome, err := server.Wait(ctx)
	if err != nil {
		fmt.Println(err)
	}
	server.Close()
	running.Wait()
	fmt.Println(string(outcome.Reports[0]))
	fmt.Println(string(outcome.Reports[1]))
	// Output:
	// rank 0 of 2 is done
	// rank 1 of 2 is done
}
