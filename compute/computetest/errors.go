package computetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// badRun is a run that must fail with an error that contains the words.
type badRun struct {
	name string
	op   graph.Op
	attr graph.Attr
	in   func() tensors
	want []string
}

func ints(v ...int64) *tensor.Tensor     { return tensor.From(v, len(v)) }
func zeros(shape ...int) *tensor.Tensor  { return tensor.New(tensor.F64, shape...) }
func values(v ...float64) *tensor.Tensor { return tensor.From(v, len(v)) }

// badValues are ids and labels that kernels must refuse.
func badValues() []badRun {
	sgd := graph.Attr{Rule: optim.Rule{Kind: optim.SGD, LR: 1}}
	bag := func(ids, offsets *tensor.Tensor) func() tensors {
		return func() tensors { return tensors{zeros(4, 2), ids, offsets, zeros(ids.Elems())} }
	}
	return []badRun{
		{"id too large", graph.Gather, graph.Attr{}, func() tensors { return tensors{zeros(4, 2), ints(0, 3, 4)} }, []string{"entry 2", "id 4", "[0, 4)"}},
		{"id negative", graph.Gather, graph.Attr{}, func() tensors { return tensors{zeros(4, 2), ints(-1)} }, []string{"entry 0", "id -1"}},
		{"no rows", graph.Gather, graph.Attr{}, func() tensors { return tensors{zeros(0, 2), ints(0)} }, []string{"entry 0", "id 0", "[0, 0)"}},
		{"key", graph.GatherRows, graph.Attr{}, func() tensors { return tensors{zeros(4, 1), ints(1, 9)} }, []string{"entry 1", "id 9"}},
		{"gradient id", graph.GatherGrad, graph.Attr{}, func() tensors { return tensors{zeros(2, 2), ints(1, 7), zeros(4, 2)} }, []string{"entry 1", "id 7"}},
		{"bag id", graph.Bag, graph.Attr{}, bag(ints(0, 8), ints(0, 2)), []string{"entry 1", "id 8"}},
		{"offsets start", graph.Bag, graph.Attr{}, bag(ints(0, 1), ints(1, 2)), []string{"offsets", "from 1 to 2"}},
		{"offsets end", graph.Bag, graph.Attr{}, bag(ints(0, 1), ints(0, 1)), []string{"offsets", "from 0 to 1", "2"}},
		{"offsets order", graph.Bag, graph.Attr{}, bag(ints(0, 1), ints(0, 5, 1, 2)), []string{"bag 1", "from 5 to 1"}},
		{"bag gradient id", graph.BagGrad, graph.Attr{}, func() tensors {
			return tensors{zeros(1, 2), ints(5), ints(0, 1), zeros(1), zeros(4, 2)}
		}, []string{"entry 0", "id 5"}},
		{"class", graph.SoftmaxLoss, graph.Attr{}, func() tensors { return tensors{zeros(3, 4), values(0, 4, 1)} }, []string{"row 1", "label 4", "[0, 4)"}},
		{"class fraction", graph.SoftmaxLoss, graph.Attr{}, func() tensors { return tensors{zeros(1, 4), values(1.5)} }, []string{"row 0", "label 1.5"}},
		{"class negative", graph.SoftmaxLossGrad, graph.Attr{}, func() tensors { return tensors{zeros(1, 4), values(-1), values(1)} }, []string{"row 0", "label -1"}},
		{"target", graph.LogisticLoss, graph.Attr{}, func() tensors { return tensors{zeros(2), values(0, -1)} }, []string{"row 1", "label -1", "[0, 1]"}},
		{"target gradient", graph.LogisticGrad, graph.Attr{}, func() tensors { return tensors{zeros(2), values(0, 2), values(1)} }, []string{"row 1", "label 2"}},
		{"update key", graph.UpdateRows, sgd, func() tensors { return tensors{zeros(4, 2), ints(1, 4), zeros(2, 2), values(1)} }, []string{"entry 1", "id 4"}},
		{"update order", graph.UpdateRows, sgd, func() tensors { return tensors{zeros(4, 2), ints(2, 2), zeros(2, 2), values(1)} }, []string{"entry 1", "key 2", "distinct"}},
	}
}

