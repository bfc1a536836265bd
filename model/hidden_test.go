package model

import (
	"testing"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Every hidden layer is rectified: without, a deep model trains, and is linear.
func TestHiddenLayersAreRectified(t *testing.T) {
	mixed := []Column{{Name: "x", Dim: 3}, {Name: "ids", Ragged: true, Dim: 40, PerRow: 2}}
	for _, c := range []Config{
		{Kind: "mlp", Inputs: mixed[:1], Hidden: []int{5, 4, 3}, Classes: 3},
		{Kind: "mlp", Inputs: mixed[:1], Hidden: []int{5}},
		{Kind: "ctr", Inputs: mixed, Hidden: []int{5, 4}, Dim: 2},
		{Kind: "ctr", Inputs: mixed, Dim: 2},
		{Kind: "deepfm", Inputs: mixed, Hidden: []int{5}, Dim: 2},
		{Kind: "dlrm", Inputs: mixed, Hidden: []int{5, 4}, Bottom: []int{3, 4}, Dim: 2},
		{Kind: "cnn", Inputs: []Column{{Name: "x", Dim: 64}}, Filters: []int{2, 3}, Hidden: []int{4}},
	} {
		c.Float = tensor.F32
		want := len(c.Hidden) + len(c.Bottom) + len(c.Filters)
		if c.Kind == "dlrm" {
			want++ // the last layer of the bottom network
		}
		g, _, err := Build(c)
		if err != nil {
			t.Fatal(err)
		}
		rectified := 0
		for _, n := range g.Nodes() {
			if n.Op == graph.Relu {
				rectified++
			}
		}
		if rectified != want {
			t.Errorf("%s with hidden layers %v has %d rectified ones, want %d", c.Kind, c.Hidden, rectified, want)
		}
	}
}
