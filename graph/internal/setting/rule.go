package setting

import "github.com/gangline/gangline/optim"

// Rule lists the settings of an update rule that is part of an A.
func Rule[A any](at func(*A) *optim.Rule) []Field[A] {
	return []Field[A]{
		Word("rule", func(a *A) *string { return (*string)(&at(a).Kind) }),
		Float("lr", func(a *A) *float64 { return &at(a).LR }),
		Float("l2", func(a *A) *float64 { return &at(a).L2 }),
		Float("momentum", func(a *A) *float64 { return &at(a).Momentum }),
		Bool("nesterov", func(a *A) *bool { return &at(a).Nesterov }),
		Float("beta1", func(a *A) *float64 { return &at(a).Beta1 }),
		Float("beta2", func(a *A) *float64 { return &at(a).Beta2 }),
		Float("eps", func(a *A) *float64 { return &at(a).Eps }),
		Float("initial_accumulator", func(a *A) *float64 { return &at(a).InitialAccumulator }),
		Float("lr_decay", func(a *A) *float64 { return &at(a).LRDecay }),
		Float("l1", func(a *A) *float64 { return &at(a).L1 }),
		Float("beta", func(a *A) *float64 { return &at(a).Beta }),
		Float("lr_power", func(a *A) *float64 { return &at(a).LRPower }),
		Float("weight_decay", func(a *A) *float64 { return &at(a).WeightDecay }),
		Float("dampening", func(a *A) *float64 { return &at(a).Dampening }),
		Float("decay", func(a *A) *float64 { return &at(a).Decay }),
		Bool("centered", func(a *A) *bool { return &at(a).Centered }),
		Bool("amsgrad", func(a *A) *bool { return &at(a).AMSGrad }),
		Float("clip_value", func(a *A) *float64 { return &at(a).ClipValue }),
		Float("clip_norm", func(a *A) *float64 { return &at(a).ClipNorm }),
		Word("schedule", func(a *A) *string { return (*string)(&at(a).Schedule.Kind) }),
		Int64("warmup", func(a *A) *int64 { return &at(a).Schedule.Warmup }),
		Int64("every", func(a *A) *int64 { return &at(a).Schedule.Every }),
		Float("factor", func(a *A) *float64 { return &at(a).Schedule.Factor }),
		Int64("steps", func(a *A) *int64 { return &at(a).Schedule.Steps }),
		Float("min_lr", func(a *A) *float64 { return &at(a).Schedule.MinLR }),
	}
}