// badShapes are shapes that do not fit at run time.
func badShapes() []badRun {
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
	cols := graph.Attr{Axis: 1, Start: 2, End: 5}
	sgd := graph.Attr{Rule: optim.Rule{Kind: optim.SGD, LR: 1}}
	return []badRun{
		{"inner", graph.MatMul, graph.Attr{}, shape(s(2, 3), s(4, 5)), []string{"[2 3]", "[4 5]"}},
		{"inner transposed", graph.MatMul, graph.Attr{TransA: true}, shape(s(2, 3), s(3, 5)), []string{"[2 3]", "[3 5]"}},
		{"rank", graph.MatMul, graph.Attr{}, shape(s(2), s(2, 5)), []string{"[2]"}},
		{"broadcast", graph.Add, graph.Attr{}, shape(s(2, 3), s(2)), []string{"[2]", "[2 3]"}},
		{"broadcast both", graph.Mul, graph.Attr{}, shape(s(2, 1, 3), s(4, 2)), []string{"[2 1 3]", "[4 2]"}},
		{"no vectors", graph.Softmax, graph.Attr{}, shape(s()), []string{"[]"}},
		{"rows of scalar", graph.Count, graph.Attr{}, shape(s()), []string{"scalar"}},
		{"sum rows", graph.SumRows, graph.Attr{}, shape(s()), []string{"[]"}},
		{"reshape", graph.Reshape, graph.Attr{Shape: tensor.Shape{4, tensor.Dynamic}}, shape(s(3, 2)), []string{"[3 2]", "[4 ?]"}},
		{"concat", graph.Concat, graph.Attr{Axis: 1}, shape(s(3, 2), s(2, 2)), []string{"[3 2]", "[2 2]"}},
		{"slice", graph.Slice, cols, shape(s(3, 4)), []string{"[2, 5)", "[3 4]"}},
		{"slice axis", graph.Slice, cols, shape(s(9)), []string{"dim 1", "[9]"}},
		{"pad", graph.PadSlice, cols, shape(s(3, 2), s(3, 7)), []string{"[3 2]", "[3 7]"}},
		{"relu gradient", graph.ReluGrad, graph.Attr{}, shape(s(3), s(4)), []string{"[3]", "[4]"}},
		{"spread", graph.SpreadRows, graph.Attr{}, shape(s(3), s(4, 2)), []string{"[3]", "[4 2]"}},
		{"reshape like", graph.ReshapeLike, graph.Attr{}, shape(s(3), s(4)), []string{"[3]", "[4]"}},
		{"fill", graph.FillLike, graph.Attr{}, shape(s(2), s(4)), []string{"[2]"}},
		{"labels", graph.LogisticLoss, graph.Attr{}, shape(s(2), s(3)), []string{"[2]", "[3]"}},
		{"label column", graph.SquaredLoss, graph.Attr{}, shape(s(2, 2), s(2)), []string{"[2 2]"}},
		{"class rows", graph.SoftmaxLoss, graph.Attr{}, shape(s(2), s(2)), []string{"[2]"}},
		{"loss gradient", graph.SquaredGrad, graph.Attr{}, shape(s(2), s(2), s(2)), []string{"[2]", "scalar"}},
		{"update", graph.Update, sgd, shape(s(2), s(3), s()), []string{"[2]", "[3]"}},
		{"total", graph.Update, sgd, shape(s(2), s(2), s(2)), []string{"total", "[2]"}},
		{"bag weights", graph.Bag, graph.Attr{}, func() tensors { return tensors{zeros(4, 2), ints(1, 2), ints(0, 2), zeros(1)} }, []string{"[1]", "2 entries"}},
		{"no offsets", graph.Bag, graph.Attr{}, func() tensors { return tensors{zeros(4, 2), ints(), ints(), zeros(0)} }, []string{"offsets", "[0]"}},
		{"gather gradient", graph.GatherGrad, graph.Attr{}, func() tensors { return tensors{zeros(3, 2), ints(1, 2), zeros(4, 2)} }, []string{"[3 2]", "2 entries"}},
		{"rows of vector", graph.Gather, graph.Attr{}, func() tensors { return tensors{zeros(4), ints(1)} }, []string{"[4]"}},
		{"ids of matrix", graph.Gather, graph.Attr{}, func() tensors { return tensors{zeros(4, 2), tensor.New(tensor.I64, 1, 1)} }, []string{"[1 1]"}},
		{"bag gradient", graph.BagGrad, graph.Attr{}, func() tensors {
			return tensors{zeros(3, 2), ints(1, 2), ints(0, 2), zeros(2), zeros(4, 2)}
		}, []string{"[3 2]", "1 bags"}},
		{"table of vectors", graph.UpdateRows, sgd, func() tensors { return tensors{zeros(4), ints(1), zeros(1), values(1)} }, []string{"[4]"}},
		{
			"slot", graph.Update,
			graph.Attr{Rule: optim.Rule{Kind: optim.Momentum, LR: 1}},
			shape(s(2), s(2), s(), s(3)),
			[]string{"slot 0", "[3]"},
		},
		{"update rows", graph.UpdateRows, sgd, func() tensors { return tensors{zeros(4, 2), ints(1), zeros(2, 2), values(1)} }, []string{"[2 2]", "1 rows"}},
	}
}

