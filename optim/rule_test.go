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
		{Kind: optim.AdamW, LR: 0.1, ClipNorm: 1, ScaleWith: 256, Schedule: optim.Schedule{Kind: optim.Cosine, Warmup: 5, Steps: 9, MinLR: .1}},
		{Kind: optim.FTRL, LR: 0.1, L1: 1, L2: 1, ClipValue: 1},
	}
	good = append(good, flagged()...)
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
		{optim.Rule{LR: 1}, []string{"kind", `""`, "sgd, momentum, adagrad, rmsprop, adam, adamw, ftrl or lamb"}},
		{optim.Rule{Kind: "adamx", LR: 1}, []string{"kind", "adamx"}},
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
		{optim.Rule{Kind: optim.Momentum, LR: 1, Nesterov: true, Dampening: .5}, []string{"dampening is 0.5", "0 with nesterov"}},
		{optim.Rule{Kind: optim.Momentum, LR: 1, Dampening: 1}, []string{"dampening is 1"}},
		{optim.Rule{Kind: optim.Adam, LR: 1, WeightDecay: .1}, []string{"weight_decay is 0.1", "adam does not use it"}},
		{optim.Rule{Kind: optim.AdamW, LR: 1, L2: .1}, []string{"l2 is 0.1", "adamw does not use it"}},
		{optim.Rule{Kind: optim.AdamW, LR: 1, WeightDecay: -1}, []string{"weight_decay is -1"}},
		{optim.Rule{Kind: optim.LAMB, LR: 1, AMSGrad: true}, []string{"amsgrad is true", "lamb does not use it"}},
		{optim.Rule{Kind: optim.RMSProp, LR: 1, Decay: 1, Momentum: 1}, []string{"decay is 1", "momentum is 1"}},
		{optim.Rule{Kind: optim.Adam, LR: 1, Centered: true, Decay: .5}, []string{"centered is true", "decay is 0.5"}},
		{optim.Rule{Kind: optim.Adam, LR: 1, LRDecay: .5}, []string{"lr_decay is 0.5"}},
		{optim.Rule{Kind: optim.Adagrad, LR: 1, LRDecay: nan}, []string{"lr_decay is NaN"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, L1: 1, Beta: 1, LRPower: -1}, []string{"l1 is 1", "beta is 1", "lr_power is -1"}},
		{optim.Rule{Kind: optim.FTRL, LR: 1, L1: -1, Beta: -1, LRPower: 1}, []string{"l1 is -1", "beta is -1", "lr_power is 1"}},
		{optim.Rule{Kind: optim.FTRL, LR: 1, LRPower: -2}, []string{"lr_power is -2"}},
		{optim.Rule{Kind: optim.FTRL, LR: 1, Schedule: optim.Schedule{Warmup: 3}}, []string{"schedule is", "ftrl has a rate of its own"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, ClipValue: -1}, []string{"clip_value is -1"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, ClipNorm: inf}, []string{"clip_norm is +Inf"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, ClipNorm: 1, ClipValue: 1}, []string{"clip_norm is 1", "left out beside clip_value"}},
		{optim.Rule{Kind: optim.SGD, LR: 1, ScaleWith: -1}, []string{"scale_with is -1"}},
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
		{optim.Rule{Kind: optim.RMSProp}, []optim.Slot{{Name: "square"}}},
		{optim.Rule{Kind: optim.RMSProp, Centered: true}, []optim.Slot{{Name: "square"}, {Name: "mean"}}},
		{optim.Rule{Kind: optim.RMSProp, Momentum: .5}, []optim.Slot{{Name: "square"}, {Name: "velocity"}}},
		{optim.Rule{Kind: optim.AdamW, AMSGrad: true}, []optim.Slot{{Name: "m"}, {Name: "v"}, {Name: "vmax"}}},
		{optim.Rule{Kind: optim.FTRL, InitialAccumulator: .1}, []optim.Slot{{Name: "z"}, {Name: "accumulator", Init: .1}}},
		{optim.Rule{Kind: optim.LAMB}, []optim.Slot{{Name: "m"}, {Name: "v"}}},
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
		{optim.Rule{Kind: optim.RMSProp, LR: 1}, optim.Rule{Kind: optim.RMSProp, LR: 1, Decay: .99, Eps: 1e-8}},
		{optim.Rule{Kind: optim.AdamW, LR: 1}, optim.Rule{Kind: optim.AdamW, LR: 1, Beta1: .9, Beta2: .999, Eps: 1e-8, WeightDecay: .01}},
		{optim.Rule{Kind: optim.LAMB, LR: 1}, optim.Rule{Kind: optim.LAMB, LR: 1, Beta1: .9, Beta2: .999, Eps: 1e-6}},
		{optim.Rule{Kind: optim.FTRL, LR: 1}, optim.Rule{Kind: optim.FTRL, LR: 1, Beta: 1, LRPower: -.5}},
	} {
		if diff := cmp.Diff(c.want, c.in.Defaults()); diff != "" {
			t.Errorf("%s: %s", c.in.Kind, diff)
		}
	}
}

