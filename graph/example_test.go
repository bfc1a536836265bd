package graph_test

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/text"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// Linear regression as a graph, then the segments of its training step.
func Example() {
	g := graph.New(tensor.F32)
	x, y := g.Input("x", 3), g.Input("label", 0)
	w := g.Variable("w", graph.Init{Kind: graph.Uniform, Scale: .1}, 3, 1)
	p := g.Named("predict", g.Reshape(g.MatMul(x, w), tensor.Dynamic))
	m := graph.Model{
		Task: graph.Regression, Predict: p, Label: y,
		Loss: g.Named("loss", g.SquaredLoss(p, y)), Weight: g.Named("weight", g.Count(y)),
	}
	fmt.Print(text.Format(g))

	step, err := graph.Train(g, m, optim.Rule{Kind: optim.SGD, LR: .1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range step.Segments {
		fmt.Println(s.Name, len(s.Nodes))
	}
	// Output:
	// graph f32
	// x = input column=x part=dense -> f32 [? 3]
	// label = input column=label part=dense -> f32 [?]
	// w = variable init=uniform scale=0.1 -> f32 [3 1]
	// matmul.3 = matmul x w -> f32 [? 1]
	// predict = reshape matmul.3 -> f32 [?]
	// loss = squaredloss predict label -> f32 []
	// weight = count label -> f32 []
	// forward/w 8
	// update/w 1
	// eval 4
}

// The first mistake is kept, and says which node it is of.
func ExampleGraph_Err() {
	g := graph.New(tensor.F32)
	h := g.MatMul(g.Input("x", 4), g.Variable("w", graph.Init{}, 3, 2))
	g.Relu(h)
	fmt.Println(g.Err())
	// Output:
	// graph: node "matmul.2": matmul(x [? 4], w [3 2]): cannot multiply [? 4] by [3 2]: inner dims 4 and 3 differ
}
