// Collective sums a slice over all ranks. Start it on one machine with
//
//	gangline launch -n 4 -- go run ./examples/collective
//	mpirun -n 2 go run ./examples/collective
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/gangline/gangline"
)

func main() {
	ctx := context.Background()
	g, err := gangline.Join(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	values := []float64{float64(g.Rank()), 1}
	if err := g.AllReduce(ctx, values, gangline.Name("values")); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("rank %d of %d: %v\n", g.Rank(), g.Size(), values)
}
