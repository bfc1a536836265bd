package exec_test

import (
	"context"
	"fmt"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// counter is a Feeder whose rows are the number of the step.
type counter struct{}

func (counter) Feed(step int64, out []*tensor.Tensor) error {
	out[0].SetScalar(float64(step))
	return nil
}

// A plan of one rank that reads a weight and a loss and commits them.
func Example() {
	p := &plan.Plan{
		Name: "tiny", Window: 2,
		Values: []plan.Value{{Name: "weight", DType: tensor.F64, Class: plan.Scalar, State: plan.NoState}},
		Groups: [][]int{{0}},
		Ranks: [][]plan.Task{{
			{Kind: plan.Feed, Name: "batch", Out: []plan.Ref{{Value: 0}}, Lane: plan.Lane{Kind: plan.Reader}},
			{
				Kind: plan.Commit, Name: "step", In: []plan.Ref{{Value: 0}, {Value: 0}}, Out: []plan.Ref{{Value: 0}, {Value: 0}},
				Lane: plan.Lane{Kind: plan.Group}, After: []plan.Dep{{Task: 0}},
			},
		}},
	}
	e, err := exec.New(exec.Config{Plan: p, Feeder: counter{}, OnStep: func(step int64, r exec.Result) {
		fmt.Printf("step %d: weight %v, skipped %v\n", step, r.Weight, r.Skipped)
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := e.Run(context.Background(), 0, 3); err != nil {
		fmt.Println(err)
	}
	if err := e.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// step 0: weight 0, skipped true
	// step 1: weight 1, skipped false
	// step 2: weight 2, skipped false
}