// TestScheduleRefusals proves that settings of another schedule, and courses
// that cannot be, are refused.
func TestScheduleRefusals(t *testing.T) {
	for _, c := range []struct {
		schedule optim.Schedule
		want     []string
	}{
		{optim.Schedule{Kind: "cosin"}, []string{`schedule.kind is cosin: want constant, step, cosine or inverse_sqrt`}},
		{optim.Schedule{Warmup: -1}, []string{"schedule.warmup is -1"}},
		{optim.Schedule{Every: 2, Factor: .5, Steps: 3, MinLR: .1}, []string{"schedule.every is 2", "schedule.factor is 0.5", "schedule.steps is 3", "schedule.min_lr is 0.1"}},
		{optim.Schedule{Kind: optim.Stairs}, []string{"schedule.every is 0", "schedule.factor is 0"}},
		{optim.Schedule{Kind: optim.Stairs, Every: 1, Factor: 1.5, Steps: 3}, []string{"schedule.factor is 1.5", "schedule.steps is 3: want it left out"}},
		{optim.Schedule{Kind: optim.Cosine}, []string{"schedule.steps is 0", "more than schedule.warmup"}},
		{optim.Schedule{Kind: optim.Cosine, Warmup: 5, Steps: 5, MinLR: 3}, []string{"schedule.steps is 5", "schedule.min_lr is 3: want a number in [0, lr]"}},
		{optim.Schedule{Kind: optim.InverseSqrt, Every: 5}, []string{"schedule.every is 5", "inverse_sqrt does not use it"}},
	} {
		err := optim.Rule{Kind: optim.SGD, LR: 1, Schedule: c.schedule}.Validate()
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: error %v does not say %q", c.schedule, err, w)
			}
		}
	}
}

// TestScaled proves that the rate grows with the batch where that was asked for,
// and that a rule that waits for the batch is not ready.
func TestScaled(t *testing.T) {
	r := optim.Rule{Kind: optim.SGD, LR: .1, Schedule: optim.Schedule{Kind: optim.Cosine, Steps: 9, MinLR: .01}}
	if got := r.Scaled(512); got != r {
		t.Errorf("scaled without being asked: %+v", got)
	}
	if err := r.Ready(); err != nil {
		t.Error(err)
	}
	r.ScaleWith = 256
	if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "scale_with is 256") {
		t.Errorf("a rule without its batch is ready: %v", err)
	}
	got := r.Scaled(512)
	if got.LR != .2 || got.Schedule.MinLR != .02 || got.ScaleWith != 0 || r.LR != .1 {
		t.Errorf("got %+v", got)
	}
}

// TestSeparable proves that what needs whole parameters says so.
func TestSeparable(t *testing.T) {
	for _, r := range flagged() {
		err := r.Separable()
		if whole := r.Kind == optim.LAMB || r.ClipNorm > 0; whole != (err != nil) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// TestPenalty: the L2 of ftrl is none of the objective's.
func TestPenalty(t *testing.T) {
	if got := (optim.Rule{Kind: optim.SGD, L2: .5}).Penalty(); got != .5 {
		t.Errorf("sgd: %v", got)
	}
	if got := (optim.Rule{Kind: optim.FTRL, L2: .5}).Penalty(); got != 0 {
		t.Errorf("ftrl: %v", got)
	}
}
