package graph

import (
	"fmt"
	"strconv"
	"strings"
)

// field is one setting of an operator in the text form. A zero setting has the
// empty text and is left out.
type field struct {
	key string
	get func(*Attr) string
	set func(*Attr, string) error
}

func floatField(key string, at func(*Attr) *float64) field {
	return numberField(key, at, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

func intField(key string, at func(*Attr) *int) field {
	return numberField(key, at, strconv.Itoa, strconv.Atoi)
}

func stepsField(key string, at func(*Attr) *int64) field {
	return numberField(key, at, func(v int64) string { return strconv.FormatInt(v, 10) },
		func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
}

func seedField(at func(*Attr) *uint64) field {
	return numberField("seed", at, func(v uint64) string { return strconv.FormatUint(v, 10) },
		func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
}

func boolField(key string, at func(*Attr) *bool) field {
	return numberField(key, at, strconv.FormatBool, func(s string) (bool, error) {
		if s != "true" {
			return false, fmt.Errorf("%q is not true", s)
		}
		return true, nil
	})
}

func numberField[T comparable](key string, at func(*Attr) *T, format func(T) string, parse func(string) (T, error)) field {
	var zero T
	return field{key, func(a *Attr) string {
		if *at(a) == zero {
			return ""
		}
		return format(*at(a))
	}, func(a *Attr, s string) (err error) {
		*at(a), err = parse(s)
		return err
	}}
}

// permField writes an order of dims as "0,2,1".
func permField() field {
	return field{"perm", func(a *Attr) string {
		words := make([]string, len(a.Perm))
		for i, p := range a.Perm {
			words[i] = strconv.Itoa(p)
		}
		return strings.Join(words, ",")
	}, func(a *Attr, s string) error {
		for w := range strings.SplitSeq(s, ",") {
			p, err := strconv.Atoi(w)
			if err != nil {
				return err
			}
			a.Perm = append(a.Perm, p)
		}
		return nil
	}}
}

func wordField[T ~string](key string, at func(*Attr) *T) field {
	return field{key, func(a *Attr) string { return string(*at(a)) }, func(a *Attr, s string) error {
		*at(a) = T(s)
		return nil
	}}
}

// fields lists the settings that an operator reads, in the order of the text
// form. Shapes are not among them: each line ends with one.
func fields(op Op) []field {
	switch op {
	case MatMul:
		return []field{
			boolField("transA", func(a *Attr) *bool { return &a.TransA }),
			boolField("transB", func(a *Attr) *bool { return &a.TransB }),
		}
	case Scale, LeakyRelu, LeakyReluGrad, CausalAttention, CausalAttentionGrad:
		return []field{floatField("alpha", func(a *Attr) *float64 { return &a.Alpha })}
	case LayerNorm, LayerNormGrad, LayerNormGainGrad, RMSNorm, RMSNormGrad, RMSNormGainGrad:
		return []field{floatField("eps", func(a *Attr) *float64 { return &a.Eps })}
	case Dropout:
		return []field{
			floatField("rate", func(a *Attr) *float64 { return &a.Rate }),
			seedField(func(a *Attr) *uint64 { return &a.Seed }),
		}
	case Bag, BagGrad:
		return []field{boolField("mean", func(a *Attr) *bool { return &a.Mean })}
	case Transpose:
		return []field{permField()}
	case SpreadAxis, MeanGrad, MaxGrad:
		return []field{intField("axis", func(a *Attr) *int { return &a.Axis })}
	case SumAxis, Mean, Max, ArgMax:
		return []field{
			intField("axis", func(a *Attr) *int { return &a.Axis }),
			boolField("keepdims", func(a *Attr) *bool { return &a.KeepDims }),
		}
	case Conv2D, Conv2DGradX, Conv2DGradW:
		return []field{
			intField("stride", func(a *Attr) *int { return &a.Stride }),
			intField("pad", func(a *Attr) *int { return &a.Pad }),
		}
	case MaxPool2D, MaxPool2DGrad, AvgPool2D, AvgPool2DGrad:
		return []field{
			intField("window", func(a *Attr) *int { return &a.Window }),
			intField("stride", func(a *Attr) *int { return &a.Stride }),
		}
	case Concat, Slice, PadSlice:
		return []field{
			intField("axis", func(a *Attr) *int { return &a.Axis }),
			intField("start", func(a *Attr) *int { return &a.Start }),
			intField("end", func(a *Attr) *int { return &a.End }),
		}
	case Const, SlotVar:
		return []field{floatField("value", func(a *Attr) *float64 { return &a.Value })}
	case Input:
		return []field{
			wordField("column", func(a *Attr) *string { return &a.Column }),
			wordField("part", func(a *Attr) *Part { return &a.Part }),
		}
	case Variable, Table:
		return []field{
			wordField("init", func(a *Attr) *InitKind { return &a.Init.Kind }),
			floatField("scale", func(a *Attr) *float64 { return &a.Init.Scale }),
			seedField(func(a *Attr) *uint64 { return &a.Init.Seed }),
			boolField("frozen", func(a *Attr) *bool { return &a.Frozen }),
		}
	case Update, UpdateRows:
		return ruleFields()
	}
	return nil
}

func ruleFields() []field {
	return []field{
		wordField("rule", func(a *Attr) *string { return (*string)(&a.Rule.Kind) }),
		floatField("lr", func(a *Attr) *float64 { return &a.Rule.LR }),
		floatField("l2", func(a *Attr) *float64 { return &a.Rule.L2 }),
		floatField("momentum", func(a *Attr) *float64 { return &a.Rule.Momentum }),
		boolField("nesterov", func(a *Attr) *bool { return &a.Rule.Nesterov }),
		floatField("beta1", func(a *Attr) *float64 { return &a.Rule.Beta1 }),
		floatField("beta2", func(a *Attr) *float64 { return &a.Rule.Beta2 }),
		floatField("eps", func(a *Attr) *float64 { return &a.Rule.Eps }),
		floatField("initial_accumulator", func(a *Attr) *float64 { return &a.Rule.InitialAccumulator }),
		floatField("lr_decay", func(a *Attr) *float64 { return &a.Rule.LRDecay }),
		floatField("l1", func(a *Attr) *float64 { return &a.Rule.L1 }),
		floatField("beta", func(a *Attr) *float64 { return &a.Rule.Beta }),
		floatField("lr_power", func(a *Attr) *float64 { return &a.Rule.LRPower }),
		floatField("weight_decay", func(a *Attr) *float64 { return &a.Rule.WeightDecay }),
		floatField("dampening", func(a *Attr) *float64 { return &a.Rule.Dampening }),
		floatField("decay", func(a *Attr) *float64 { return &a.Rule.Decay }),
		boolField("centered", func(a *Attr) *bool { return &a.Rule.Centered }),
		boolField("amsgrad", func(a *Attr) *bool { return &a.Rule.AMSGrad }),
		floatField("clip_value", func(a *Attr) *float64 { return &a.Rule.ClipValue }),
		floatField("clip_norm", func(a *Attr) *float64 { return &a.Rule.ClipNorm }),
		wordField("schedule", func(a *Attr) *string { return (*string)(&a.Rule.Schedule.Kind) }),
		stepsField("warmup", func(a *Attr) *int64 { return &a.Rule.Schedule.Warmup }),
		stepsField("every", func(a *Attr) *int64 { return &a.Rule.Schedule.Every }),
		floatField("factor", func(a *Attr) *float64 { return &a.Rule.Schedule.Factor }),
		stepsField("steps", func(a *Attr) *int64 { return &a.Rule.Schedule.Steps }),
		floatField("min_lr", func(a *Attr) *float64 { return &a.Rule.Schedule.MinLR }),
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
		if s := f.get(&a); s != "" {
			_ = f.set(&c, s) // what get wrote, set reads
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
