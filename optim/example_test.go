package optim_test

import (
	"fmt"

	"github.com/gangline/gangline/optim"
)

// One step of gradient descent for four examples whose gradients add up to 2.
func ExampleDense() {
	rule := optim.Rule{Kind: optim.SGD, LR: 0.1}
	if err := rule.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	weights, gradientSum := []float32{1, 1}, []float32{2, 0}
	optim.Dense(rule, 0, 4, weights, gradientSum, nil)
	fmt.Println(weights)
	// Output: [0.95 1]
}
