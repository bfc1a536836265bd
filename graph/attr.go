package graph

import "github.com/gangline/gangline/graph/internal/setting"

// field is one setting of an operator in the text form.
type field = setting.Field[Attr]

// fields lists the settings that an operator reads, in the order of the text
// form. Shapes are not among them: each line ends with one.
func fields(op Op) []field {
	switch op {
	case MatMul:
		return []field{
			setting.Bool("transA", func(a *Attr) *bool { return &a.TransA }),
			setting.Bool("transB", func(a *Attr) *bool { return &a.TransB }),
		}
	case Scale, LeakyRelu, LeakyReluGrad, CausalAttention, CausalAttentionGrad:
		return []field{setting.Float("alpha", func(a *Attr) *float64 { return &a.Alpha })}
	case LayerNorm, LayerNormGrad, LayerNormGainGrad, RMSNorm, RMSNormGrad, RMSNormGainGrad:
		return []field{setting.Float("eps", func(a *Attr) *float64 { return &a.Eps })}
	case Dropout:
		return []field{
			setting.Float("rate", func(a *Attr) *float64 { return &a.Rate }),
			setting.Uint64("seed", func(a *Attr) *uint64 { return &a.Seed }),
		}
	case Bag, BagGrad:
		return []field{setting.Bool("mean", func(a *Attr) *bool { return &a.Mean })}
	case Transpose:
		return []field{setting.Ints("perm", func(a *Attr) *[]int { return &a.Perm })}
	case SpreadAxis, MeanGrad, MaxGrad:
		return []field{setting.Int("axis", func(a *Attr) *int { return &a.Axis })}
	case SumAxis, Mean, Max, ArgMax:
		return []field{
			setting.Int("axis", func(a *Attr) *int { return &a.Axis }),
			setting.Bool("keepdims", func(a *Attr) *bool { return &a.KeepDims }),
		}
	case Conv2D, Conv2DGradX, Conv2DGradW:
		return []field{
			setting.Int("stride", func(a *Attr) *int { return &a.Stride }),
			setting.Int("pad", func(a *Attr) *int { return &a.Pad }),
		}
	case MaxPool2D, MaxPool2DGrad, AvgPool2D, AvgPool2DGrad:
		return []field{
			setting.Int("window", func(a *Attr) *int { return &a.Window }),
			setting.Int("stride", func(a *Attr) *int { return &a.Stride }),
		}
	case Concat, Slice, PadSlice:
		return []field{
			setting.Int("axis", func(a *Attr) *int { return &a.Axis }),
			setting.Int("start", func(a *Attr) *int { return &a.Start }),
			setting.Int("end", func(a *Attr) *int { return &a.End }),
		}
	case Const, SlotVar:
		return []field{setting.Float("value", func(a *Attr) *float64 { return &a.Value })}
	case Input:
		return []field{
			setting.Word("column", func(a *Attr) *string { return &a.Column }),
			setting.Word("part", func(a *Attr) *Part { return &a.Part }),
		}
	case Variable, Table:
		return []field{
			setting.Word("init", func(a *Attr) *InitKind { return &a.Init.Kind }),
			setting.Float("scale", func(a *Attr) *float64 { return &a.Init.Scale }),
			setting.Uint64("seed", func(a *Attr) *uint64 { return &a.Init.Seed }),
			setting.Bool("frozen", func(a *Attr) *bool { return &a.Frozen }),
		}
	case Update, UpdateRows:
		return ruleFields()
	}
	return nil
}

func ruleFields() []field {
	return []field{
		setting.Word("rule", func(a *Attr) *string { return (*string)(&a.Rule.Kind) }),
		setting.Float("lr", func(a *Attr) *float64 { return &a.Rule.LR }),
		setting.Float("l2", func(a *Attr) *float64 { return &a.Rule.L2 }),
		setting.Float("momentum", func(a *Attr) *float64 { return &a.Rule.Momentum }),
		setting.Bool("nesterov", func(a *Attr) *bool { return &a.Rule.Nesterov }),
		setting.Float("beta1", func(a *Attr) *float64 { return &a.Rule.Beta1 }),
		setting.Float("beta2", func(a *Attr) *float64 { return &a.Rule.Beta2 }),
		setting.Float("eps", func(a *Attr) *float64 { return &a.Rule.Eps }),
		setting.Float("initial_accumulator", func(a *Attr) *float64 { return &a.Rule.InitialAccumulator }),
		setting.Float("lr_decay", func(a *Attr) *float64 { return &a.Rule.LRDecay }),
		setting.Float("l1", func(a *Attr) *float64 { return &a.Rule.L1 }),
		setting.Float("beta", func(a *Attr) *float64 { return &a.Rule.Beta }),
		setting.Float("lr_power", func(a *Attr) *float64 { return &a.Rule.LRPower }),
		setting.Float("weight_decay", func(a *Attr) *float64 { return &a.Rule.WeightDecay }),
		setting.Float("dampening", func(a *Attr) *float64 { return &a.Rule.Dampening }),
		setting.Float("decay", func(a *Attr) *float64 { return &a.Rule.Decay }),
		setting.Bool("centered", func(a *Attr) *bool { return &a.Rule.Centered }),
		setting.Bool("amsgrad", func(a *Attr) *bool { return &a.Rule.AMSGrad }),
		setting.Float("clip_value", func(a *Attr) *float64 { return &a.Rule.ClipValue }),
		setting.Float("clip_norm", func(a *Attr) *float64 { return &a.Rule.ClipNorm }),
		setting.Word("schedule", func(a *Attr) *string { return (*string)(&a.Rule.Schedule.Kind) }),
		setting.Int64("warmup", func(a *Attr) *int64 { return &a.Rule.Schedule.Warmup }),
		setting.Int64("every", func(a *Attr) *int64 { return &a.Rule.Schedule.Every }),
		setting.Float("factor", func(a *Attr) *float64 { return &a.Rule.Schedule.Factor }),
		setting.Int64("steps", func(a *Attr) *int64 { return &a.Rule.Schedule.Steps }),
		setting.Float("min_lr", func(a *Attr) *float64 { return &a.Rule.Schedule.MinLR }),
	}
}

// declares reports whether the shape of a node is a setting of it rather than
// a consequence of its inputs.
func declares(op Op) bool {
	switch op {
	case Input, Variable, Table, SlotVar, Const, Reshape:
		return true
	}
	return false
}

// canonical returns only those settings that the operator reads.
func canonical(op Op, a Attr) Attr {
	var c Attr
	for _, f := range fields(op) {
		if s := f.Get(&a); s != "" {
			_ = f.Set(&c, s) // what get wrote, set reads
		}
	}
	if declares(op) {
		c.Shape = a.Shape.Clone()
	}
	if op == Update || op == UpdateRows {
		c.Rule.Custom = a.Rule.Custom // which is no text
	}
	return c
}
