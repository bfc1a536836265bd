package model_test

import (
	"fmt"

	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/tensor"
)

// A click model on the columns of Criteo's logs.
func ExampleBuild() {
	g, m, err := model.Build(model.Config{
		Kind: "ctr", Dim: 8, Hidden: []int{64}, Seed: 1, Float: tensor.F32,
		Inputs: []model.Column{{Name: "num", Dim: 13}, {Name: "cat", Dim: 100_000, Ragged: true, PerRow: 26}},
	})
	fmt.Println(m.Task, m.Predict, err)
	fmt.Println(g.ByName("embed"))
	// Output:
	// binary logit = reshape add.26 -> f32 [?] <nil>
	// embed = table init=normal scale=0.01 seed=1 -> f32 [100000 8]
}

// A wrong spelling is answered with the right one.
func ExampleConfig_Validate() {
	fmt.Println(model.Config{Kind: "logistik"}.Validate())
	// Output:
	// model: kind: unknown "logistik": did you mean "logistic"? There are logistic, softmax, linear, mlp, cnn, fm, ctr, deepfm, dlrm, gpt
}
