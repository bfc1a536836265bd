package computetest

import "github.com/gangline/gangline/graph"

// badLayers are shapes and settings that do not fit, of operators with dims or
// windows to choose.
func badLayers() []badRun {
	shape := func(shapes ...[]int) func() tensors {
		return func() tensors {
			var in tensors
			for _, s := range shapes {
				in = append(in, zeros(s...))
			}
			return in
		}
	}
	s := func(d ...int) []int { return d }
	axis := func(a int) graph.Attr { return graph.Attr{Axis: a} }
	conv, pool, eps := graph.Attr{Stride: 1}, graph.Attr{Window: 3, Stride: 3}, graph.Attr{Eps: 1}
	q := s(2, 1, 3, 4)
	return []badRun{
		{"batches", graph.MatMul, graph.Attr{}, shape(s(2, 3, 4), s(3, 4, 5)), []string{"[2 3 4]", "[3 4 5]"}},
		{"batch of right", graph.MatMul, graph.Attr{}, shape(s(3, 4), s(2, 4, 5)), []string{"[3 4]", "[2 4 5]"}},
		{"inner of batch", graph.MatMul, graph.Attr{TransB: true}, shape(s(2, 3, 4), s(4, 5)), []string{"[2 3 4]", "[4 5]", "4 and 5"}},
		{"broadcast", graph.Div, graph.Attr{}, shape(s(2, 3), s(3, 2)), []string{"[2 3]", "[3 2]"}},
		{"broadcast", graph.Less, graph.Attr{}, shape(s(2), s(3)), []string{"[2]", "[3]"}},
		{"broadcast", graph.Where, graph.Attr{}, shape(s(2), s(2), s(3)), []string{"[2]", "[3]"}},
		{"axis", graph.SumAxis, axis(2), shape(s(2, 3)), []string{"dim 2", "[2 3]"}},
		{"negative axis", graph.Max, axis(-1), shape(s(2, 3)), []string{"dim -1", "[2 3]"}},
		{"axis of scalar", graph.ArgMax, axis(0), shape(s()), []string{"dim 0", "[]"}},
		{"spread", graph.SpreadAxis, axis(1), shape(s(3), s(2, 3)), []string{"[3]", "[2 3]"}},
		{"maximum", graph.MaxGrad, axis(0), shape(s(1, 2), s(2, 3)), []string{"[1 2]", "[2 3]"}},
		{"order", graph.Transpose, graph.Attr{Perm: []int{0, 0}}, shape(s(2, 3)), []string{"[0 0]", "[2 3]"}},
		{"short order", graph.Transpose, graph.Attr{Perm: []int{1, 0}}, shape(s(2, 3, 4)), []string{"[1 0]", "[2 3 4]"}},
		{"axis", graph.Concat, axis(3), shape(s(2, 3), s(2, 3)), []string{"dim 3", "[2 3]"}},
		{"gain", graph.LayerNorm, eps, shape(s(2, 3), s(2), s(3)), []string{"[2]", "[2 3]"}},
		{"bias", graph.LayerNorm, eps, shape(s(2, 3), s(3), s(3, 1)), []string{"[3 1]", "[2 3]"}},
		{"gain", graph.RMSNorm, eps, shape(s(2, 3), s(2)), []string{"[2]", "[2 3]"}},
		{"gradient", graph.RMSNormGrad, eps, shape(s(2, 3), s(3), s(3, 2)), []string{"[2 3]", "[3 2]"}},
		{"gradient", graph.LayerNormGainGrad, eps, shape(s(2, 3), s(2, 4)), []string{"[2 3]", "[2 4]"}},
		{"channels", graph.Conv2D, conv, shape(s(2, 3, 5, 5), s(4, 2, 3, 3)), []string{"[2 3 5 5]", "[4 2 3 3]"}},
		{"small image", graph.Conv2D, conv, shape(s(2, 3, 2, 5), s(4, 3, 3, 3)), []string{"[2 3 2 5]", "[4 3 3 3]"}},
		{"stride", graph.Conv2D, graph.Attr{}, shape(s(2, 3, 5, 5), s(4, 3, 3, 3)), []string{"stride 0"}},
		{"gradient", graph.Conv2DGradX, conv, shape(s(2, 4, 5, 5), s(4, 3, 3, 3), s(2, 3, 5, 5)), []string{"[2 4 5 5]", "[2 4 3 3]"}},
		{"gradient", graph.Conv2DGradW, conv, shape(s(2, 4, 3, 2), s(2, 3, 5, 5), s(4, 3, 3, 3)), []string{"[2 4 3 2]", "[2 4 3 3]"}},
		{"image", graph.MaxPool2D, pool, shape(s(3, 5, 5)), []string{"[3 5 5]"}},
		{"window", graph.AvgPool2D, pool, shape(s(1, 3, 5, 2)), []string{"[1 3 5 2]", "window of 3"}},
		{"gradient", graph.MaxPool2DGrad, pool, shape(s(1, 3, 2, 1), s(1, 3, 5, 5)), []string{"[1 3 2 1]", "[1 3 5 5]"}},
		{"keys", graph.CausalAttention, graph.Attr{}, shape(q, s(2, 1, 4, 4), q), []string{"[2 1 3 4]", "[2 1 4 4]"}},
		{"dims", graph.CausalAttention, graph.Attr{}, shape(s(3, 4), s(3, 4), s(3, 4)), []string{"[3 4]"}},
		{"gradient", graph.CausalAttentionGrad, graph.Attr{}, shape(q, q, q, s(2, 1, 3, 5)), []string{"[2 1 3 4]", "[2 1 3 5]"}},
		{"fields", graph.FMInteraction, graph.Attr{}, shape(s(2, 3)), []string{"[2 3]"}},
		{"one field", graph.DotInteraction, graph.Attr{}, shape(s(2, 1, 3)), []string{"[2 1 3]"}},
		{"gradient", graph.DotInteractionGrad, graph.Attr{}, shape(s(2, 3, 4), s(2, 4)), []string{"[2 3 4]", "[2 4]", "[2 3]"}},
		{"gradient", graph.FMInteractionGrad, graph.Attr{}, shape(s(2, 3, 4), s(3)), []string{"[2 3 4]", "[3]"}},
		{"gradient", graph.GeluGrad, graph.Attr{}, shape(s(2), s(3)), []string{"[2]", "[3]"}},
		{"rows", graph.Dropout, graph.Attr{}, func() tensors { return tensors{zeros(5, 2), ints(1, 2)} }, []string{"[5 2]", "[2]"}},
		{"no rows", graph.Dropout, graph.Attr{}, func() tensors { return tensors{zeros(5, 2), ints()} }, []string{"[5 2]", "[0]"}},
		{"mean id", graph.Bag, graph.Attr{Mean: true}, func() tensors {
			return tensors{zeros(4, 2), ints(0, -3), ints(0, 2), zeros(2)}
		}, []string{"entry 1", "id -3"}},
		{"mean gradient id", graph.BagGrad, graph.Attr{Mean: true}, func() tensors {
			return tensors{zeros(1, 2), ints(4), ints(0, 1), zeros(1), zeros(4, 2)}
		}, []string{"entry 0", "id 4", "[0, 4)"}},
	}
}
