package compressed_test

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// Two ranks sum what is large of their vectors first; what is left comes with later sums.
func ExampleAllReduce() {
	net := mem.NewNetwork(2)
	done := make(chan []float32)
	for rank := range 2 {
		go func() {
			half, err := compress.NewTopK(.5)
			if err != nil {
				fmt.Println(err)
			}
			p := collective.Party{Endpoint: net.Endpoint(rank), Group: []int{0, 1}, Index: rank}
			a, err := compressed.NewAllReduce(p, half, 4, true)
			if err != nil {
				fmt.Println(err)
			}
			var all []float32
			for _, v := range [][]float32{{5, 1, 5, 1}, {0, 0, 0, 0}} {
				if err := a.Run(context.Background(), tensor.From(v, 4)); err != nil {
					fmt.Println(err)
				}
				all = append(all, v...)
			}
			done <- all
		}()
	}
	a, b := <-done, <-done
	fmt.Println(a[:4], "then", a[4:])
	fmt.Println(b[:4], "then", b[4:])
	for _, e := range net.Endpoints() {
		if err := e.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// [10 0 10 0] then [0 2 0 2]
	// [10 0 10 0] then [0 2 0 2]
}
