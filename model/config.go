package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/tensor"
)

// Column describes an input column of the batch.
type Column struct {
	Name string
	// Dim is the floats a row (dense) or the number of possible ids (ragged).
	Dim    int
	Ragged bool
	// PerRow is the exact number of entries a row of a ragged column has, 0 if
	// it varies.
	PerRow int
}

// Config says which model to build. A field that the kind does not use must be
// zero.
type Config struct {
	// Kind is one of Kinds().
	Kind string
	// Inputs are the columns to predict from, without the label.
	Inputs []Column
	// Label is the column of the target, one float a row (gpt: one a token);
	// "" means label.
	Label string
	// Weight is a column of one float a row: what the row counts in the loss. "" means
	// that every row counts 1. gpt, whose rows are many tokens, has none.
	Weight string
	// Hidden are the widths of the hidden layers: at least one for mlp, any
	// number for cnn, ctr, deepfm and dlrm (of its top network).
	Hidden []int
	// Bottom are the widths of the hidden layers of the network that brings
	// dense columns to the length of an embedding (dlrm).
	Bottom []int
	// Activation is the function between layers, one of Activations (mlp); ""
	// means relu. Slope is the factor of negative numbers (leaky_relu).
	Activation string
	Slope      float64
	// NoBias leaves out the biases of all layers (mlp).
	NoBias bool
	// Filters are the channels of the convolutions (cnn), Image the dims
	// [channels height width] of a row; without, a row is a gray square.
	Filters, Image []int
	// Dim is the length of an embedding row (fm, ctr, deepfm, dlrm), or the
	// width of every layer (gpt).
	Dim int
	// Layers is the number of blocks, Heads that of the heads of attention,
	// which divides Dim (gpt).
	Layers, Heads int
	// Dropout is the share of activations that training leaves out (gpt).
	Dropout float64
	// Classes is the number of classes: at least 2 for softmax; for mlp and cnn
	// 0 means one logit and the logistic loss.
	Classes int
	// Table keeps the weights of ragged inputs in tables, of which a step reads
	// and updates only the rows it meets (logistic, softmax, linear).
	Table bool
	// Seed decides all initial values.
	Seed uint64
	// Float is the type of all parameters, tensor.F32 or tensor.F64; or tensor.BF16 or
	// tensor.F16 for parameters of F32 and values and gradients of that type.
	Float tensor.DType
}

// Validate reports every field that is out of range, missing, or not used by
// the kind.
func (c Config) Validate() error {
	i := slices.Index(Kinds(), c.Kind)
	if i < 0 {
		return fmt.Errorf("model: kind: unknown %q%s", c.Kind, nearest.Hint(c.Kind, Kinds()))
	}
	k := kinds()[i]
	uses, needs := strings.Fields(k.uses), strings.Fields(k.needs)
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("model: %s: "+format, append([]any{field}, args...)...))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"hidden", len(c.Hidden) > 0},
		{"bottom", len(c.Bottom) > 0},
		{"activation", c.Activation != ""},
		{"slope", c.Slope != 0},
		{"bias", c.NoBias},
		{"filters", len(c.Filters) > 0},
		{"image", len(c.Image) > 0},
		{"dim", c.Dim != 0},
		{"layers", c.Layers != 0},
		{"heads", c.Heads != 0},
		{"dropout", c.Dropout != 0},
		{"classes", c.Classes != 0},
		{"table", c.Table},
	} {
		if f.set && !slices.Contains(uses, f.name) {
			bad(f.name, "kind %s does not use it", c.Kind)
		}
		if !f.set && slices.Contains(needs, f.name) {
			bad(f.name, "is missing: kind %s needs it", c.Kind)
		}
	}
	if c.Weight != "" && c.Kind == "gpt" {
		bad("weight", "kind gpt has no weights of rows; leave the column %q out", c.Weight)
	}
	c.checkSizes(bad)
	if c.Classes < 2 && (c.Kind == "softmax" || c.Classes != 0) {
		bad("classes", "is %d, want at least 2", c.Classes)
	}
	if !c.Float.IsFloat() && !c.Float.IsHalf() {
		bad("float", "is %v, want f32, f64, bf16 or f16", c.Float)
	}
	errs = append(errs, c.checkInputs(k.cols)...)
	if len(errs) == 0 && c.Kind == "cnn" {
		errs = append(errs, c.checkImage())
	}
	return errors.Join(errs...)
}

