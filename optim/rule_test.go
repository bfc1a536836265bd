package optim_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/optim"
)

// TestValidate proves that every bad setting is refused by an error with the
// field as a job spells it and its value.
func TestValidate(t *testing.T) {
	good := []optim.Rule{
		{Kind: optim.SGD, LR: 0.1},
		{Kind: optim.SGD, LR: 0.1, L2: 1e-4},
		{Kind: optim.Momentum, LR: 0.1, Momentum: 0.5, Nesterov: true},
		{Kind: optim.Momentum, LR: 0.1},
		{Kind: optim.Adagrad, LR: 0.1, Eps: 1e-6, InitialAccumulator: 0.1},
		{Kind: optim.Adam, LR: 0.1, Beta1: 0.8, Beta2: 0.99, Eps: 1e-6},
	}
	for _, r := range good {
		if err := r.Validate(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
		if err := r.Defaults().Validate(); err != nil {
			t.Errorf("%+v with defaults: %v", r, err)
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		rule optim.Rule
		want []string
	}{
		{optim.Rule{LR: 1}, []string{"kind", `""`, "sgd, momentum, adagrad or adam"}},
		{optim.Rule{Kind: "adamw", LR: 1}, []string{"kind", "adamw"}},
		{optim.Rule{Kind: optim.SGD}, []string{"lr is 0", "> 0"}},
		{optim.Rule{Kind: optim.SGD, LR: -1}, []string{"lr is -1"}},
		{optim.Rule{Kind: optim.SGD, LR: nan}, []string{"lr is NaN"}},
		{optim.Rule{Kind: optim.SGD, LR: inf}, []string{"lr is +Inf"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, L2: -2}, []string{"l2 is -2", ">= 0"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, L2: nan}, []string{"l2 is NaN"}},
		{optim.Rule{Kind: optim.Momentum, LR: 1, Momentum: 1}, []string{"momentum is 1", "[0, 1)"}},
		{optim.Rule{Kind: optim.Momentum, LR: 1, Momentum: nan}, []string{"momentum is NaN"}},
		{optim.Rule{Kind: optim.Adam, LR: 1, Beta1: -0.5}, []string{"beta1 is -0.5"}},
		{optim.Rule{Kind: optim.Adam, LR: 1, Beta2: 1}, []string{"beta2 is 1"}},
		{optim.Rule{Kind: optim.Adam, LR: 1, Eps: inf}, []string{"eps is +Inf"}},
		{optim.Rule{Kind: optim.Adagrad, LR: 1, Eps: 1e-40}, []string{"eps is 1e-40"}},
		{optim.Rule{Kind: optim.Adagrad, LR: 1, InitialAccumulator: -1}, []string{"initial_accumulator is -1"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, Momentum: 0.5}, []string{"momentum is 0.5", "sgd does not use it"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, Nesterov: true}, []string{"nesterov is true", "sgd"}},
		{optim.Rule{Kind: optim.Momentum, LR: 1, Beta1: 0.5}, []string{"beta1 is 0.5", "momentum does not"}},
		{optim.Rule{Kind: optim.Momentum, LR: 1, Beta2: 0.5}, []string{"beta2 is 0.5"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, Eps: 0.5}, []string{"eps is 0.5"}},
		{optim.Rule{Kind: optim.Adam, LR: 1, InitialAccumulator: 0.5}, []string{"initial_accumulator is 0.5", "adam"}},
		{optim.Rule{Kind: optim.SGD, LR: -1, L2: -2, Eps: 3}, []string{"lr is -1", "l2 is -2", "eps is 3"}},
	} {
		err := c.rule.Validate()
		if err == nil {
			t.Errorf("%+v is accepted", c.rule)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: error %q does not say %q", c.rule, err, w)
			}
		}
	}
}

func TestSlots(t *testing.T) {
	for _, c := range []struct {
		rule optim.Rule
		want []optim.Slot
	}{
		{optim.Rule{Kind: optim.SGD}, nil},
		{optim.Rule{Kind: optim.Momentum}, []optim.Slot{{Name: "velocity"}}},
		{optim.Rule{Kind: optim.Adagrad, InitialAccumulator: 0.1}, []optim.Slot{{Name: "accumulator", Init: 0.1}}},
		{optim.Rule{Kind: optim.Adam}, []optim.Slot{{Name: "m"}, {Name: "v"}}},
		{optim.Rule{Kind: "none"}, nil},
	} {
		if diff := cmp.Diff(c.want, c.rule.Slots()); diff != "" {
			t.Errorf("%s: %s", c.rule.Kind, diff)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct{ in, want optim.Rule }{
		{optim.Rule{Kind: optim.SGD, LR: 1}, optim.Rule{Kind: optim.SGD, LR: 1}},
		{optim.Rule{Kind: optim.Momentum, LR: 1}, optim.Rule{Kind: optim.Momentum, LR: 1, Momentum: 0.9}},
		{optim.Rule{Kind: optim.Adagrad, LR: 1}, optim.Rule{Kind: optim.Adagrad, LR: 1, Eps: 1e-10}},
		{optim.Rule{Kind: optim.Adam, LR: 1, Beta1: 0.5}, optim.Rule{Kind: optim.Adam, LR: 1, Beta1: 0.5, Beta2: 0.999, Eps: 1e-8}},
	} {
		if diff := cmp.Diff(c.want, c.in.Defaults()); diff != "" {
			t.Errorf("%s: %s", c.in.Kind, diff)
		}
	}
}
