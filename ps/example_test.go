package ps_test

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// One worker, one server, one step: nothing changes before the verdict, which
// rides on the pull of the next step.
func Example() {
	ctx := context.Background()
	net := mem.NewNetwork(2) // rank 0 works, rank 1 serves
	layout := ps.Layout{Stores: 1, States: []ps.State{{
		Name: "w", DType: tensor.F32, Shape: tensor.Shape{3}, Hi: 3, Rule: optim.Rule{Kind: optim.SGD, LR: .5},
	}}}
	shard, err := ps.NewShard(layout, []int{0})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- ps.NewServer(net.Endpoint(1), shard, []int{0}, ps.Config{}).Run(ctx) }()
	client, err := ps.NewClient(net.Endpoint(0), 0, []int{1}, []ps.Layout{layout})
	if err != nil {
		fmt.Println(err)
		return
	}

	w, g := tensor.New(tensor.F32, 3), tensor.From([]float32{4, 8, 16}, 3)
	fmt.Println(client.Push(ctx, 0, 0, []ps.Part{{Hi: 3, Data: g}}))
	client.Committed(0, 4) // the step has four examples
	fmt.Println(client.Pull(ctx, 0, 1, []ps.Part{{Hi: 3, Data: w}}))
	fmt.Println(w.F32())
	fmt.Println(client.Close(ctx), <-ended)
	// Output:
	// <nil>
	// <nil>
	// [-0.5 -1 -2]
	// <nil> <nil>
}
