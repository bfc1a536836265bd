package data_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/tensor"
)

// Two ranks take their parts of the same batch.
func Example() {
	src, err := data.Open(context.Background(), data.Spec{Format: "generated", Rows: 10, Buckets: 1000, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	order := data.Order{Seed: 1, Rows: src.Rows(), Batch: 4, Shuffle: true}
	for rank := range 2 {
		feeder, err := data.NewFeeder(src, order, rank, 2, []data.InputSpec{
			{Column: "label", Part: "dense", DType: tensor.F32, Dims: 1},
			{Column: "cat", Part: "ids", DType: tensor.I64, Dims: 1},
		})
		if err != nil {
			log.Fatal(err)
		}
		out := []*tensor.Tensor{tensor.New(tensor.F32, 0), tensor.New(tensor.I64, 0)}
		if err := feeder.Feed(0, out); err != nil {
			log.Fatal(err)
		}
		fmt.Println("rank", rank, "labels", out[0].Shape(), "ids", out[1].Shape())
	}
	fmt.Println(order.StepsPerEpoch(), "steps an epoch")
	// Output:
	// rank 0 labels [2] ids [52]
	// rank 1 labels [2] ids [52]
	// 3 steps an epoch
}
