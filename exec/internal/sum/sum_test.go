package sum_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/exec/internal/sum"
	"github.com/gangline/gangline/tensor"
)

// bf16 makes a tensor of numbers that bfloat16 holds.
func bf16(values ...float32) *tensor.Tensor {
	t := tensor.New(tensor.BF16, len(values))
	for i, v := range values {
		t.Halves()[i] = uint16(math.Float32bits(v) >> 16)
	}
	return t
}

// A sum takes the shape of its first value, which it may overwrite. Of 16-bit floats it
// is rounded once: 256+1 is 256 there, but 256+1+1 is 258.
func TestPlain(t *testing.T) {
	f32 := func(values ...float32) *tensor.Tensor { return tensor.From(values, len(values)) }
	for name, c := range map[string]struct {
		out, want *tensor.Tensor
		in        []*tensor.Tensor
	}{
		"f64":        {tensor.New(tensor.F64, 0), tensor.From([]float64{6, 15}, 2), []*tensor.Tensor{tensor.From([]float64{1, 4}, 2), tensor.From([]float64{5, 11}, 2)}},
		"f32":        {f32(), f32(7, 7), []*tensor.Tensor{f32(1, 2), f32(6, 5)}},
		"16 bits":    {bf16(), bf16(258, 2), []*tensor.Tensor{bf16(256, 0), bf16(1, 1), bf16(1, 1)}},
		"into f32":   {f32(), f32(257), []*tensor.Tensor{bf16(256), bf16(1)}},
		"from mixed": {bf16(), bf16(258), []*tensor.Tensor{f32(256.5), bf16(1)}},
	} {
		for _, inPlace := range []bool{false, true} {
			if inPlace && c.out.DType() == c.in[0].DType() {
				c.out = c.in[0]
			}
			p, err := sum.NewPlain(c.out, c.in)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Run(c.out, c.in); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want.Bytes(), c.out.Bytes()); d != "" || !c.out.Shape().Equal(c.want.Shape()) {
				t.Errorf("%s, in place %t: shape %v, want %v; bytes (-want +got):\n%s", name, inPlace, c.out.Shape(), c.want.Shape(), d)
			}
		}
	}
}

func TestPlainRefuses(t *testing.T) {
	f32, f64, ids := tensor.New(tensor.F32, 1), tensor.New(tensor.F64, 1), tensor.New(tensor.I64, 1)
	for want, c := range map[string][]*tensor.Tensor{ // the sum, then its values
		"cannot add f64 to f32":    {f32, f32, f64},
		"cannot add f64 to bf16":   {bf16(0), f64},
		"cannot add i64 to i64":    {tensor.New(tensor.I64, 1), ids},
		"only its first value":     {f32, tensor.New(tensor.F32, 1), f32},
		"value 1 of the sum has s": {f32, tensor.New(tensor.F32, 1), tensor.New(tensor.F32, 2)},
	} {
		p, err := sum.NewPlain(c[0], c[1:])
		if err == nil {
			err = p.Run(c[0], c[1:])
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// Weights are those of the values in their order, and what is left is added.
func TestWeighted(t *testing.T) {
	in := []*tensor.Tensor{tensor.From([]float32{1, 2}, 2), tensor.From([]float32{4, 8}, 2)}
	out := tensor.New(tensor.F32, 2)
	w, err := sum.NewWeighted(out, in, []float64{2, -.5, 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(out, in); err != nil || out.F32()[0] != 10 || out.F32()[1] != 10 {
		t.Errorf("got %v %v, want 10 twice", out.F32(), err)
	}
}
