//go:build unix

package stream_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
	"github.com/gangline/gangline/transport/stream"
)

// Two ranks open a stream, and one sends to the other.
func Example() {
	net := mem.NewNetwork(2) // in a job, the endpoint over sockets
	var wg sync.WaitGroup
	for rank := range 2 {
		wg.Go(func() {
			s, err := stream.Open(context.Background(), stream.Config{
				Endpoint: net.Endpoint(rank), Tag: 1, Rank: rank, World: 2, Members: []int{0, 1}, Token: "secret of the job",
			})
			if err != nil {
				log.Print(err)
				return
			}
			defer s.Close()
			if rank == 0 {
				_, err = s.To(1).Write([]byte("hello")) // it fits
			} else {
				err = listen(s, s.To(0), len("hello"))
			}
			if err != nil {
				log.Print(err)
			}
		})
	}
	wg.Wait()
	// Output: hello
}

// listen prints n bytes as they come.
func listen(s transport.Streams, from transport.Stream, n int) error {
	for n > 0 {
		p, err := from.Peek()
		if err != nil {
			return err
		}
		if len(p) == 0 {
			if err := s.Park(context.Background(), from, nil); err != nil {
				return err
			}
			continue
		}
		fmt.Printf("%s", p)
		from.Release(len(p))
		n -= len(p)
	}
	fmt.Println()
	return nil
}