// runErrors proves that what cannot be computed is an error that names the node
// and the values, never a panic, and that the program works afterwards.
func runErrors(t *testing.T, b compute.Backend, d tensor.DType) {
	for _, c := range slices.Concat(badValues(), badShapes(), badLayers()) {
		t.Run(string(c.op)+"/"+c.name, func(t *testing.T) {
			in := convertAll(c.in(), d)
			seg := segmentOf(c.op, c.attr, d, in)
			out := tensors{dirty(seg.Out[0].DType)}
			if c.op == graph.Update || c.op == graph.UpdateRows {
				seg.Out, out = seg.In[:1], in[:1]
			}
			before := convertAll(in, d)
			err := compile(t, b, seg).Run(0, in, out)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range append(c.want, "the-node", string(c.op)) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			for i := range in {
				if string(in[i].Bytes()) != string(before[i].Bytes()) {
					t.Errorf("input %d was changed", i)
				}
			}
		})
	}
}

// compileErrors proves that a wrong segment is refused by name, and that wrong
// tensors are refused at run time.
func compileErrors(t *testing.T, b compute.Backend, d tensor.DType) {
	in := tensors{zeros(2, 3), zeros(2, 3)}
	for _, c := range []struct {
		name string
		bend func(seg *graph.Segment)
		want string
	}{
		{"operator", func(s *graph.Segment) { s.Nodes[0].Op = "conv9d" }, "conv9d"},
		{"source", func(s *graph.Segment) { s.Nodes[0].Op = graph.Input }, "input"},
		{"arity", func(s *graph.Segment) { s.Nodes[0].In = s.Nodes[0].In[:1] }, "1 inputs"},
		{"dtype", func(s *graph.Segment) { s.In[1].DType = tensor.I64 }, "i64"},
		{"result", func(s *graph.Segment) { s.Nodes[0].DType = tensor.I32 }, "i32"},
		{"rule", func(s *graph.Segment) { bendUpdate(s, optim.Rule{Kind: optim.SGD}) }, "lr is 0"},
		{"slots", func(s *graph.Segment) { bendUpdate(s, optim.Rule{Kind: optim.Adam, LR: 1}) }, "rule adam keeps 2"},
		{"unknown input", func(s *graph.Segment) { s.In = s.In[:1] }, "in1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if b.Name() == "" {
				t.Error("the backend has no name")
			}
			seg := segmentOf(graph.Add, graph.Attr{}, d, in)
			c.bend(seg)
			_, err := b.Compile(seg)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "the-node") {
				t.Errorf("error is %v, want one with %q and the node", err, c.want)
			}
		})
	}
	seg := segmentOf(graph.Add, graph.Attr{}, d, in)
	seg.In[0].Shape = tensor.Shape{tensor.Dynamic, 3}
	p := compile(t, b, seg)
	good := convertAll(in, d)
	for _, c := range []struct {
		name    string
		in, out tensors
		want    string
	}{
		{"count", good[:1], tensors{dirty(d)}, "1 inputs"},
		{"shape", tensors{tensor.New(d, 2, 4), good[1]}, tensors{dirty(d)}, "[2 4]"},
		{"input dtype", tensors{good[0], tensor.New(tensor.I64, 2, 3)}, tensors{dirty(d)}, "i64"},
		{"missing", tensors{nil, good[1]}, tensors{dirty(d)}, "missing"},
		{"output dtype", good, tensors{dirty(tensor.I64)}, "i64"},
		{"shared", good, good[1:], "in1"},
	} {
		t.Run("run/"+c.name, func(t *testing.T) {
			if err := p.Run(0, c.in, c.out); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
	if err := p.Run(0, good, tensors{dirty(d)}); err != nil {
		t.Errorf("after errors: %v", err)
	}
}

// bendUpdate makes the node an update without slots.
func bendUpdate(s *graph.Segment, r optim.Rule) {
	n := s.Nodes[0]
	n.Op, n.Attr.Rule = graph.Update, r
	n.In = append(n.In, n.In[0])
}
