package cut_test

import (
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/cut"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

func gpt(t *testing.T) *graph.Step {
	t.Helper()
	g, m, err := model.Build(model.Config{
		Kind: "gpt", Inputs: []model.Column{{Name: "tokens", Ragged: true, Dim: 16, PerRow: 8}}, Dim: 8, Layers: 3, Heads: 2, Float: tensor.F32,
	})
	if err != nil {
		t.Fatal(err)
	}
	step, err := graph.Train(g, m, optim.Rule{Kind: optim.Adam, LR: .1})
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// variables is the bytes that a segment reads of them, and how many they are.
func variables(seg *graph.Segment) (bytes, n int) {
	for _, x := range seg.In {
		if x.Op == graph.Variable {
			bytes += x.Shape.Elems() * x.DType.Size()
			n++
		}
	}
	return bytes, n
}

// Pieces read no more than the limit, or one variable; run one after the other they
// find what they read, and make what the whole made; and no piece behind the loss is
// before it.
func TestPieces(t *testing.T) {
	whole := gpt(t)
	for _, limit := range []int{1, 300, 1000, 1 << 20} {
		step := cut.Step(whole, limit)
		first, eval := 0, 0
		for i := range step.Segments {
			seg := &step.Segments[i]
			if err := seg.Check(); err != nil {
				t.Fatal(err)
			}
			if len(seg.Nodes) == 1 && seg.Nodes[0].Op == graph.Update {
				continue
			}
			if bytes, n := variables(seg); bytes > limit && n > 2 { // a norm reads its gain and bias at once
				t.Errorf("limit %d: %s reads %d bytes in %d variables", limit, seg.Name, bytes, n)
			}
			if seg.Eval {
				eval++
			}
		}
		runs := step.Forward
		ready := map[*graph.Node]bool{}
		for _, at := range runs {
			for _, n := range step.Segments[at].In {
				if !n.IsSource() && !ready[n] {
					t.Errorf("limit %d: %s reads %s before it is made", limit, step.Segments[at].Name, n.Name)
				}
			}
			for _, n := range step.Segments[at].Out {
				if ready[n] {
					t.Errorf("limit %d: %s is made twice", limit, n.Name)
				}
				ready[n] = true
			}
			if !ready[whole.Model.Loss] {
				first++
			}
		}
		for _, p := range whole.Params {
			if !ready[p.Grad] {
				t.Errorf("limit %d: nothing makes %s", limit, p.Grad.Name)
			}
		}
		if first == len(runs) || limit < 1000 && (first < 10 || eval < 10) || limit == 1<<20 && (first != 0 || eval != 1) {
			t.Errorf("limit %d: %d segments before that of the loss, %d of the evaluation", limit, first, eval)
		}
	}
	if len(whole.Forward) != len(whole.Params) {
		t.Error("the argument is changed")
	}
}
