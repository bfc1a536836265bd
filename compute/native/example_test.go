package native_test

import (
	"fmt"

	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// A segment of two nodes, compiled once and run on a batch of two rows.
func Example() {
	g := graph.New(tensor.F32)
	x := g.Input("x", 2)
	w := g.Variable("w", graph.Init{}, 2, 1)
	y := g.Relu(g.MatMul(x, w))
	program, err := native.New().Compile(&graph.Segment{
		Name: "forward", In: []*graph.Node{x, w}, Nodes: g.Nodes()[2:], Out: []*graph.Node{y},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out := tensor.New(tensor.F32, 0, 1)
	err = program.Run(0, []*tensor.Tensor{
		tensor.From([]float32{1, 2, 3, -4}, 2, 2),
		tensor.From([]float32{1, 1}, 2, 1),
	}, []*tensor.Tensor{out})
	fmt.Println(out.Shape(), out.F32(), err)
	// Output: [2 1] [3 0] <nil>
}
