package graph

import (
	"strings"

	"github.com/gangline/gangline/graph/internal/line"
	"github.com/gangline/gangline/graph/internal/setting"
	"github.com/gangline/gangline/optim"
)

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
	case UpdateScale:
		return []field{setting.Int("every", func(a *Attr) *int { return &a.Every })}
	case Update, UpdateRows:
		return setting.Rule(func(a *Attr) *optim.Rule { return &a.Rule })
	}
	return nil
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

// String returns the node as the text form writes it.
func (n *Node) String() string {
	var b strings.Builder
	b.WriteString(n.Name + " = " + string(n.Op))
	for _, x := range n.In {
		b.WriteString(" " + x.Name)
	}
	for _, f := range fields(n.Op) {
		if s := f.Get(&n.Attr); s != "" {
			b.WriteString(" " + f.Key + "=" + s)
		}
	}
	b.WriteString(" -> " + n.DType.String() + " " + n.Shape.String())
	return b.String()
}

// ReadAttr reads the settings of an operator, key=value each as Node.String has them,
// and the dims of its result, which are a setting of some.
func ReadAttr(op Op, settings []string, dims string) (a Attr, err error) {
	if err := setting.Parse(&a, string(op), fields(op), settings); err != nil {
		return a, err
	}
	if declares(op) {
		a.Shape, err = line.Shape(dims)
	}
	return a, err
}

// Restore appends a node under a name that any node may have.
func (g *Graph) Restore(name string, op Op, attr Attr, in ...*Node) (*Node, error) {
	n := g.add(name, op, attr, in...)
	return n, g.err
}
