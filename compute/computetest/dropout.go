package computetest

import (
	"math"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// dropout proves of the masks what the operator promises: how often and how
// independently elements go, that no cut of the batch changes which, that the
// gradient drops the same ones, and that an evaluation drops none.
func dropout(t *testing.T, b compute.Backend, d tensor.DType) {
	const rows, size, rate = 64, 257, .3
	index := make([]int64, rows)
	for i := range index {
		index[i] = int64(i)
	}
	run := func(t *testing.T, seed uint64, step int64, index []int64) []float64 {
		x := zeros(len(index), size)
		for i := range x.F64() {
			x.F64()[i] = 1
		}
		in := convertAll(tensors{x, ints(index...)}, d)
		seg := segmentOf(graph.Dropout, graph.Attr{Rate: rate, Seed: seed}, d, in)
		out := tensors{dirty(d)}
		if err := compile(t, b, seg).Run(step, in, out); err != nil {
			t.Fatal(err)
		}
		return convert(out[0], tensor.F64).F64()
	}
	whole := run(t, 1, 5, index)
	t.Run("share", func(t *testing.T) {
		all, sum, neighbours, below := float64(len(whole)), 0.0, 0.0, 0.0
		for i, v := range whole {
			if v != 0 && math.Abs(v-1/(1-rate)) > 1e-6 {
				t.Fatalf("element %d is %v, want 0 or %v", i, v, 1/(1-rate))
			}
			sum += v
			neighbours += (v - 1) * (whole[(i+1)%len(whole)] - 1)
			below += (v - 1) * (whole[(i+size)%len(whole)] - 1)
		}
		// The mean is 1 and the variance rate/(1-rate); neighbours in a row and
		// in a column are not correlated. Five standard deviations.
		variance := rate / (1 - rate)
		if off := math.Abs(sum/all-1) / math.Sqrt(variance/all); off > 5 {
			t.Errorf("the mean is %v, off by %v standard deviations", sum/all, off)
		}
		for _, c := range []float64{neighbours, below} {
			if off := math.Abs(c/all) / (variance / math.Sqrt(all)); off > 5 {
				t.Errorf("neighbours have a covariance of %v, off by %v standard deviations", c/all, off)
			}
		}
	})
	t.Run("cuts", func(t *testing.T) {
		for _, cut := range []int{0, 1, 17, rows} {
			parts := append(append([]float64{}, run(t, 1, 5, index[:cut])...), run(t, 1, 5, index[cut:])...)
			for i := range whole {
				if parts[i] != whole[i] {
					t.Fatalf("cut at %d: element %d differs", cut, i)
				}
			}
		}
	})
	t.Run("others", func(t *testing.T) {
		for name, other := range map[string][]float64{"seed": run(t, 2, 5, index), "step": run(t, 1, 6, index)} {
			same := 0
			for i := range whole {
				if whole[i] == other[i] {
					same++
				}
			}
			want := (1 - 2*rate*(1-rate)) * float64(len(whole))
			if math.Abs(float64(same)-want) > 5*math.Sqrt(float64(len(whole)))/2 {
				t.Errorf("another %s has the same mask in %d elements, want about %v", name, same, want)
			}
		}
	})
	t.Run("model", func(t *testing.T) { dropoutModel(t, b, d) })
}

// dropoutModel compares, over a whole step, what passed the dropout with the
// gradient of what went in, and looks at an evaluation.
func dropoutModel(t *testing.T, b compute.Backend, d tensor.DType) {
	g := graph.New(d)
	w := g.Variable("w", graph.Init{}, 1, 50)
	h := g.MatMul(g.Input("x", 1), w)
	z := g.SumRows(g.Dropout(h, .5, 9))
	y := g.Input("y", 0)
	s := mustTrain(t, g, graph.Model{Task: graph.Regression, Loss: g.SquaredLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}, rules()[0])
	seg := &s.Segments[s.Forward[0]]
	in := func(seg *graph.Segment) tensors {
		var in tensors
		for _, n := range seg.In {
			v := values(1) // x and w are 1, y is -1: the gradient of z is positive
			switch {
			case n == y:
				v = values(-1)
			case n.DType == tensor.I64:
				v = ints(12)
			case n == w:
				v = zeros(1, 50)
				for i := range v.F64() {
					v.F64()[i] = 1
				}
			default:
				v.Resize(1, 1)
			}
			in = append(in, convert(v, d))
		}
		return in
	}
	out, kept, sum := outputs(seg), 0, 0.0
	if err := compile(t, b, seg).Run(3, in(seg), out); err != nil {
		t.Fatal(err)
	}
	for i, n := range seg.Out {
		v := convert(out[i], tensor.F64).F64()
		if n == s.Params[0].Grad {
			for _, grad := range v {
				if grad != 0 {
					kept++
				}
			}
		}
		if n == s.Model.Loss {
			sum = math.Sqrt(2*v[0]) - 1 // (z+1)²/2 with z twice the kept ones
		}
	}
	if kept == 0 || kept == 50 || math.Abs(sum-2*float64(kept)) > 1e-4 {
		t.Errorf("the gradient kept %d of 50, the forward pass %v", kept, sum/2)
	}
	eval := &s.Segments[s.Eval]
	out = outputs(eval)
	if err := compile(t, b, eval).Run(3, in(eval), out); err != nil {
		t.Fatal(err)
	}
	for i, n := range eval.Out {
		if n == z && convert(out[i], tensor.F64).F64()[0] != 50 {
			t.Errorf("the evaluation predicts %v, want 50", out[i].Scalar())
		}
	}
}
