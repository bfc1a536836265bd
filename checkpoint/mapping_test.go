package checkpoint_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/tensor"
)

// writeTensors writes a safetensors file.
func writeTensors(t *testing.T, tensors map[string]*tensor.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.WriteSafetensors(f, tensors, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func params() map[string]*tensor.Tensor {
	return map[string]*tensor.Tensor{"w": tensor.New(tensor.F32, 2, 3), "b": tensor.New(tensor.F32, 3)}
}

// What a mapping exports it imports again, and the file has the names and the
// form that it says.
func TestMapping(t *testing.T) {
	from := params()
	copy(from["w"].F32(), []float32{1, 2, 3, 4, 5, 6})
	copy(from["b"].F32(), []float32{7, 8, 9})
	m := checkpoint.Mapping{"w": {From: "l1.weight", Transpose: true}}
	out, err := m.Export(from)
	if err != nil {
		t.Fatal(err)
	}
	if w := out["l1.weight"]; len(out) != 2 || !w.Shape().Equal(tensor.Shape{3, 2}) || !cmp.Equal(w.F32(), []float32{1, 4, 2, 5, 3, 6}) {
		t.Errorf("exported %v", out)
	}
	to := params()
	if err := m.Import(writeTensors(t, out), to, false); err != nil {
		t.Fatal(err)
	}
	for name := range from {
		if d := cmp.Diff(from[name].F32(), to[name].F32()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Everything that does not fit is named, with what to change.
func TestMappingRefusals(t *testing.T) {
	wild := map[string]*tensor.Tensor{"w": tensor.New(tensor.F32, 2, 3), "b": tensor.New(tensor.F32, 3)}
	wild["w"].F32()[4] = float32(math.NaN())
	file := map[string]*tensor.Tensor{"l1.weight": tensor.New(tensor.F32, 3, 2), "b": tensor.New(tensor.F32, 3)}
	for name, c := range map[string]struct {
		m     checkpoint.Mapping
		file  map[string]*tensor.Tensor
		allow bool
		want  []string // none: it is right
	}{
		"right":         {checkpoint.Mapping{"w": {From: "l1.weight", Transpose: true}}, file, false, nil},
		"missing":       {checkpoint.Mapping{"w": {From: "l1.wieght", Transpose: true}}, file, false, []string{`no tensor "l1.wieght"`, `did you mean "l1.weight"?`, "There are l1.weight, b"}},
		"unmapped":      {nil, file, true, []string{`parameter "w"`, `no tensor "w"`}},
		"shape":         {checkpoint.Mapping{"w": {From: "l1.weight"}}, file, false, []string{"f32 [3 2]", "f32 [2 3]", "set transpose: true"}},
		"not parameter": {checkpoint.Mapping{"w": {From: "l1.weight", Transpose: true}, "w2": {From: "x"}}, file, false, []string{`no parameter "w2"`}},
		"dtype": {
			nil,
			map[string]*tensor.Tensor{"w": tensor.New(tensor.F64, 2, 3), "b": tensor.New(tensor.F32, 3)},
			false,
			[]string{"f64 [2 3]", "f32 [2 3]"},
		},
		"unused": {
			nil,
			map[string]*tensor.Tensor{"w": tensor.New(tensor.F32, 2, 3), "b": tensor.New(tensor.F32, 3), "step": tensor.New(tensor.I64, 1)},
			false,
			[]string{`"step" (i64 [1])`, "not used"},
		},
		"unused allowed": {
			nil, map[string]*tensor.Tensor{"w": tensor.New(tensor.F32, 2, 3), "b": tensor.New(tensor.F32, 3), "step": tensor.New(tensor.I64, 1)}, true, nil,
		},
		"transposed vector": {checkpoint.Mapping{"w": {From: "l1.weight", Transpose: true}, "b": {From: "b", Transpose: true}}, file, false, []string{"only two dims"}},
		"not finite":        {nil, wild, false, []string{`tensor "w" has NaN or an infinity, the first as element 4`}},
		"one for two":       {checkpoint.Mapping{"w": {From: "b"}}, file, true, []string{`"b" and "w" are both tensor "b"`}},
	} {
		err := c.m.Import(writeTensors(t, c.file), params(), c.allow)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %s", name, err, want)
			}
		}
	}
	for _, path := range []string{"nowhere.safetensors", t.TempDir()} {
		if err := (checkpoint.Mapping{}).Import(path, params(), false); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := (checkpoint.Mapping{"b": {Transpose: true}}).Export(params()); err == nil || !strings.Contains(err.Error(), "two dims") {
		t.Errorf("a transposed vector: %v", err)
	}
}
