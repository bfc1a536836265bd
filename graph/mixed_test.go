package graph_test

import (
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// In a graph for 16 bits, what is computed of parameters and its gradients are in 16 bits;
// losses, sums, what is computed of the batch alone, masters, slots and tables in f32. A
// reader in f32 sees a parameter as those in 16 bits do: rounded.
func TestMixedTypes(t *testing.T) {
	for _, low := range []tensor.DType{tensor.BF16, tensor.F16} {
		g := graph.New(low)
		x, y := g.Input("x", 4), g.Input("label", 0)
		words := g.Ragged("words")
		w, embed := g.Variable("w", graph.Init{}, 4, 1), g.Table("embed", graph.Init{}, 9, 1)
		h := g.MatMul(x, w)
		bag := g.Bag(g.GatherRows(embed, words.Keys()), words.Pos(), words.Offsets(), words.Weights())
		z := g.Reshape(g.Add(h, bag), tensor.Dynamic)
		norm, batch := g.Sum(g.Mul(w, w)), g.Mul(y, y)
		full := g.Sum(w)
		loss := g.Add(g.LogisticLoss(z, y), norm)
		step, err := graph.Train(g, graph.Model{Task: graph.Binary, Loss: loss, Weight: g.Count(y), Predict: z, Label: y},
			optim.Rule{Kind: optim.Momentum, LR: .1, Momentum: .9})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what string
			n    *graph.Node
			want tensor.DType
		}{
			{"a product", h, low},
			{"a bag of rows", bag, low},
			{"a product of the batch alone", batch, tensor.F32},
			{"what a sum reads", full.In[0], tensor.F32},
			{"a sum", norm, tensor.F32},
			{"the loss", loss, tensor.F32},
			{"a parameter", w, tensor.F32},
			{"a table", embed, tensor.F32},
		} {
			if c.n.DType != c.want {
				t.Errorf("%v: %s is %v, want %v", low, c.what, c.n.DType, c.want)
			}
		}
		if back := full.In[0]; back.Op != graph.Cast || back.In[0].Op != graph.Cast || back.In[0].DType != low || back.In[0].In[0] != w {
			t.Errorf("%v: a reader in f32 sees %s of %s, want the parameter rounded to %v", low, back.Op, back.In[0].Op, low)
		}
		for i := range step.Params {
			p := &step.Params[i]
			want := low
			if p.IsTable() {
				want = tensor.F32
			}
			if p.Grad.DType != want || p.Slots[0].DType != tensor.F32 {
				t.Errorf("%v: of %s, the gradient is %v and the slot %v, want %v and f32", low, p.Var.Name, p.Grad.DType, p.Slots[0].DType, want)
			}
		}
		if (step.Scaling != nil) != (low == tensor.F16) {
			t.Errorf("%v: the step has the loss scale %v", low, step.Scaling)
		}
	}
}
