package graph

import (
	"fmt"
	"strconv"
)

// field is one setting of an operator in the text form. A zero setting has the
// empty text and is left out.
type field struct {
	key string
	get func(*Attr) string
	set func(*Attr, string) error
}

func floatField(key string, at func(*Attr) *float64) field {
	return field{key, func(a *Attr) string {
		if *at(a) == 0 {
			return ""
		}
		return strconv.FormatFloat(*at(a), 'g', -1, 64)
	}, func(a *Attr, s string) (err error) {
		*at(a), err = strconv.ParseFloat(s, 64)
		return err
	}}
}

func intField(key string, at func(*Attr) *int) field {
	return field{key, func(a *Attr) string {
		if *at(a) == 0 {
			return ""
		}
		return strconv.Itoa(*at(a))
	}, func(a *Attr, s string) (err error) {
		*at(a), err = strconv.Atoi(s)
		return err
	}}
}

func boolField(key string, at func(*Attr) *bool) field {
	return field{key, func(a *Attr) string {
		if !*at(a) {
			return ""
		}
		return "true"
	}, func(a *Attr, s string) error {
		if s != "true" {
			return fmt.Errorf("%q is not true", s)
		}
		*at(a) = true
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
	case Scale:
		return []field{floatField("alpha", func(a *Attr) *float64 { return &a.Alpha })}
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
			seedField(),
			boolField("frozen", func(a *Attr) *bool { return &a.Frozen }),
		}
	case Update, UpdateRows:
		return ruleFields()
	}
	return nil
}

func seedField() field {
	return field{"seed", func(a *Attr) string {
		if a.Init.Seed == 0 {
			return ""
		}
		return strconv.FormatUint(a.Init.Seed, 10)
	}, func(a *Attr, s string) (err error) {
		a.Init.Seed, err = strconv.ParseUint(s, 10, 64)
		return err
	}}
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
	return c
}
