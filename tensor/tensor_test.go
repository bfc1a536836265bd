package tensor_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/tensor"
)

func TestDTypes(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F64, tensor.I32, tensor.I64, tensor.BF16, tensor.F16} {
		if got, err := tensor.ParseDType(d.String()); err != nil || got != d {
			t.Errorf("ParseDType(%q) = %v, %v", d.String(), got, err)
		}
	}
	if tensor.BF16.Size() != 2 || tensor.F16.Size() != 2 || tensor.F32.Size() != 4 || tensor.I64.Size() != 8 || tensor.Invalid.Size() != 0 {
		t.Error("sizes")
	}
	if !tensor.F64.IsFloat() || tensor.I32.IsFloat() || tensor.BF16.IsFloat() || tensor.F16.IsFloat() {
		t.Error("which types are floats")
	}
	if _, err := tensor.ParseDType("f8"); err == nil {
		t.Error("f8 was taken")
	}
	if tensor.TypeOf[int32]() != tensor.I32 || tensor.TypeOf[float64]() != tensor.F64 {
		t.Error("TypeOf")
	}
}

func TestShapes(t *testing.T) {
	s := tensor.Shape{tensor.Dynamic, 3}
	if s.String() != "[? 3]" || s.Static() || s.Elems() != tensor.Dynamic || (tensor.Shape{}).Elems() != 1 {
		t.Errorf("%v", s)
	}
	for _, c := range []struct {
		have tensor.Shape
		want bool
	}{{tensor.Shape{7, 3}, true}, {tensor.Shape{7, 4}, false}, {tensor.Shape{7}, false}} {
		if s.Matches(c.have) != c.want {
			t.Errorf("%v matches %v: want %v", s, c.have, c.want)
		}
	}
}

// Whatever sizes follow each other, a tensor holds what its shape says, and
// keeps its memory when it shrinks.
func TestResize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := tensor.New(tensor.F32, 2, 2)
		for range 10 {
			n, before := rapid.IntRange(0, 50).Draw(t, "n"), cap(x.Bytes())
			x.Resize(n, 3)
			if x.Elems() != 3*n || len(x.F32()) != 3*n || len(x.Bytes()) != 12*n {
				t.Fatalf("%v has %d elements, %d bytes", x.Shape(), x.Elems(), len(x.Bytes()))
			}
			if 12*n <= before && cap(x.Bytes()) != before {
				t.Fatalf("%d bytes fit %d, but memory moved", 12*n, before)
			}
		}
	})
	x := tensor.New(tensor.F64, 100)
	if a := testing.AllocsPerRun(10, func() { x.Resize(50, 2); x.Resize(3) }); a != 0 {
		t.Errorf("%v allocations to resize within the memory", a)
	}
}

// A wrapped tensor never grows over its neighbour in an arena.
func TestWrap(t *testing.T) {
	arena := tensor.New(tensor.F32, 8).Bytes()
	x, err := tensor.Wrap(tensor.F32, arena[:16], 4)
	if err != nil {
		t.Fatal(err)
	}
	x.F32()[3] = 5
	if arena[15] == 0 {
		t.Error("Wrap does not share memory")
	}
	x.Resize(8)
	for i := range x.F32() {
		x.F32()[i] = 9
	}
	if arena[16] != 0 {
		t.Error("growing wrote over the neighbour")
	}
	for _, err := range []error{
		second(tensor.Wrap(tensor.F32, arena, 9)), second(tensor.Wrap(tensor.F32, arena, tensor.Dynamic)),
		second(tensor.Wrap(tensor.Invalid, arena, 1)), second(tensor.Wrap(tensor.F32, arena[1:], 1)),
	} {
		if err == nil {
			t.Error("memory that does not fit was taken")
		}
	}
}

func second(_ *tensor.Tensor, err error) error { return err }

func TestMistakesPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"dtype":   func() { tensor.New(tensor.F32, 1).F64() },
		"dynamic": func() { tensor.New(tensor.F32, tensor.Dynamic) },
		"invalid": func() { tensor.New(tensor.Invalid, 1) },
		"from":    func() { tensor.From([]float32{1, 2}, 3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestClone(t *testing.T) {
	a := tensor.From([]int64{1, 2, 3}, 3)
	b := a.Clone()
	b.I64()[0] = 9
	if diff := cmp.Diff([]int64{1, 2, 3}, a.I64()); diff != "" {
		t.Error(diff)
	}
	s := tensor.New(tensor.F64)
	s.SetScalar(2.5)
	if s.Scalar() != 2.5 {
		t.Error("scalar")
	}
}

func Example() {
	x := tensor.From([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	fmt.Println(x.DType(), x.Shape(), x.F32()[4])
	// Output: f32 [2 3] 5
}