// checkSizes reports numbers out of range.
func (c Config) checkSizes(bad func(field, format string, args ...any)) {
	for _, f := range []struct {
		name   string
		widths []int
	}{{"hidden", c.Hidden}, {"bottom", c.Bottom}, {"filters", c.Filters}, {"image", c.Image}} {
		for i, h := range f.widths {
			if h < 1 {
				bad(f.name, "layer %d has width %d, want at least 1", i, h)
			}
		}
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"dim", c.Dim}, {"layers", c.Layers}, {"heads", c.Heads}} {
		if f.value < 0 {
			bad(f.name, "is %d, want at least 1", f.value)
		}
	}
	if c.Heads > 0 && c.Dim%c.Heads != 0 {
		bad("heads", "%d heads do not divide dim %d", c.Heads, c.Dim)
	}
	if a := c.Activation; a != "" && !slices.Contains(Activations(), a) {
		bad("activation", "unknown %q%s", a, nearest.Hint(a, Activations()))
	}
	if leaky := c.Activation == "leaky_relu"; leaky && !(c.Slope > 0 && c.Slope < 1) || !leaky && c.Slope != 0 {
		bad("slope", "is %v: leaky_relu needs a number between 0 and 1 (0.01 is usual), other activations have none", c.Slope)
	}
	if !(c.Dropout >= 0 && c.Dropout < 1) {
		bad("dropout", "is %v, want a number in [0, 1)", c.Dropout)
	}
}

// checkInputs reports columns that do not fit the kind.
func (c Config) checkInputs(want inputs) []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	if len(c.Inputs) == 0 {
		bad("inputs: are missing: there is nothing to predict from")
	}
	label := c.Label
	if label == "" {
		label = "label"
	}
	ragged, dense := false, false
	for i, col := range c.Inputs {
		if col.Name == label {
			bad("inputs: %q is the label", col.Name)
		}
		if col.Name == c.Weight {
			bad("inputs: %q is the weight", col.Name)
		}
		if slices.ContainsFunc(c.Inputs[:i], func(o Column) bool { return o.Name == col.Name }) {
			bad("inputs: %q is there twice", col.Name)
		}
		if col.Dim < 1 {
			bad("inputs: %q has dim %d, want at least 1", col.Name, col.Dim)
		}
		if want.fixed && col.Ragged && col.PerRow < 1 {
			bad("inputs: %q has any number of entries a row; kind %s needs a fixed number", col.Name, c.Kind)
		}
		if want.fixed && col.Ragged && col.PerRow > 0 && c.Dim > graph.MaxElems/col.PerRow {
			bad("dim: %d entries a row of %q with dim %d are more than %d numbers", col.PerRow, col.Name, c.Dim, graph.MaxElems)
		}
		ragged, dense = ragged || col.Ragged, dense || !col.Ragged
	}
	switch {
	case want.ragged && !ragged:
		bad("inputs: kind %s needs a ragged column %s", c.Kind, want.purpose)
	case want.dense && !dense:
		bad("inputs: kind %s needs a dense column", c.Kind)
	case want.single && len(c.Inputs) > 1:
		bad("inputs: kind %s reads one column, not %d", c.Kind, len(c.Inputs))
	}
	if c.Table && !ragged {
		bad("table: no input is ragged, so there are no rows to pick")
	}
	return errs
}

// image returns the dims [channels height width] of a row of dim numbers.
func (c Config) image(dim int) []int {
	if len(c.Image) > 0 {
		return c.Image
	}
	side := int(math.Round(math.Sqrt(float64(dim))))
	return []int{1, side, side}
}

// checkImage reports an image that is none, or too small for the layers.
func (c Config) checkImage() error {
	col := c.Inputs[0]
	im := c.image(col.Dim)
	if len(im) != 3 {
		return fmt.Errorf("model: image: has %d numbers, want [channels, height, width]", len(im))
	}
	if im[0] > col.Dim || im[1] > col.Dim || im[2] > col.Dim || im[0]*im[1]*im[2] != col.Dim {
		return fmt.Errorf("model: image: %v is not the shape of the %d numbers of a row of %q", im, col.Dim, col.Name)
	}
	if least := 1 << min(len(c.Filters), 62); im[1] < least || im[2] < least {
		return fmt.Errorf("model: filters: %d layers halve an image of %d by %d to nothing", len(c.Filters), im[1], im[2])
	}
	return nil
}
